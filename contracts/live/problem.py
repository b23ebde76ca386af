"""What can go wrong before and while a live core is asked: one sentence each, and the exit code that goes with it."""

from contracts.judging.tally import BAD_USAGE, ERRORED


class LiveError(Exception):
    """The core, the way to it or this program broke: neither a verdict on the contract nor a mistake of the user."""

    exit_code = ERRORED


class UsageError(LiveError):
    """What was asked for cannot be: a path that leads nowhere, a file that is no cassette."""

    exit_code = BAD_USAGE


class GoneError(LiveError):
    """The connection to the core ended."""


class SilentError(LiveError):
    """No answer came within the time that a call may take."""


class CassetteError(UsageError):
    """A cassette cannot be read, or does not hold what is asked."""
