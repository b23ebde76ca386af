"""Recordings of real programs become scenarios."""

from contracts.importing.recording import RecordingError
from contracts.importing.timelines import import_recording, render, write

__all__ = ["RecordingError", "import_recording", "render", "write"]
