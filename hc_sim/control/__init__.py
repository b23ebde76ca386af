"""Moving a running core by hand: commands, the socket they come in by, and the console."""
