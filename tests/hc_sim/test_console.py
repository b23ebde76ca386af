import asyncio
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("prompt_toolkit")

from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from hc_sim.control.commands import Control, Feed
from hc_sim.control.console import LOG_LINES, Board, run_console
from hc_sim.core import Core
from hc_sim.driver import Driver
from hc_sim.hub.connection import Hub
from hc_sim.playing.fake import DrivenStage, FakeCore
from hc_sim.script.format import Agent, Step
from hc_sim.trace import Event

WAIT_S = 20
LINK = Event(t=1, kind="link", conn=1)


@pytest.fixture
def core() -> FakeCore:
    core = FakeCore(agents=[Agent(step=[Step(by_hand="allow", status="done")])])
    for name in ("alpha", "beta"):
        core.add_terminal(name, played=True)
    return core


@pytest.fixture
def board(core: FakeCore) -> Board:
    return Board(Control(core, Feed()))


def test_the_newest_terminal_is_chosen_until_somebody_chooses(core: FakeCore, board: Board) -> None:
    assert [chosen for chosen, _ in board.rows()] == [False, True]
    board.choose(-1)
    core.add_terminal("gamma")
    assert (board.chosen, [chosen for chosen, _ in board.rows()]) == ("t1", [True, False, False])


def test_choosing_stays_inside_the_list(board: Board) -> None:
    for _ in range(5):
        board.choose(-1)
    assert board.chosen == "t1"
    for _ in range(5):
        board.choose(1)
    assert board.chosen == "t2"


def test_a_chosen_terminal_that_is_gone_leaves_the_choice_to_the_newest(core: FakeCore, board: Board) -> None:
    board.choose(-1)
    core.agent("alpha").vanish()
    assert board.chosen == "t2"


def test_an_empty_core_can_be_looked_at() -> None:
    board = Board(Control(FakeCore(), Feed()))
    board.choose(1)
    board.move("w")
    assert (board.rows(), board.chosen) == ([], "")
    assert board.log[-1].startswith("! there is no terminal")


@pytest.mark.parametrize(
    ("key", "status"),
    [("w", "working"), ("d", "done"), ("b", "blocked"), ("i", "idle"), ("e", "error"), ("n", "none")],
)
def test_a_key_moves_the_chosen_terminal(core: FakeCore, board: Board, key: str, status: str) -> None:
    core.agent("alpha").working()
    core.agent("beta").working()
    board.choose(-1)
    board.move(key)
    assert (core.agent("alpha").status, core.agent("beta").status) == (status, "working")
    assert board.log[-1].startswith("t1  alpha")


def test_a_key_ends_the_program(core: FakeCore, board: Board) -> None:
    board.move("x")
    assert core.terminal("beta").exit_code == 0


def test_a_typed_line_is_a_command_or_a_word_for_steps_that_wait(core: FakeCore, board: Board) -> None:
    board.type("move beta error 'bad luck'")
    board.type("allow")
    board.type("   ")
    assert (core.agent("beta").status, core.agent("alpha").status) == ("error", "done")
    assert board.log[-1] == "1 step by hand: allow"


def test_what_cannot_be_done_is_said_in_the_log(board: Board) -> None:
    board.type("move beta 'x")
    board.type("move beta dancing")
    assert [line[:2] for line in board.log] == ["! ", "! "]


def test_events_are_shown_while_watching_is_on(board: Board) -> None:
    board.event(LINK)
    board.watch()
    board.event(LINK)
    board.watch()
    assert list(board.log) == ["    0.001   #1  connected", "watching is off", "watching is on"]


def test_the_log_is_bounded(board: Board) -> None:
    for _ in range(LOG_LINES + 10):
        board.event(LINK)
    assert len(board.log) == LOG_LINES


# ------------------------------------------------------------------- on a screen


def on_screen(*keys: str, until: Callable[[Core], bool]) -> Hub:
    """Press keys, and return the hub once `until` holds of its core and the console has ended."""

    async def main(pipe: Any) -> Hub:
        core, feed, ending = Core(), Feed(), asyncio.Event()
        for name in ("alpha", "beta"):
            core.add_terminal(name=name)
        driver = Driver(Hub(core), on_event=feed.add)
        control = Control(DrivenStage(driver), feed)
        running = asyncio.create_task(run_console(control, ending, "title", keys=pipe, screen=DummyOutput()))
        for group in keys:
            pipe.send_text(group)
        async with asyncio.timeout(WAIT_S):
            while not until(core):  # noqa: ASYNC110 - a core tells nobody
                await asyncio.sleep(0.001)
            pipe.send_text("\x03")
            await running
        assert ending.is_set()
        driver.close()
        return driver.hub

    with create_pipe_input() as pipe:
        return asyncio.run(main(pipe))


def status(core: Core, name: str) -> str:
    found = core.find(name)
    return found.status.state if found is not None and found.status is not None else "none"


def test_keys_move_agents_on_a_screen() -> None:
    hub = on_screen("w", "\x1b[A", "b", until=lambda core: status(core, "alpha") == "blocked")
    assert status(hub.core, "beta") == "working"


def test_commands_can_be_typed_one_after_the_other_and_an_empty_one_leads_back_to_the_keys() -> None:
    lines = ":move alpha done\rmove beta error\r\r"
    hub = on_screen(lines, "i", until=lambda core: status(core, "beta") == "idle")
    assert status(hub.core, "alpha") == "done"


def test_letters_of_a_command_are_not_taken_for_keys() -> None:
    hub = on_screen(":move alpha write wdbienx\r", until=lambda core: bool(core.trace.of("file")))
    assert hub.core.trace.of("state") == []


def test_a_fault_is_planned_from_the_f_key_on() -> None:
    hub = on_screen("fterminal.list reply=false\r\rw", until=lambda core: status(core, "beta") == "working")
    conn = hub.connect(0)
    hub.receive(conn, b'{"jsonrpc":"2.0","id":1,"method":"terminal.list","params":{}}\n', 0)
    assert hub.outgoing(0) == []


@pytest.mark.parametrize("how", ["q", "\x03", "told"])
def test_it_ends_by_key_or_when_it_is_told_to(how: str) -> None:
    async def main(pipe: Any) -> bool:
        core, feed, ending = Core(), Feed(), asyncio.Event()
        driver = Driver(Hub(core), on_event=feed.add)
        control = Control(DrivenStage(driver), feed)
        running = asyncio.create_task(run_console(control, ending, "title", keys=pipe, screen=DummyOutput()))
        await asyncio.sleep(0)
        if how == "told":
            ending.set()
        else:
            pipe.send_text(how)
        await asyncio.wait_for(running, WAIT_S)
        driver.close()
        return ending.is_set()

    with create_pipe_input() as pipe:
        assert asyncio.run(main(pipe))
