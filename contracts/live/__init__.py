"""Live cores: the contract and the wire asked of an installed core, and of recordings of one."""
