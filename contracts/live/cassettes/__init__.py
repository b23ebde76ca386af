"""Cassettes: the raw exchange with a core in a file, written while it happens, and played back as a host."""

from contracts.live.cassettes.playing import CassetteFiles, CassetteHost
from contracts.live.cassettes.recording import RecordingFiles, RecordingHost
from contracts.live.cassettes.tape import Head, Tape, TapeWriter, read_tape

__all__ = [
    "CassetteFiles",
    "CassetteHost",
    "Head",
    "RecordingFiles",
    "RecordingHost",
    "Tape",
    "TapeWriter",
    "read_tape",
]
