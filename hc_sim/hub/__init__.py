"""Connections of a core without a socket: bytes in, bytes and times out."""
