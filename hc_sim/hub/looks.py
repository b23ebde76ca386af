"""The short way for lines that only look: many `terminal.get` at once, answered in one piece.

A supervisor polls; nearly all that a core is asked is how terminals are. Where nothing is planned, owed or going wrong,
such lines need not go through the whole machinery one by one. Whatever is not plainly a line of this kind, in the
plainest spelling, is left to the long way, which gives byte for byte the same answers; a test holds the two together.

Strictness costs nothing here: a line of this kind has exactly five members, each required and no other allowed, so
five colons a line say that none of them comes twice.
"""

import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from hc_sim.core.glances import Glances
from hc_sim.profile import WireProfile
from hc_sim.trace import Event

PIECE_BYTES = 65_536
"""Replies are put together up to about this size: larger blocks of memory are much dearer to come by."""
MAX_BYTES = 1_048_576
"""More than this is answered line by line instead, so that the reader's pace counts."""
MAX_READ_BYTES = 1_048_576
"""Requests that are taken in one go."""
MAX_HELD_BYTES = 65_536
"""Bytes of a line that has not ended which may wait for the rest of it."""
COLONS = 5
END = b"}\n"
NEWLINE = END[-1]

_ID = rb'(?:0|[1-9][0-9]{0,17}|"[ !#-\[\]-~]{0,200}")'
_IDS = re.compile(rb"%b(?:\n%b)*" % (_ID, _ID))
"""Ids that go back byte for byte without a second look: plain integers and plain texts."""


class _Target(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    terminal: str


class _Get(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    id: msgspec.Raw
    jsonrpc: Literal["2.0"]
    method: Literal["terminal.get"]
    params: _Target


class _All(msgspec.Struct, forbid_unknown_fields=True):
    all: bool | msgspec.UnsetType = msgspec.UNSET


class _List(msgspec.Struct, forbid_unknown_fields=True):
    id: msgspec.Raw
    jsonrpc: Literal["2.0"]
    method: Literal["terminal.list"]
    params: _All | msgspec.UnsetType = msgspec.UNSET


_GETS = msgspec.json.Decoder(_Get)
_LIST = msgspec.json.Decoder(_List)


class Looks(msgspec.Struct, gc=False):
    """Lines that were answered: their replies in a few pieces, what is left of the input (a line that has not ended),
    and what a trace has to know (nothing for a list)."""

    replies: list[bytes]
    rest: bytes = b""
    gets: list[_Get] = []


class Looker:
    """Answers lines that only look at the terminals of one core."""

    def __init__(self, glances: Glances, profile: WireProfile) -> None:
        self._glances = glances
        self._known = glances.known()
        self._plain = profile.target_key == "terminal" and not profile.strict_hello
        self._limit = min(profile.max_line_bytes, MAX_READ_BYTES)
        self._head = b'{"id":' if profile.sorted_keys else b'{"jsonrpc":"2.0","id":'
        self._middle = b',"jsonrpc":"2.0","result":' if profile.sorted_keys else b',"result":'

    def answer(self, data: bytes) -> Looks | None:
        """Answer lines that are all looks of one kind; None if the long way has to, and then nothing was done."""
        if not self._plain:
            return None
        if b'"terminal.get"' in data:
            lines = data.count(b"\n")
            return self._one(data) if lines == 1 and data[-1] == NEWLINE else self._several(data, lines)
        return self._list(data) if b'"terminal.list"' in data else None

    def _one(self, data: bytes) -> Looks | None:
        try:
            get = _GETS.decode(data)
        except msgspec.DecodeError:
            return None
        raw_id = get.id
        if data.count(b":") != COLONS or len(data) > self._limit or not _plain_ids([raw_id]):
            return None
        result = self._glances.get(get.params.terminal)
        if result is None:
            return None
        return Looks([b"".join((self._head, raw_id, self._middle, result, END))], b"", [get])

    def _several(self, data: bytes, lines: int) -> Looks | None:
        end = data.rfind(b"\n") + 1
        data, rest = data[:end], data[end:]
        if not lines or data.count(b":") != COLONS * lines or len(data) > self._limit or len(rest) > MAX_HELD_BYTES:
            return None
        if lines > 1 and data.count(b'"}}\n{"') != lines - 1 and data.count(b"}\n{") != lines - 1:
            return None  # a line may not end anywhere but between two requests
        try:
            gets = _GETS.decode_lines(data)
        except msgspec.DecodeError:
            return None
        ids = [get.id for get in gets]
        if len(gets) != lines or not _plain_ids(ids):
            return None
        results = self._results([get.params.terminal for get in gets])
        return None if results is None else Looks(self._replies(ids, results), rest, gets)

    def _results(self, targets: list[str]) -> list[bytes] | None:
        """What each target looks like; None if that cannot be said the short way."""
        known = self._known
        try:
            results = [known[target] for target in targets]
        except KeyError:
            seen = [self._glances.get(target) for target in targets]
            results = [result for result in seen if result is not None]
        return results if len(results) == len(targets) and sum(map(len, results)) <= MAX_BYTES else None

    def _replies(self, ids: list[msgspec.Raw], results: list[bytes]) -> list[bytes]:
        middle, following = self._middle, END + self._head
        replies = []
        for some in _slices(results):
            count = some.stop - some.start
            pieces: list[bytes | msgspec.Raw] = [middle] * (4 * count)
            pieces[0::4] = [following] * count
            pieces[0] = self._head
            pieces[1::4] = ids[some]
            pieces[3::4] = results[some]
            pieces.append(END)
            replies.append(b"".join(pieces))
        return replies

    def _list(self, data: bytes) -> Looks | None:
        try:
            asked = _LIST.decode(data)
        except msgspec.DecodeError:
            return None
        finished_too, colons = False, 3
        if not isinstance(asked.params, msgspec.UnsetType):
            colons += 1
            if not isinstance(asked.params.all, msgspec.UnsetType):
                finished_too, colons = asked.params.all, colons + 1
        if data.count(b":") != colons or data.find(b"\n") != len(data) - 1:
            return None
        if len(data) > self._limit or not _plain_ids([asked.id]):
            return None
        listed = self._glances.all(finished_too=finished_too)
        if not listed:
            return None
        head = b"".join((self._head, asked.id, self._middle, b'{"terminals":['))
        pieces = [b",".join(listed[some]) for some in _slices(listed)]
        return Looks([head + pieces[0], *(b"," + piece for piece in pieces[1:]), b"]}" + END])


def _slices(results: list[bytes]) -> list[slice]:
    """Cut so that each slice makes about `PIECE_BYTES`."""
    count = len(results)
    at_once = max(1, count * PIECE_BYTES // (sum(map(len, results)) + 1))
    return [slice(begin, min(begin + at_once, count)) for begin in range(0, count, at_once)]


def _plain_ids(ids: list[msgspec.Raw]) -> bool:
    """Whether these go back byte for byte without a second look: digits, or texts without anything odd."""
    return b"".join(ids).isdigit() or _IDS.fullmatch(b"\n".join(ids)) is not None


def events(looks: Looks, glances: Glances, conn: int, now: int) -> Iterator[Event]:
    """What the trace says about answered gets: the call and the reply of each."""
    for get in looks.gets:
        target = get.params.terminal
        id_ = msgspec.json.decode(get.id)
        call = Event(
            t=now, kind="call", conn=conn, id=id_, method="terminal.get", terminal=target, params={"terminal": target}
        )
        yield call
        result = msgspec.json.decode(glances.get(target) or b"null")
        yield msgspec.structs.replace(call, kind="reply", params=None, result=result)
