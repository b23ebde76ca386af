"""Where in a TOML text a key is written: a reader of headers, assignments and inline values that points at a line."""

import re
from collections.abc import Iterator

Key = tuple[str | int, ...]
"""A path of names and indices."""

_HEADER = re.compile(r"^\s*(\[\[?)\s*([^\[\]#]+?)\s*\]\]?\s*(?:#.*)?$")
_NAME = r"(?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')"
_ASSIGN = re.compile(rf"^\s*({_NAME}(?:\s*\.\s*{_NAME})*)\s*=\s*")
_PIECE = re.compile(
    r'"""(?:\\.|[^\\])*?"""'
    r"|'''.*?'''"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*|[\[\]{},=]|[^\s\[\]{},=#\"']+",
    re.DOTALL,
)
_LONG_QUOTES = re.compile("\"\"\"|'''")


def dotted(key: Key) -> str:
    """A key path as people write it: `world.agent[2].step[0].at_ms`."""
    text = ""
    for part in key:
        text += f"[{part}]" if isinstance(part, int) else (f".{part}" if text else part)
    return text


def line_of(text: str, key: Key) -> int:
    """The line (from 1) on which `key` is written, or of the innermost table or list around it; 1 at worst."""
    best, depth = 1, 0
    for number, offset, path in _writings(text):
        same = min(len(path), len(key))
        if path[:same] != key[:same]:
            continue
        found, deeper = (offset, 0) if offset < 0 else _descend(text, offset, key[same:])
        if same + deeper > depth:
            depth = same + deeper
            best = number if found == offset else text.count("\n", 0, found) + 1
    return best


def _writings(text: str) -> Iterator[tuple[int, int, Key]]:
    """Line, offset of the value (-1 for a header) and path of every header and assignment."""
    table: Key = ()
    counts: dict[Key, int] = {}
    quotes, start = "", 0
    for number, line in enumerate(text.split("\n"), start=1):
        if not quotes:
            header, assign = _HEADER.match(line), _ASSIGN.match(line)
            if header is not None:
                table = _table(_names(header.group(2)), counts, array=header.group(1) == "[[")
                yield number, -1, table
            elif assign is not None:
                yield number, start + assign.end(), (*table, *_names(assign.group(1)))
        quotes = _open_quotes(line, quotes)
        start += len(line) + 1


def _table(names: Key, counts: dict[Key, int], *, array: bool) -> Key:
    table: Key = ()
    for position, name in enumerate(names, start=1):
        table = (*table, name)
        if array and position == len(names):
            counts[table] = counts.get(table, -1) + 1
        if table in counts:
            table = (*table, counts[table])
    return table


def _descend(text: str, offset: int, rest: Key) -> tuple[int, int]:
    """Follow `rest` into the inline value at `offset`: where it leads to, and how many of its parts were found."""
    for depth, part in enumerate(rest):
        found = _element(text, offset, part) if isinstance(part, int) else _member(text, offset, part)
        if found is None:
            return offset, depth
        offset = found
    return offset, len(rest)


def _element(text: str, offset: int, index: int) -> int | None:
    """Where the element of this index begins in the list at `offset`."""
    begins = True
    for depth, start, piece in _pieces(text, offset, "["):
        if depth == 1 and piece == ",":
            begins, index = True, index - 1
        elif begins and start > offset and not piece.startswith("#"):
            if index == 0 and piece != "]":
                return start
            begins = False
    return None


def _member(text: str, offset: int, name: str) -> int | None:
    """Where the value of this name begins in the inline table at `offset`."""
    wanted = before = ""
    for depth, start, piece in _pieces(text, offset, "{"):
        if wanted and start > offset:
            return start
        if depth == 1 and piece == "=":
            wanted = name if before.strip("\"'") == name else ""
        before = piece
    return None


def _pieces(text: str, offset: int, opening: str) -> Iterator[tuple[int, int, str]]:
    """Depth, offset and text of each piece of the list or table that opens at `offset`; nothing if it does not."""
    if not text.startswith(opening, offset):
        return
    depth = 0
    for match in _PIECE.finditer(text, offset):
        piece = match.group()
        if piece in ("]", "}"):
            depth -= 1
            if depth == 0:
                return
        yield depth, match.start(), piece
        depth += piece in ("[", "{")


def _open_quotes(line: str, quotes: str) -> str:
    """The quotes of a text over several lines that is still open after `line`, when `quotes` were open before it."""
    for found in _LONG_QUOTES.findall(line):
        if not quotes:
            quotes = found
        elif quotes == found:
            quotes = ""
    return quotes


def _names(text: str) -> Key:
    return tuple(part.strip().strip("\"'") for part in text.split("."))
