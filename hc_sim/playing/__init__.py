"""The fake core for other people's tests: in process, on a virtual clock, or on a socket of its own thread."""
