"""Starting, showing, listing, labelling and removing terminals."""

from typing import Any

import pytest

from hc_sim.core import Answer, Core
from hc_sim.model import WireError
from hc_sim.openrpc import openrpc
from hc_sim.profile import WireProfile
from hc_sim.script.format import Agent, Finish, Match, Step


def ok(core: Core, method: str, now: int = 0, /, **params: Any) -> Any:
    answer = core.call(method, params, now)
    assert isinstance(answer, Answer)
    assert answer.error is None, answer.error
    return answer.result


def refused(core: Core, method: str, now: int = 0, /, **params: Any) -> WireError:
    answer = core.call(method, params, now)
    assert isinstance(answer, Answer)
    assert answer.error is not None, answer.result
    return answer.error


# run


def test_run_answers_with_the_whole_terminal() -> None:
    core = Core(started_ms=1_000)
    parent = core.add_terminal()
    found = ok(
        core, "terminal.run", 250,
        argv=["/usr/bin/pi", "do it"], name="alpha", cwd="/w", labels={"a": "b"}, caller=parent,
    )  # fmt: skip
    assert found == {
        "address": "t2", "name": "alpha", "argv": ["/usr/bin/pi", "do it"], "cwd": "/w", "state": "running",
        "status": None, "turn": 0, "exit_code": None, "signal": None, "labels": {"a": "b"}, "parent": "t1",
        "die_with_parent": True, "keep": False, "created_ms": 1_250, "pid": found["pid"],
        "foreground": {"pid": found["pid"], "name": "pi"},
    }  # fmt: skip


def test_argv_travels_exactly() -> None:
    argv = ["pi", "", "-x", "a b", "$HOME", "line\nline", "é\u2028", "{}"]
    assert ok(Core(), "terminal.run", argv=argv)["argv"] == argv


def test_neither_argv_nor_line_starts_the_shell_of_the_profile() -> None:
    core = Core(WireProfile(shell="/bin/fish"))  # noqa: S604 - a name in a profile, nothing is run
    assert ok(core, "terminal.run")["argv"] == ["/bin/fish"]
    assert ok(core, "terminal.run", line="a | b")["argv"] == ["/bin/fish", "-c", "a | b"]


def test_a_program_sees_the_minimal_environment_with_the_overlay_over_it() -> None:
    core = Core(env={"LANG": "C", "OLD": "core"}, socket="/s/hc.sock")
    ok(core, "terminal.run", argv=["pi"], env={"OLD": "mine", "EMPTY": ""})
    (event,) = core.trace.of("run")
    assert event.env == {
        "PATH": "/usr/local/bin:/usr/bin", "LANG": "C", "OLD": "mine", "EMPTY": "",
        "HC_TERMINAL_ID": "t1", "HC_TERMINAL_SOCKET": "/s/hc.sock",
    }  # fmt: skip


def test_run_is_traced_with_what_was_started() -> None:
    core = Core()
    core.add_terminal(name="parent")
    ok(core, "terminal.run", 5, argv=["pi"], name="a", labels={"k": "v"}, cwd="/w", caller="parent")
    event = core.trace.of("run", terminal="a")[0]
    assert (event.t, event.terminal, event.argv, event.labels, event.cwd, event.parent) == (
        5, "t2", ["pi"], {"k": "v"}, "/w", "t1",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"argv": []}, "argv names no program"),
        ({"argv": [""]}, "argv names no program"),
        ({"argv": ["a\0b"]}, "NUL"),
        ({"argv": ["a"], "cwd": "/\0"}, "NUL"),
        ({"argv": ["a"], "line": "b"}, "not both"),
        ({"argv": "pi"}, 'parameter "argv" must be array or null, not str'),
        ({"argv": ["pi", 5]}, 'parameter "argv" at [1] must be str, not int'),
        ({"argv": ["pi"], "env": {"A": None}}, 'parameter "env" at [...] must be str, not null'),
        ({"argv": ["pi"], "env": {"A": 7}}, 'parameter "env" at [...] must be str'),
        ({"argv": ["pi"], "env": {"A=B": ""}}, "'A=B' is not a name of a variable"),
        ({"argv": ["pi"], "labels": {"a": 1}}, 'parameter "labels" at [...] must be str'),
        ({"argv": ["pi"], "name": "Alpha"}, "'Alpha' is not valid: a name is 1 to 32 characters"),
        ({"argv": ["pi"], "name": ""}, "'' is not valid"),
        ({"argv": ["pi"], "name": "a" * 33}, "is not valid"),
        ({"argv": ["pi"], "nmae": "a"}, 'unknown parameter "nmae"'),
    ],
)
def test_what_run_cannot_take_is_an_invalid_parameter_and_starts_nothing(params: dict[str, Any], says: str) -> None:
    core = Core()
    error = refused(core, "terminal.run", **params)
    assert (error.code, error.kind) == (-32602, "invalid_params")
    assert says in error.message
    assert core.terminals() == []
    assert core.trace.of("run") == []


