"""Timelines: their file format, the player that walks one, and the files that people write."""
