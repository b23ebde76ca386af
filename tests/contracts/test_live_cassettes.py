"""Cassettes by hand: what is written, what is left out, how it is played, and what is wrong with files."""

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from contracts.live.cassettes import CassetteFiles, CassetteHost, Head, RecordingHost, TapeWriter, read_tape
from contracts.live.cassettes.recording import Cleaner, RecordingFiles
from contracts.live.cassettes.tape import OwnerSaid
from contracts.live.corner import Corner, RealFiles
from contracts.live.owner import new_owner
from contracts.live.peer import Peer
from contracts.live.problem import CassetteError
from hc_sim.clock import run_virtual
from legion_terminal.link import Transport

OWNER = msgspec.convert({"token": "lvaaaaaa", "pid": 1, "start": "", "machine": "00000000"}, OwnerSaid)
HEAD = Head(schema=1, date="2026-01-02", core="on PATH", owner=OWNER)


class Scripted:
    """A connection that answers each request line with what a function makes of it."""

    def __init__(self, answer: Callable[[dict[str, Any]], Any], delay_ms: int = 0) -> None:
        self._answer = answer
        self._delay = delay_ms / 1_000
        self._coming: asyncio.Queue[bytes] = asyncio.Queue()

    async def open(self) -> None: ...

    async def write(self, data: bytes) -> None:
        for line in data.splitlines():
            request = msgspec.json.decode(line)
            if request.get("method") == "hang-up":
                self._coming.put_nowait(b"")
                return
            await asyncio.sleep(self._delay)
            reply = {"id": request["id"], "jsonrpc": "2.0", "result": self._answer(request)}
            self._coming.put_nowait(msgspec.json.encode(reply) + b"\n")

    async def read(self) -> bytes:
        return await self._coming.get()

    async def close(self) -> None: ...

    def tail(self) -> str:
        return ""

    def ended(self) -> str | None:
        return "exit code 0"


class OneHost:
    def __init__(self, answer: Callable[[dict[str, Any]], Any], delay_ms: int = 0) -> None:
        self._answer = answer
        self._delay = delay_ms

    def connect(self, label: str) -> Transport:
        return Scripted(self._answer, self._delay)

    async def pause(self, ms: int) -> None:
        await asyncio.sleep(ms / 1_000)

    def problem(self) -> str:
        return ""


def corner(folder: Path) -> Corner:
    return Corner(new_owner("lvaaaaaa"), folder, RealFiles())


async def talked(host: Any, *calls: tuple[str, dict[str, Any]], label: str = "main") -> list[Any]:
    peer = Peer(host.connect(label))
    await peer.open()
    try:
        return [(await peer.ask(method, params)).result for method, params in calls]
    finally:
        await peer.close()


def record(
    tmp_path: Path, answer: Callable[[dict[str, Any]], Any], *calls: tuple[str, dict[str, Any]], delay: int = 0
) -> Path:
    path = tmp_path / "tape.jsonl"
    writer = TapeWriter(path, HEAD)
    host = RecordingHost(OneHost(answer, delay), writer, corner(tmp_path))
    asyncio.run(talked(host, *calls))
    writer.close()
    return path


