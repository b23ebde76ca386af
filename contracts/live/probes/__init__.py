"""What is asked of a live core, in order: each probe fills the fact sheet and leaves nothing running."""
