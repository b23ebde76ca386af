"""Starting a child: what travels, name collisions, lost replies (D4 to D7, A4; BC-067 to BC-083, BC-107 to BC-114)."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from legion_terminal.client import Answer, HcClient, Hello, Method
from legion_terminal.errors import Code, Known, SupervisorError
from legion_terminal.terminal import TerminalSupervisor
from legion_terminal.types import Child, SpawnRequest

NAME = "lgl-run00001-alpha"
ENV = {"HC_TERMINAL_ID": "t1", "HC_TERMINAL_SOCKET": "/s", "PATH": "/p", "HOME": "/h", "SECRET": "no"}
REQUEST = SpawnRequest(
    agent="centurion",
    run_id="run00001",
    handle="alpha",
    task="do the work",
    cwd="/w",
    session_file="/tmp/s.jsonl",
    worktree=True,
)
PARENT = {"address": "t1", "state": "running", "turn": 3, "labels": {"herdr.space": "s1", "herdr.tab": "x", "o": "y"}}

Reply = Mapping[str, Any] | SupervisorError


def core_error(kind: str) -> SupervisorError:
    return SupervisorError("call-failed", f"{kind} says the core", known="not-applied", kind=kind)


def lost(method: str) -> SupervisorError:
    return SupervisorError("outcome-unknown", f"{method}: the connection was closed", known="unknown")


class Core(HcClient):
    """Answers from a list, in order; each entry names the method that it answers."""

    def __init__(self, *script: tuple[str, Reply]) -> None:
        super().__init__(_no_transport)
        self.script = list(script)
        self.seen: list[tuple[str, dict[str, Any]]] = []
        self.links: list[int] = []
        self.asked = asyncio.Event()

    async def hello(self) -> Hello:
        self.seen.append(("hello", {}))
        return Hello(core_id="core-1")

    async def ask(
        self, method: Method, params: Mapping[str, Any], *, on_link: int = 0, within_ms: float | None = None
    ) -> Answer:
        self.asked.set()
        await asyncio.sleep(0)
        self.seen.append((method, dict(params)))
        self.links.append(on_link)
        expected, reply = self.script.pop(0)
        assert method == expected
        if isinstance(reply, SupervisorError):
            raise reply
        return Answer(result=dict(reply), core_id="core-1", link=4)

    def calls(self, method: str) -> list[dict[str, Any]]:
        return [params for name, params in self.seen if name == method]


def _no_transport() -> Any:
    raise AssertionError("no transport is opened here")


def terminal(**more: Any) -> dict[str, Any]:
    """What the core shows of the terminal that REQUEST starts."""
    core = Core(("terminal.get", PARENT), ("terminal.run", {"state": "running", "turn": 0}))
    asyncio.run(TerminalSupervisor(core, ENV).spawn(REQUEST))
    sent = core.calls("terminal.run")[0]
    shown = {key: sent[key] for key in ("name", "argv", "labels")}
    return {**shown, "address": "t9", "state": "running", "turn": 0, "parent": "t1", "created_ms": 1000, **more}


def spawn(core: Core, request: SpawnRequest = REQUEST) -> Child:
    return asyncio.run(TerminalSupervisor(core, ENV).spawn(request))


def refusal(core: Core, request: SpawnRequest = REQUEST) -> SupervisorError:
    with pytest.raises(SupervisorError) as caught:
        spawn(core, request)
    assert core.script == []
    return caught.value


def test_a_start_is_hello_then_the_parents_labels_then_one_run() -> None:
    core = Core(("terminal.get", PARENT), ("terminal.run", terminal(turn=2)))
    child = spawn(core)
    assert [method for method, _ in core.seen] == ["hello", "terminal.get", "terminal.run"]
    assert core.calls("terminal.get") == [{"terminal": "t1"}]
    sent = core.calls("terminal.run")[0]
    assert (sent["name"], sent["cwd"], sent["caller"]) == (NAME, "/w", "t1")
    assert sent["labels"] == {"legion.role": "centurion", "herdr.space": "s1"}
    assert sent["env"] == {"PATH": "/p", "HOME": "/h"}
    assert sent["argv"][0] == "pi"
    assert sent["argv"][-1].endswith("do the work")
    assert (child.name, child.address, child.core_id, child.created_ms) == (NAME, "t9", "core-1", 1000)
    assert child.argv == tuple(sent["argv"])
    assert child.prompt_turn == child.spawn_turn == 2
    assert child.mode == "terminal"


def test_memory_settings_come_before_the_requests_own_environment() -> None:
    core = Core(("terminal.get", PARENT), ("terminal.run", terminal()))
    supervisor = TerminalSupervisor(core, ENV, memory_env={"NODE_OPTIONS": "m", "X": "m"})
    asyncio.run(supervisor.spawn(replace(REQUEST, env={"NODE_OPTIONS": "i", "GONE": None})))
    assert core.calls("terminal.run")[0]["env"] == {"PATH": "/p", "HOME": "/h", "NODE_OPTIONS": "i", "X": "m"}


def test_a_result_wrapped_in_a_terminal_member_is_understood() -> None:
    child = spawn(Core(("terminal.get", {"terminal": PARENT}), ("terminal.run", {"terminal": terminal()})))
    assert child.address == "t9"


@pytest.mark.parametrize(
    ("first", "reads", "spaces", "callers"),
    [
        (PARENT, 1, ["s1", "s1"], ["t1", "t1"]),
        ({"state": "running", "turn": 0, "labels": {}}, 1, [None, None], ["t1", "t1"]),
        (core_error("no_such_terminal"), 1, [None, None], [None, None]),
        (SupervisorError("call-timeout", "no answer", known="not-applied"), 2, [None, "s1"], ["t1", "t1"]),
        (core_error("internal"), 2, [None, "s1"], ["t1", "t1"]),
    ],
)
def test_the_parent_is_read_once_and_failing_to_read_it_fails_nothing(
    first: Reply, reads: int, spaces: list[str | None], callers: list[str | None]
) -> None:
    script: list[tuple[str, Reply]] = [("terminal.get", first), ("terminal.run", terminal())]
    script += [("terminal.get", PARENT)] * (reads - 1) + [("terminal.run", terminal(name="lgl-run00001-beta"))]
    core = Core(*script)

    async def main() -> None:
        supervisor = TerminalSupervisor(core, ENV)
        await supervisor.spawn(REQUEST)
        await supervisor.spawn(replace(REQUEST, handle="beta"))

    asyncio.run(main())
    runs = core.calls("terminal.run")
    assert [run["labels"].get("herdr.space") for run in runs] == spaces
    assert [run.get("caller") for run in runs] == callers
    assert core.script == []


def test_two_starts_at_once_read_the_parent_once() -> None:
    beta = terminal(name="lgl-run00001-beta", address="t10")
    core = Core(("terminal.get", PARENT), ("terminal.run", terminal()), ("terminal.run", beta))

    async def main() -> None:
        supervisor = TerminalSupervisor(core, ENV)
        await asyncio.gather(supervisor.spawn(REQUEST), supervisor.spawn(replace(REQUEST, handle="beta")))

    asyncio.run(main())
    assert len(core.calls("terminal.get")) == 1


@pytest.mark.parametrize("agent", ["worker", "scout", "vexillatio", "Centurion", ""])
def test_other_roles_are_refused_without_a_call(agent: str) -> None:
    core = Core()
    assert refusal(core, replace(REQUEST, agent=agent)).code == "bad-request"
    assert core.seen == []


@pytest.mark.parametrize("bad", [{"task": "x" * 200_000}, {"env": {"A": "\0"}}, {"handle": ""}, {"task": "\udc80"}])
def test_what_no_core_could_take_is_refused_without_a_call(bad: dict[str, Any]) -> None:
    core = Core()
    assert refusal(core, replace(REQUEST, **bad)).code == "bad-request"
    assert core.seen == []


@pytest.mark.parametrize("kind", ["name_taken", "name_in_use"])
def test_a_live_holder_is_named_and_left_alone(kind: str) -> None:
    core = Core(
        ("terminal.get", PARENT),
        ("terminal.run", core_error(kind)),
        ("terminal.get", terminal(address="t5", status={"state": "working"}, turn=1)),
    )
    error = refusal(core)
    assert (error.code, error.known, error.child) == ("name-taken", "not-applied", NAME)
    assert "t5" in error.message
    assert "running" in error.message


def test_a_finished_holder_is_removed_by_its_address_and_the_start_is_tried_once_more() -> None:
    core = Core(
        ("terminal.get", PARENT),
        ("terminal.run", core_error("name_taken")),
        ("terminal.get", terminal(address="t5", state="finished")),
        ("terminal.rm", {}),
        ("terminal.run", terminal()),
    )
    assert spawn(core).address == "t9"
    assert core.calls("terminal.rm") == [{"terminal": "t5"}]
    assert core.links[3] == 4
    first, second = core.calls("terminal.run")
    assert first == second


def test_a_holder_that_went_away_by_itself_leaves_the_way_free() -> None:
    core = Core(
        ("terminal.get", PARENT),
        ("terminal.run", core_error("name_taken")),
        ("terminal.get", terminal(address="t5", state="finished")),
        ("terminal.rm", core_error("no_such_terminal")),
        ("terminal.run", terminal()),
    )
    assert spawn(core).address == "t9"


def test_a_name_taken_again_after_the_removal_ends_it_after_two_runs() -> None:
    core = Core(
        ("terminal.get", PARENT),
        ("terminal.run", core_error("name_taken")),
        ("terminal.get", terminal(address="t5", state="finished")),
        ("terminal.rm", {}),
        ("terminal.run", core_error("name_taken")),
    )
    assert refusal(core).code == "name-taken"


def test_another_failure_of_the_second_run_is_told_as_it_is() -> None:
    core = Core(
        ("terminal.get", PARENT),
        ("terminal.run", core_error("name_taken")),
        ("terminal.get", terminal(address="t5", state="finished")),
        ("terminal.rm", {}),
        ("terminal.run", core_error("spawn_failed")),
    )
    assert refusal(core).kind == "spawn_failed"


def test_a_holder_that_is_another_child_here_under_a_new_name_is_not_removed() -> None:
    beta = {**terminal(name="lgl-run00001-beta", address="t5"), "name": "lgl-run00001-beta"}
    core = Core(
        ("terminal.get", PARENT),
        ("terminal.run", beta),
        ("terminal.run", core_error("name_taken")),
        ("terminal.get", terminal(address="t5", state="finished")),
    )

    async def main() -> None:
        supervisor = TerminalSupervisor(core, ENV)
        await supervisor.spawn(replace(REQUEST, handle="beta"))
        with pytest.raises(SupervisorError) as caught:
            await supervisor.spawn(REQUEST)
        assert caught.value.code == "name-taken"
        assert "another child" in caught.value.message

    asyncio.run(main())
    assert core.calls("terminal.rm") == []


def test_an_answer_about_a_terminal_of_another_name_is_not_taken_for_the_child() -> None:
    core = Core(("terminal.get", PARENT), ("terminal.run", terminal(name="other")))
    error = refusal(core)
    assert (error.code, error.known) == ("protocol", "unknown")


@pytest.mark.parametrize(
    "rest",
    [
        [("terminal.get", core_error("no_such_terminal"))],
        [("terminal.get", SupervisorError("call-timeout", "no answer", known="not-applied"))],
        [("terminal.get", {"name": "lgl-run00001-alphabet", "address": "t5", "state": "finished", "turn": 0})],
        [("terminal.get", {"name": NAME, "state": "finished", "turn": 0})],
        [
            ("terminal.get", {"name": NAME, "address": "t5", "state": "finished"}),
            ("terminal.rm", core_error("not_finished")),
        ],
        [("terminal.get", {"name": NAME, "address": "t5", "state": "finished"}), ("terminal.rm", lost("terminal.rm"))],
    ],
    ids=["unknown", "unseen", "prefix", "no-address", "rm-refused", "rm-lost"],
)
def test_a_holder_that_cannot_be_told_or_removed_for_certain_ends_it(rest: list[tuple[str, Reply]]) -> None:
    core = Core(("terminal.get", PARENT), ("terminal.run", core_error("name_taken")), *rest)
    assert refusal(core).code == "name-taken"
    assert len(core.calls("terminal.run")) == 1


def test_a_name_of_another_child_of_this_supervisor_is_refused_before_any_call() -> None:
    core = Core(("terminal.get", PARENT), ("terminal.run", terminal()))

    async def main() -> None:
        supervisor = TerminalSupervisor(core, ENV)
        await supervisor.spawn(replace(REQUEST, handle="alpha"))
        before = len(core.seen)
        with pytest.raises(SupervisorError) as caught:
            await supervisor.spawn(REQUEST)
        assert caught.value.code == "name-taken"
        assert "'alpha'" in caught.value.message
        assert len(core.seen) == before

    asyncio.run(main())


def test_two_starts_of_one_name_at_once_do_not_both_happen() -> None:
    core = Core(("terminal.get", PARENT), ("terminal.run", terminal(name="lgl-run00001-a-b")))

    async def main() -> None:
        supervisor = TerminalSupervisor(core, ENV)
        starts = (supervisor.spawn(replace(REQUEST, handle=handle)) for handle in ("a b", "a.b"))
        results = await asyncio.gather(*starts, return_exceptions=True)
        assert [type(result) for result in results] == [Child, SupervisorError]

    asyncio.run(main())


def test_a_failed_start_leaves_its_name_free_for_the_next() -> None:
    core = Core(("terminal.get", PARENT), ("terminal.run", core_error("spawn_failed")), ("terminal.run", terminal()))

    async def main() -> None:
        supervisor = TerminalSupervisor(core, ENV)
        with pytest.raises(SupervisorError) as caught:
            await supervisor.spawn(REQUEST)
        assert (caught.value.code, caught.value.kind, caught.value.child) == ("call-failed", "spawn_failed", NAME)
        assert "/w" in caught.value.message
        assert (await supervisor.spawn(REQUEST)).address == "t9"

    asyncio.run(main())


@pytest.mark.parametrize(
    ("shown", "prompt_turn"),
    [
        ({"turn": 0}, 0),
        ({"turn": 0, "status": {"state": "idle"}}, 0),
        ({"turn": 1, "status": {"state": "working"}}, 0),
        ({"turn": 1, "status": {"state": "done"}}, 0),
        ({"turn": 1, "status": {"state": "idle"}}, 1),
    ],
)
def test_a_start_whose_reply_was_lost_is_adopted_when_everything_matches(
    shown: dict[str, Any], prompt_turn: int
) -> None:
    core = Core(("terminal.get", PARENT), ("terminal.run", lost("terminal.run")), ("terminal.get", terminal(**shown)))
    child = spawn(core)
    assert (child.address, child.prompt_turn, child.spawn_turn) == ("t9", prompt_turn, prompt_turn)
    assert core.calls("terminal.get")[1] == {"terminal": NAME}
    assert len(core.calls("terminal.run")) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"argv": ["pi", "other"]},
        {"labels": {"legion.role": "centurion"}},
        {"labels": {"legion.role": "centurion", "herdr.space": "s2"}},
        {"parent": "t2"},
        {"parent": None},
        {"name": None},
        {"state": "finished"},
    ],
)
def test_a_terminal_that_differs_is_not_adopted_and_not_touched(other: dict[str, Any]) -> None:
    core = Core(("terminal.get", PARENT), ("terminal.run", lost("terminal.run")), ("terminal.get", terminal(**other)))
    error = refusal(core)
    assert (error.code, error.known, error.child) == ("outcome-unknown", "unknown", NAME)
    assert NAME in error.hint


@pytest.mark.parametrize(
    "looked", [core_error("no_such_terminal"), SupervisorError("host-unreachable", "no core", known="not-sent")]
)
def test_a_lost_start_that_cannot_be_found_is_unknown(looked: SupervisorError) -> None:
    core = Core(("terminal.get", PARENT), ("terminal.run", lost("terminal.run")), ("terminal.get", looked))
    assert refusal(core).code == "outcome-unknown"


def test_an_answer_that_describes_no_terminal_counts_as_lost() -> None:
    core = Core(("terminal.get", PARENT), ("terminal.run", {"killed": True}), ("terminal.get", terminal()))
    assert spawn(core).address == "t9"


@pytest.mark.parametrize(
    ("code", "known"), [("host-unreachable", "not-sent"), ("bad-request", "not-sent"), ("protocol", "not-applied")]
)
def test_other_failures_of_a_start_are_passed_on_with_the_childs_name(code: Code, known: Known) -> None:
    core = Core(("terminal.get", PARENT), ("terminal.run", SupervisorError(code, "m", known=known)))
    assert refusal(core) == SupervisorError(code, "m", child=NAME, known=known)


def test_outside_a_terminal_nothing_is_read_and_there_is_no_caller() -> None:
    core = Core(("terminal.run", terminal(parent=None)))
    asyncio.run(TerminalSupervisor(core, {"PATH": "/p"}).spawn(REQUEST))
    assert "caller" not in core.calls("terminal.run")[0]


def test_a_start_that_is_called_off_is_retired_and_keeps_its_name_until_then() -> None:
    finished = terminal(state="finished")
    script: list[tuple[str, Reply]] = [
        ("terminal.get", PARENT),
        ("terminal.run", terminal()),
        ("terminal.get", terminal()),
    ]
    core = Core(*script, ("terminal.kill", {}), ("terminal.get", finished), ("terminal.rm", {}))

    async def main() -> None:
        supervisor = TerminalSupervisor(core, ENV)
        starting = asyncio.create_task(supervisor.spawn(REQUEST))
        await core.asked.wait()
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        with pytest.raises(SupervisorError) as caught:
            await supervisor.spawn(REQUEST)
        assert caught.value.code == "name-taken"
        await supervisor.close()

    asyncio.run(main())
    assert core.script == []


def test_a_start_that_is_called_off_and_fails_leaves_nothing_to_do() -> None:
    core = Core(("terminal.get", PARENT), ("terminal.run", core_error("spawn_failed")))

    async def main() -> None:
        supervisor = TerminalSupervisor(core, ENV)
        starting = asyncio.create_task(supervisor.spawn(REQUEST))
        await core.asked.wait()
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        await supervisor.close()

    asyncio.run(main())
    assert core.script == []


def test_a_closed_supervisor_starts_nothing() -> None:
    core = Core()

    async def main() -> None:
        supervisor = TerminalSupervisor(core, ENV)
        await supervisor.close()
        with pytest.raises(SupervisorError) as caught:
            await supervisor.spawn(REQUEST)
        assert caught.value.code == "closed"

    asyncio.run(main())


def test_nothing_is_claimed_of_prompts_or_events() -> None:
    claimed = TerminalSupervisor(Core(), ENV).capabilities
    assert not claimed.prompt_disposition
    assert not claimed.events