def test_what_is_wrong_with_parameters_is_said_in_the_names_of_the_wire_and_not_in_the_words_of_a_library() -> None:
    core = Core(WireProfile(target_key="target"))
    assert refused(core, "terminal.get").message == 'terminal.get: parameter "target" is missing'
    assert refused(core, "terminal.get", target=7).message == 'terminal.get: parameter "target" must be str, not int'
    core.add_terminal(name="a")
    odd = refused(core, "terminal.wait", target="a", children="some").message
    assert odd == 'terminal.wait: parameter "children" has no value that can be taken'


@pytest.mark.parametrize("params", ["pi", 5, True])
def test_parameters_that_are_neither_object_nor_array_are_refused(params: Any) -> None:
    answer = Core().call("terminal.run", params, 0)
    assert isinstance(answer, Answer)
    assert answer.error is not None
    assert "an object or an array" in answer.error.message


def test_parameters_by_position_stand_in_the_order_of_the_description() -> None:
    core = Core(WireProfile(target_key="target"))
    core.add_terminal(name="a", status="working")
    answer = core.call("terminal.send", ["a", "hello"], 0)
    assert isinstance(answer, Answer)
    assert answer.error is None
    assert [event.text for event in core.trace.of("text")] == ["hello"]
    described = next(item for item in openrpc(core.profile)["methods"] if item["name"] == "terminal.send")
    assert [item["name"] for item in described["params"]] == ["target", "text", "force"]


def test_more_parameters_by_position_than_there_are_is_an_error() -> None:
    answer = Core().call("terminal.get", ["a", "b"], 0)
    assert isinstance(answer, Answer)
    assert answer.error is not None
    assert (answer.error.kind, "2 parameters" in answer.error.message) == ("invalid_params", True)


def test_an_argument_over_the_limit_fails_to_spawn_and_leaves_no_name_behind() -> None:
    core = Core()
    error = refused(core, "terminal.run", argv=["pi", "x" * 131_072], name="a")
    assert error.kind == "spawn_failed"
    assert "argument list too long" in error.message
    assert ok(core, "terminal.run", argv=["pi", "x" * 131_071], name="a")["name"] == "a"


def test_a_directory_that_is_gone_is_named() -> None:
    core = Core(cwd_exists=lambda path: path != "/gone")
    error = refused(core, "terminal.run", argv=["pi"], cwd="/gone", name="a")
    assert error.kind == "spawn_failed"
    assert '"/gone"' in error.message
    assert ok(core, "terminal.run", argv=["pi"], cwd="/there", name="a")["cwd"] == "/there"


def test_a_caller_that_is_not_there_is_refused() -> None:
    assert refused(Core(), "terminal.run", argv=["pi"], caller="t9").kind == "no_such_terminal"


# names


def test_a_live_name_is_taken_and_the_error_names_its_holder() -> None:
    core = Core()
    ok(core, "terminal.run", argv=["pi"], name="a")
    error = refused(core, "terminal.run", argv=["pi"], name="a")
    assert (error.kind, dict(error.extra)) == ("NAME_TAKEN", {"holder": "t1"})
    assert '"t1" (running)' in error.message
    assert len(core.terminals()) == 1


def test_a_finished_name_is_free_and_the_live_one_answers_to_it() -> None:
    core = Core()
    core.add_terminal(name="a", finished=1)
    assert ok(core, "terminal.get", terminal="a")["address"] == "t1"
    ok(core, "terminal.run", argv=["pi"], name="a")
    assert ok(core, "terminal.get", terminal="a")["address"] == "t2"
    assert ok(core, "terminal.get", terminal="t1")["state"] == "finished"


