"""Private copies of the three packages, and the edits that are made in them: the installed ones are never touched."""

import ast
import compileall
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import cache_from_source, find_spec
from pathlib import Path
from typing import Final

from contracts.violations.entries import PACKAGES, Edit, Violation, ViolationsError
from hc_sim.script.toml import FileError

MAX_FILE_BYTES: Final = 1024 * 1024
"""The largest file in which a violation is planted."""


class EditError(Exception):
    """An edit cannot be made; the message names the file."""


def installed() -> dict[str, Path]:
    """The folder of each package, as this process would import it."""
    places = {name: find_spec(name) for name in PACKAGES}
    return {name: Path(spec.origin).parent for name, spec in places.items() if spec is not None and spec.origin}


def snapshot(root: Path, packages: Mapping[str, Path]) -> None:
    """Copy the packages below `root`, compiled, so that every copy of the copy is imported quickly."""
    for name, folder in packages.items():
        shutil.copytree(folder, root / name)
    compileall.compile_dir(root, quiet=2, workers=1)


def plant(source: Path, root: Path, edits: Iterable[Edit]) -> None:
    """Make `root` a copy of the snapshot at `source` with the edits made. Raises `EditError`."""
    for name in PACKAGES:
        shutil.copytree(source / name, root / name, copy_function=_shared)
    for edit in edits:
        path = root / edit.file
        text = edited(_read(path, edit), edit)
        draft = path.with_name(f"{path.name}.new")  # the file itself is shared with the snapshot
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
        if path.suffix == ".py":
            Path(cache_from_source(str(path))).unlink(missing_ok=True)


def _shared(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def edited(text: str, edit: Edit) -> str:
    """The text with one edit made. Raises `EditError` unless what is to be replaced stands there exactly once."""
    count = text.count(edit.old)
    if count != 1:
        where = "does not hold" if count == 0 else f"holds {count} times"
        raise EditError(f"{edit.file} {where} the text that is to be replaced, {_short(edit.old)!r}")
    return text.replace(edit.old, edit.new)


def check_edits(violations: Sequence[Violation], packages: Mapping[str, Path]) -> None:
    """Try every edit on the packages as they are. Raises `ViolationsError` for those that have become stale."""
    problems = [problem for one in violations for problem in _stale(one, packages)]
    if problems:
        raise ViolationsError(problems)


def _stale(one: Violation, packages: Mapping[str, Path]) -> Iterable[FileError]:
    texts: dict[str, str] = {}
    for index, edit in enumerate(one.edits):
        key = "old" if len(one.edits) == 1 else f"edits[{index}].old"
        name, _, rest = edit.file.partition("/")
        try:
            text = texts.get(edit.file) or _read(packages[name] / rest, edit)
            texts[edit.file] = edited(text, edit)
        except (EditError, KeyError) as error:
            yield one.mistake(key, str(error))
            return
    for name, text in texts.items():
        if name.endswith(".py"):
            try:
                ast.parse(text)
            except SyntaxError as error:
                yield one.mistake("", f"{one.id}: {name} would be no Python any more: {error.msg}, line {error.lineno}")


def _read(path: Path, edit: Edit) -> str:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise EditError(f"{edit.file} is larger than {MAX_FILE_BYTES} bytes")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EditError(f"{edit.file} cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _short(text: str, limit: int = 60) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 3]}..."
