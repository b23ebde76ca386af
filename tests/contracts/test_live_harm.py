"""Nothing that a live run has not started is touched, and what it has started is removed whatever happens meanwhile."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from contracts.live.corner import Corner, RealFiles, clear, make_corner, remove_folder
from contracts.live.janitor import clear_after_others, remove_old_folders
from contracts.live.owner import Owner, new_owner, read_mark, this_machine
from contracts.live.peer import Peer
from contracts.live.probes.talk import _force_keys
from contracts.live.problem import GoneError
from contracts.live.run import _clear, _must_answer, _to_its_end
from contracts.live.session import EndedError
from contracts.live.sheet import Sheet
from contracts.live.stage import TOUCHING, ProbeSkippedError, Stage
from legion_terminal.link import Transport

NOT_A_PROCESS = 9_999_999_999


class Core:
    """A core in memory: terminals by address, and every call that was made. `deaf`: nothing is answered any more."""

    def __init__(self, *terminals: dict[str, Any]) -> None:
        self.terminals = {str(one["address"]): one for one in terminals}
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.deaf = False

    def connect(self, label: str) -> Transport:
        return _Link(self)

    async def pause(self, ms: int) -> None:
        await asyncio.sleep(0)

    def problem(self) -> str:
        return ""

    def touched(self) -> list[str]:
        return [f"{method} {params.get('terminal')}" for method, params in self.calls if method in TOUCHING]

    def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.calls.append((method, params))
        address = str(params.get("terminal"))
        if method == "terminal.list":
            if "labels" in params:
                return {"error": {"code": -32602, "message": "labels?", "data": {"kind": "invalid_params"}}}
            return {"result": {"terminals": list(self.terminals.values())}}
        if method == "hello":
            return {"result": {"core_id": "one"}}
        if address not in self.terminals:
            return {"error": {"code": -32000, "message": "no", "data": {"kind": "no_such_terminal"}}}
        if method == "terminal.kill":
            self.terminals[address]["state"] = "finished"
        if method == "terminal.rm":
            del self.terminals[address]
            return {"result": {}}
        return {"result": self.terminals[address]}


class _Link:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._coming: asyncio.Queue[bytes] = asyncio.Queue()

    async def open(self) -> None: ...

    async def write(self, data: bytes) -> None:
        request = msgspec.json.decode(data)
        if not self._core.deaf:
            reply = {"id": request["id"], **self._core.answer(request["method"], request.get("params") or {})}
            self._coming.put_nowait(msgspec.json.encode(reply) + b"\n")

    async def read(self) -> bytes:
        return await self._coming.get()

    async def close(self) -> None: ...

    def tail(self) -> str:
        return ""

    def ended(self) -> str | None:
        return None


def terminal(owner: Owner, address: str = "t7", **changes: Any) -> dict[str, Any]:
    name = f"lgv-{owner.token}-1x"
    return {
        "address": address, "name": name, "created_ms": 5, "state": "running", "labels": {"legion.live": owner.mark},
        **changes,
    }  # fmt: skip


def there(owner: Owner | None = None) -> Corner:
    return Corner(owner or new_owner(), Path("/nonexistent"), RealFiles())


async def on(core: Core, work: Callable[[Peer], Any]) -> Any:
    peer = Peer(core.connect("main"))
    await peer.open()
    try:
        return await work(peer)
    finally:
        await peer.close()


@pytest.mark.parametrize("method", sorted(TOUCHING))
def test_an_address_that_somebody_else_has_by_now_is_not_touched(method: str) -> None:
    corner = there()
    corner.took(terminal(corner.owner))
    core = Core(terminal(corner.owner, name="theirs", created_ms=6, labels={}))

    async def touch(peer: Peer) -> None:
        await Stage(core, corner, Sheet(), peer).on(method, "t7")

    with pytest.raises(ProbeSkippedError, match="is not what this run has started"):
        asyncio.run(on(core, touch))
    assert core.touched() == []


def test_a_terminal_that_is_not_as_it_was_is_left_alone_and_that_is_said() -> None:
    corner = there()
    corner.took(terminal(corner.owner))
    core = Core(terminal(corner.owner, labels={}))

    left = asyncio.run(on(core, lambda peer: clear(corner, peer)))

    assert left == ["terminal t7: it is not as it was when it was started, so it was left alone"]
    assert core.touched() == []


def test_an_address_that_was_given_to_somebody_else_is_nothing_that_was_left() -> None:
    corner = there()
    corner.took(terminal(corner.owner))
    core = Core(terminal(corner.owner, name="theirs", labels={}))

    assert asyncio.run(on(core, lambda peer: clear(corner, peer))) == []
    assert core.touched() == []


def test_a_start_whose_answer_never_came_is_removed_too() -> None:
    corner = there()
    corner.name("home")
    core = Core(terminal(corner.owner), terminal(new_owner(), "t8"))

    async def cleared(peer: Peer) -> list[str]:
        return await _clear(Stage(core, corner, Sheet(), peer), peer)

    assert asyncio.run(on(core, cleared)) == []
    assert list(core.terminals) == ["t8"]


def test_what_a_dead_run_has_left_is_found_in_a_core_that_narrows_no_list() -> None:
    dead = Owner("lvdead00", NOT_A_PROCESS // 10_000, "0x0", this_machine())
    core = Core(terminal(dead), terminal(new_owner(), "t8"), terminal(dead, "t9", name="theirs"))

    said = asyncio.run(on(core, clear_after_others))

    assert [words.partition(" (")[0] for words in said] == ["removed what the killed run lvdead00"]
    assert sorted(core.terminals) == ["t8", "t9"]


def test_a_label_that_names_no_possible_process_breaks_nothing(tmp_path: Path) -> None:
    mark = f"legion-live.lvaaaaaa.{NOT_A_PROCESS}.0x0.{this_machine()}"
    owner = read_mark(mark)
    assert owner is not None
    (tmp_path / f"lglive-lvaaaaaa-{NOT_A_PROCESS}-0x0-{this_machine()}-abc").mkdir()

    assert not owner.gone()
    assert remove_old_folders(tmp_path) == 0


def test_the_folder_of_a_run_on_another_machine_stays(tmp_path: Path) -> None:
    (tmp_path / f"lglive-lvaaaaaa-{NOT_A_PROCESS // 10_000}-0x0-00000000-abc").mkdir()

    assert remove_old_folders(tmp_path) == 0


def test_a_run_whose_processes_are_seen_from_elsewhere_is_on_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    here = this_machine()
    monkeypatch.setattr("contracts.live.owner._view", lambda: "pid:[1]")

    assert this_machine() != here


def test_the_folder_of_a_cassette_that_is_played_is_of_the_process_that_plays_it() -> None:
    corner = make_corner(Owner("lvaaaaaa", NOT_A_PROCESS // 10_000, "0x0", this_machine()))
    try:
        assert remove_old_folders(corner.folder.parent) >= 0
        assert f"-{os.getpid()}-" in corner.folder.name
        assert corner.folder.is_dir()
    finally:
        remove_folder(corner)


def test_a_removal_goes_on_to_its_end_however_often_it_is_called_off() -> None:
    ended: list[str] = []

    async def removal() -> None:
        for _ in range(5):
            await asyncio.sleep(0)
        ended.append("all")

    async def called_off() -> None:
        task = asyncio.create_task(_to_its_end(removal()))
        for _ in range(3):
            await asyncio.sleep(0)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(called_off())
    assert ended == ["all"]


def test_a_run_that_was_ended_says_what_it_had_to_leave() -> None:
    assert str(EndedError(15, ["terminal t7: no answer"])) == "ended by SIGTERM; left behind: terminal t7: no answer"


def test_a_core_that_answers_nothing_any_more_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contracts.live.run.HELLO_MS", 10)
    core = Core()
    core.deaf = True

    async def asked(peer: Peer) -> None:
        await _must_answer(Stage(core, there(), Sheet(), peer), "no answer to terminal.get")

    with pytest.raises(GoneError, match=r"does not answer any more: no answer to terminal\.get"):
        asyncio.run(on(core, asked))


def test_no_parameter_is_tried_that_might_type_into_other_terminals() -> None:
    stage = Stage(Core(), there(), Sheet(), None)  # type: ignore[arg-type]
    stage.described = {"terminal.send": ["terminal", "text", "all", "children", "evenIfBlocked"]}

    assert _force_keys(stage) == ["force", "override", "anyway", "evenIfBlocked"]