def test_of_finished_terminals_the_newest_answers_to_a_name() -> None:
    core = Core()
    for _ in range(3):
        address = ok(core, "terminal.run", argv=["pi"], name="a")["address"]
        ok(core, "terminal.kill", terminal="a")
    assert ok(core, "terminal.get", terminal="a")["address"] == address == "t3"
    ok(core, "terminal.rm", terminal="a")
    assert ok(core, "terminal.get", terminal="a")["address"] == "t2"


def test_an_address_is_looked_up_before_a_name() -> None:
    core = Core()
    core.add_terminal(name="t2")
    core.add_terminal(name="other")
    assert ok(core, "terminal.get", terminal="t2")["name"] == "other"


def test_an_unknown_terminal_is_an_error_that_names_it() -> None:
    for method in ("get", "interrupt", "kill", "rm", "keep", "wait", "read"):
        error = refused(Core(), f"terminal.{method}", terminal="nobody")
        assert (error.kind, '"nobody"' in error.message) == ("no_such_terminal", True)


# list


def test_list_shows_live_terminals_in_order_and_all_of_them_on_request() -> None:
    core = Core()
    core.add_terminal(name="a")
    core.add_terminal(name="b", finished=0)
    core.add_terminal(name="c")
    assert [row["name"] for row in ok(core, "terminal.list")["terminals"]] == ["a", "c"]
    assert [row["name"] for row in ok(core, "terminal.list", all=True)["terminals"]] == ["a", "b", "c"]


def test_list_narrows_to_terminals_that_carry_all_labels() -> None:
    core = Core()
    core.add_terminal(name="a", labels={"x": "1", "y": "1"})
    core.add_terminal(name="b", labels={"x": "1"})
    core.add_terminal(name="c", labels={"x": "2", "y": "1"})
    assert [row["name"] for row in ok(core, "terminal.list", labels={"x": "1"})["terminals"]] == ["a", "b"]
    assert [row["name"] for row in ok(core, "terminal.list", labels={"x": "1", "y": "1"})["terminals"]] == ["a"]


def test_a_list_row_is_the_complete_object() -> None:
    core = Core()
    core.add_terminal(status="working", labels={"a": "b"})
    (row,) = ok(core, "terminal.list")["terminals"]
    assert row == ok(core, "terminal.get", terminal="t1")


# keep, label, read


def test_keep_is_remembered() -> None:
    core = Core()
    ok(core, "terminal.run", argv=["pi"], keep=True)
    assert ok(core, "terminal.get", terminal="t1")["keep"] is True
    assert ok(core, "terminal.keep", terminal="t1", keep=False)["keep"] is False
    assert ok(core, "terminal.keep", terminal="t1")["keep"] is True


def test_labels_are_set_replaced_and_removed() -> None:
    core = Core()
    core.add_terminal(labels={"a": "1", "b": "2"})
    assert ok(core, "terminal.label", terminal="t1", labels={"b": "3", "c": "4", "a": None})["labels"] == {
        "b": "3", "c": "4",
    }  # fmt: skip


def test_an_answer_is_not_changed_by_what_happens_later() -> None:
    core = Core()
    core.add_terminal(labels={"a": "1"})
    before = ok(core, "terminal.get", terminal="t1")
    ok(core, "terminal.label", terminal="t1", labels={"a": "2"})
    assert before["labels"] == {"a": "1"}


def test_read_shows_the_last_lines_of_prompts_and_messages() -> None:
    core = Core()
    core.add_terminal(status="idle")
    for number in range(40):
        ok(core, "terminal.send", terminal="t1", text=f"p{number}")
    core.set_state("t1", status="working", msg="busy", now=0)
    assert ok(core, "terminal.read", terminal="t1", lines=2)["text"] == "> p39\nbusy"
    assert len(ok(core, "terminal.read", terminal="t1")["text"].splitlines()) == 24
    assert ok(core, "terminal.read", terminal="t1", lines=0)["text"] == ""
    assert refused(core, "terminal.read", terminal="t1", lines=-1).kind == "invalid_params"


# rm


def test_rm_of_a_live_terminal_is_refused_and_changes_nothing() -> None:
    core = Core()
    core.add_terminal()
    assert refused(core, "terminal.rm", terminal="t1").kind == "not_finished"
    assert ok(core, "terminal.get", terminal="t1")["state"] == "running"