def played(path: Path, folder: Path, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    return run_virtual(talked(CassetteHost(read_tape(path), folder), *calls))


def test_what_was_said_is_said_again(tmp_path: Path) -> None:
    calls = [("terminal.get", {"terminal": "t1"}), ("terminal.send", {"terminal": "t1", "text": "ö"})]
    path = record(tmp_path, lambda request: {"said": request["method"]}, *calls)

    assert played(path, tmp_path, *calls) == [{"said": "terminal.get"}, {"said": "terminal.send"}]
    assert path.stat().st_mode & 0o777 == 0o600


def test_looks_may_be_more_or_fewer_than_in_the_recording(tmp_path: Path) -> None:
    turns = iter(range(100))
    get, send = ("terminal.get", {"terminal": "t1"}), ("terminal.send", {"terminal": "t1", "text": "x"})
    path = record(tmp_path, lambda _: next(turns), get, get, get, send, get)

    assert played(path, tmp_path, get, send, get) == [0, 3, 4]
    assert played(path, tmp_path, get, get, get, get, get, send, get) == [0, 1, 2, 2, 2, 3, 4]


def test_a_reply_takes_as_long_as_it_took(tmp_path: Path) -> None:
    path = record(tmp_path, lambda _: 1, ("terminal.wait", {}), delay=60)

    async def timed() -> float:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await talked(CassetteHost(read_tape(path), tmp_path), ("terminal.wait", {}))
        return loop.time() - begun

    assert run_virtual(timed()) >= 0.055


def test_what_is_not_on_the_tape_is_one_clear_error(tmp_path: Path) -> None:
    path = record(tmp_path, lambda _: 1, ("hello", {}))

    with pytest.raises(CassetteError, match=r"does not hold what is asked: main#1: .*terminal\.kill"):
        played(path, tmp_path, ("terminal.kill", {"terminal": "t1"}))
    with pytest.raises(CassetteError, match="does not hold what is asked: a connection other#1"):
        run_virtual(talked(CassetteHost(read_tape(path), tmp_path), ("hello", {}), label="other"))


def test_places_of_this_machine_are_not_on_the_tape_and_those_of_the_next_one_come_back(tmp_path: Path) -> None:
    call = ("terminal.run", {"argv": [f"{tmp_path}/agent.py"]})
    path = record(tmp_path, lambda request: request["params"], call)
    other = tmp_path / "elsewhere"

    assert str(tmp_path) not in path.read_text()
    assert played(path, other, ("terminal.run", {"argv": [f"{other}/agent.py"]})) == [{"argv": [f"{other}/agent.py"]}]


def test_secrets_and_terminals_of_others_are_not_on_the_tape(tmp_path: Path) -> None:
    own = {"address": "t9", "argv": ["a"], "name": "lgv-lvaaaaaa-1x", "labels": {}}
    foreign = {"address": "t1", "argv": ["pi", "my own work"], "name": "mine", "labels": {"herdr.space": "s"}}
    path = record(
        tmp_path,
        lambda _: {"terminals": [foreign, own], "first": foreign, "note": "API_KEY=sk-abcdefghijklmnop1234"},
        ("terminal.list", {"all": True}),
    )

    text = path.read_text()
    assert "my own work" not in text
    assert "sk-abcdef" not in text
    assert played(path, tmp_path, ("terminal.list", {"all": True})) == [
        {"terminals": [own], "note": "API_KEY=(hidden)"}
    ]


def test_what_has_no_secret_is_kept_to_the_letter(tmp_path: Path) -> None:
    cleaner = Cleaner(corner(tmp_path))
    odd = b'{"b":9007199254740993, "a":1.50,"a":"\\u0041"}\n'

    assert cleaner.line(odd) == {"text": odd.decode()}
    assert cleaner.line(b"\xff\x00") == {"hex": "ff00"}


def test_files_of_programs_are_kept_and_put_back(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text('{"what": "start"}\n')
    path = tmp_path / "tape.jsonl"
    writer = TapeWriter(path, HEAD)
    there = corner(tmp_path)
    asyncio.run(RecordingFiles(RealFiles(), writer, there).read(tmp_path / "x.log", bool, 0))
    writer.close()
    new = tmp_path / "new"
    host = CassetteHost(read_tape(path), new)
    files = CassetteFiles(read_tape(path), new, host.miss)

    assert run_virtual(files.read(new / "x.log", bool, 0)) == '{"what": "start"}\n'
    assert (new / "x.log").read_text() == '{"what": "start"}\n'
    with pytest.raises(CassetteError, match=r"the file y\.log"):
        run_virtual(files.read(new / "y.log", bool, 0))


def test_a_recording_that_broke_off_cannot_be_played(tmp_path: Path) -> None:
    path = tmp_path / "tape.jsonl"
    writer = TapeWriter(path, HEAD)
    writer.add(c="main#1", t=0, out="x")
    writer.abandon()

    with pytest.raises(CassetteError, match="cut off"):
        read_tape(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("hello\n", "line 1: no cassette"),
        ('{"schema": 1}\n', "line 1: no cassette"),
        (json.dumps(msgspec.to_builtins(HEAD) | {"schema": 9}) + "\n", "schema 9"),
        (json.dumps(msgspec.to_builtins(HEAD)) + "\n{broken\n", "line 2: not a line"),
        (json.dumps(msgspec.to_builtins(HEAD)) + '\n{"unknown": 1}\n', "line 2: not a line"),
        (json.dumps(msgspec.to_builtins(HEAD)) + '\n{"c":"m#1","out":"x"}\n{"lines":2}\n', "not whole"),
    ],
)
def test_a_file_that_is_no_cassette_is_named_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "tape.jsonl"
    path.write_text(text)

    with pytest.raises(CassetteError, match=words):
        read_tape(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CassetteError, match=r"nothing\.jsonl cannot be read: No such file"):
        read_tape(tmp_path / "nothing.jsonl")


def test_what_is_no_cassette_is_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("my own work\n")

    with pytest.raises(CassetteError, match="is there and is no cassette, so it is not replaced"):
        TapeWriter(path, HEAD)
    assert path.read_text() == "my own work\n"
    assert list(tmp_path.iterdir()) == [path]


def test_an_older_cassette_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = record(tmp_path, lambda _: 1, ("hello", {}))
    path.chmod(0o644)
    whole = path.read_bytes()

    TapeWriter(path, HEAD).abandon()
    assert path.read_bytes() == whole
    assert list(tmp_path.iterdir()) == [path]

    TapeWriter(path, HEAD).close()
    assert read_tape(path).entries == []
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_is_no_file_is_no_cassette(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(CassetteError, match="it is no file"):
        read_tape(tmp_path / "pipe")


def test_a_frame_keeps_its_length_and_none_of_its_secrets(tmp_path: Path) -> None:
    cleaner = Cleaner(corner(tmp_path))
    for head in (b"\x00\x00\x00\x2a\x00", b"\x00\x00\x00\xaa\x00"):
        said = cleaner.line(head + b'{"auth_token":"hunter2hunter2","note":"x"}\n')

        assert bytes.fromhex(said["hex"]) == head + b'{"auth_token":"**************","note":"x"}\n'


def test_a_secret_that_is_spelt_in_another_way_takes_the_whole_frame_with_it(tmp_path: Path) -> None:
    said = Cleaner(corner(tmp_path)).line(b'\x00{"auth_token":"h\\u0075nter2"}\n')

    assert bytes.fromhex(said["hex"]) == b"\x00" + b"*" * (len(said["hex"]) // 2 - 1)


def test_terminals_of_others_are_left_out_of_a_compact_list_too(tmp_path: Path) -> None:
    said = Cleaner(corner(tmp_path)).line(b'{"terminals":[{"address":"t1","status":{"msg":"my own work"}}]}\n')

    assert said == {"text": '{"terminals":[]}\n'}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("lvaaaaaa", "../../x"), r"line 1: no cassette: .*token"),
        (('"schema":1', '"schema":2,"more":3'), "of schema 2, and this reads schema 1"),
        (('{"lines":0}', '{"hex":"zz"}\n{"lines":1}'), r"line 2: not a line of a cassette: .*hex"),
    ],
)
def test_what_was_changed_by_hand_is_named(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    path = tmp_path / "tape.jsonl"
    TapeWriter(path, HEAD).close()
    assert change[0] in path.read_text()
    path.write_text(path.read_text().replace(*change))

    with pytest.raises(CassetteError, match=words):
        read_tape(path)
