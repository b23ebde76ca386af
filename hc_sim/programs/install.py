"""Put the `hc` executable into a folder of the caller's choice, where HC_BIN or PATH can point to it.

It is not installed as a console script: that would hide a real `hc` from everyone who shares the environment.
"""

import sys
from pathlib import Path

_HERE = Path(__file__).parent
_SHEBANG_LIMIT = 120
"""Bytes of a first line that every kernel in use takes whole."""


def shebang(interpreter: str, flags: str) -> str:
    """The first lines of a script for this interpreter; the detour by `sh` is for paths that a kernel would cut."""
    line = f"#!{interpreter} {flags}".rstrip()
    if not any(letter.isspace() for letter in interpreter) and len(line.encode()) <= _SHEBANG_LIMIT:
        return line + "\n"
    quoted = '"' + "".join("\\" + letter if letter in '"$`\\' else letter for letter in interpreter) + '"'
    return f"#!/bin/sh\n'''exec' {quoted} {flags} \"$0\" \"$@\"\n' '''\n"


def write_program(path: Path, source: str, *, flags: str = "-IS") -> None:
    """Write a Python program as an executable, complete before it carries its name.

    `-IS`: neither the caller's environment nor the packages of this one are any of its business, and it starts faster.
    """
    draft = path.with_name(f".{path.name}.new")
    draft.write_text(shebang(sys.executable, flags) + source)
    draft.chmod(0o755)
    draft.replace(path)


def copy_program_source(folder: Path, source: str, name: str = "") -> None:
    """Put one of our own source files beside a program that loads it; the folder is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / (name or source)).write_text((_HERE / source).read_text())


def install_hc(directory: Path | str, *, name: str = "hc") -> Path:
    """Write the `hc` executable (and the module with its rarer verbs) into `directory`; returns its path.

    The folder is made if it is not there. Raises `OSError` when it cannot be written.
    """
    folder = Path(directory)
    copy_program_source(folder, "hc_verbs.py")
    write_program(folder / name, (_HERE / "hc.py").read_text())
    return folder / name
