"""The options of the command line: those of the real program that a supervisor passes."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

WITH_VALUE = frozenset(
    "--mode --session --model --provider --tools -e --extension --skill --system-prompt --append-system-prompt --name "
    "--thinking --api-key --session-dir --exclude-tools --tui-mode".split()
)
WITHOUT = frozenset(
    "--no-extensions -ne --no-skills -ns --no-context-files -nc --approve -a --no-approve -na --offline --no-session "
    "--no-tools --verbose --continue -c".split()
)


class Refused(Exception):  # noqa: N818 - one line for a person
    """What is said on stderr before the program exits with code 1."""


class Options:
    """What was asked for."""

    def __init__(self) -> None:
        self.mode = ""
        self.session: str | None = None
        self.no_session = False
        self.provider, self.model = "fake", "fake-1"
        self.tools: tuple[str, ...] | None = None
        self.name: str | None = None
        self.version = False


def parse(argv: Sequence[str]) -> Options:
    """The options in a command line; raises `Refused` where the real program exits with code 1."""
    options, words = Options(), list(argv)
    provider = model = None
    while words:
        word = words.pop(0)
        name, equals, inline = word.partition("=")
        if word in ("--version", "-v"):
            options.version = True
        elif word == "--no-session":
            options.no_session = True
        elif word == "--":
            break
        elif word in WITHOUT:
            continue
        elif name in WITH_VALUE and (equals or words):
            value = inline if equals else words.pop(0)
            provider = value if name == "--provider" else provider
            model = value if name == "--model" else model
            _take(options, name, value)
        elif word.startswith("-"):
            raise Refused(f"Error: Unknown option: {word}")
        elif word.startswith("@"):
            raise Refused("Error: @file arguments are not supported in RPC mode")
    if options.version:
        return options
    if options.mode != "rpc":
        raise Refused("Error: this scripted pi has only --mode rpc; the terminal and print modes are not faked")
    if provider is not None and model is None:
        raise Refused("Error: --provider needs --model")
    if model is not None:
        before, slash, after = model.partition("/")
        options.provider, options.model = (before, after) if slash and provider is None else (provider or "fake", model)
    return options


def _take(options: Options, name: str, value: str) -> None:
    if name == "--mode":
        options.mode = value
    elif name == "--session":
        options.session = value
    elif name == "--name":
        options.name = value
    elif name == "--tools":
        options.tools = tuple(word for word in value.split(",") if word)
    elif name in ("-e", "--extension") and not os.path.exists(value):
        raise Refused(f"Error: Failed to load extension {value}: there is no such file")