def test_a_finished_terminal_stays_listed_until_rm() -> None:
    core = Core()
    core.add_terminal(finished=3)
    assert ok(core, "terminal.get", 10_000_000, terminal="t1")["exit_code"] == 3
    assert ok(core, "terminal.rm", terminal="t1") == {"removed": True}
    assert refused(core, "terminal.get", terminal="t1").kind == "no_such_terminal"
    assert refused(core, "terminal.rm", terminal="t1").kind == "no_such_terminal"
    assert ok(core, "terminal.list", all=True)["terminals"] == []
    assert [event.terminal for event in core.trace.of("gone")] == ["t1"]


def test_run_with_rm_leaves_nothing_once_the_program_has_ended() -> None:
    core = Core()
    ok(core, "terminal.run", argv=["true"], rm=True)
    ok(core, "terminal.kill", terminal="t1")
    assert core.terminals() == []


# who plays


def test_the_first_matching_agent_plays_and_uses_hand_over_to_the_next() -> None:
    agents = [
        Agent(match=Match(name="x*"), uses=1, status="idle"),
        Agent(match=Match(name="x*"), status="done", turn=4),
        Agent(match=Match(argv_has=["--flag"]), status="error"),
    ]
    core = Core(agents=agents)
    seen = [ok(core, "terminal.run", argv=["pi"], name=name) for name in ("x1", "x2", "x3")]
    assert [(found["status"]["state"], found["turn"]) for found in seen] == [("idle", 0), ("done", 4), ("done", 4)]
    assert ok(core, "terminal.run", argv=["pi", "--flag"])["status"] == {"state": "error", "app": "pi"}
    assert ok(core, "terminal.run", argv=["pi"])["status"] is None


def test_a_terminal_put_there_by_hand_is_played_only_when_asked() -> None:
    core = Core(agents=[Agent(status="idle")])
    core.add_terminal(name="a")
    core.add_terminal(name="b", played=True)
    assert [terminal.status is not None for terminal in core.terminals()] == [False, True]


@pytest.mark.parametrize("params", [{"name": "Bad Name"}, {"name": "a"}, {"parent": "t9"}])
def test_a_terminal_that_cannot_be_is_not_put_there(params: dict[str, Any]) -> None:
    core = Core()
    core.add_terminal(name="a")
    with pytest.raises(ValueError, match=r"name|terminal"):
        core.add_terminal(**params)
    assert len(core.terminals()) == 1


def test_a_timeline_that_cannot_be_played_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match=r"agent\[1\]\.step\[0\]: a step has exactly one trigger"):
        Core(agents=[Agent(), Agent(step=[Step(status="idle")])])


def test_state_moved_by_hand_shows_and_an_unknown_terminal_is_a_key_error() -> None:
    core = Core()
    core.add_terminal(name="a")
    core.set_state("a", turn=2, status="blocked", kind="permission", msg="may I?", now=5)
    found = ok(core, "terminal.get", 5, terminal="a")
    assert (found["turn"], found["status"]) == (
        2, {"state": "blocked", "app": "pi", "kind": "permission", "msg": "may I?"},
    )  # fmt: skip
    core.set_state("a", finish=Finish(code=3), now=6)
    assert ok(core, "terminal.get", 6, terminal="a")["exit_code"] == 3
    with pytest.raises(KeyError):
        core.set_state("b", turn=1, now=7)


def test_a_terminal_put_there_by_hand_is_plain_unless_told_otherwise() -> None:
    core = Core()
    core.add_terminal(status="done")
    found = ok(core, "terminal.get", terminal="t1")
    assert (found["status"], found["keep"]) == ({"state": "done", "app": "pi"}, False)
    assert (found["parent"], found["die_with_parent"], found["argv"]) == (None, False, ["/bin/bash"])


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("terminal.get", {"terminal": "x"}),
        ("terminal.rm", {"terminal": "a"}),
        ("terminal.run", {"name": "a"}),
        ("terminal.run", {"name": "A"}),
        ("terminal.run", {"argv": ["x" * 200_000]}),
        ("doc.get", {"name": "d"}),
        ("hello", {"generation": 2}),
        ("terminal.attach", {"terminal": "nobody"}),
        ("terminal.attach", {"terminal": "b", "cols": 0, "rows": 1}),
        ("nope", {}),
    ],
)
def test_every_error_says_what_and_hints_at_what_to_do(method: str, params: dict[str, Any]) -> None:
    core = Core()
    core.add_terminal(name="a")
    body = refused(core, method, **params).body()
    assert body.keys() == {"code", "message", "data"}
    assert body["message"]
    assert body["data"]["kind"]
    assert len(body["data"]["hint"]) > 10
