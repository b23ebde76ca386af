"""Every field of a profile has a reason, and its value changes what the fake does."""

import json
from collections.abc import Callable
from typing import Any, get_args

import msgspec
import pytest

from hc_sim.core import Answer, Core, Pending
from hc_sim.core.parameters import asks_for_frames
from hc_sim.hosting.hearing import Hearing
from hc_sim.hub.connection import Hub
from hc_sim.model import Certainty, Status
from hc_sim.profile import WireProfile, reasons
from hc_sim.script.format import Agent, Finish, Step
from hc_sim.wire import Frame, FrameSplitter, Refusal, TooBig, decode, encode_frame, encode_result, refuse_line

Look = Callable[[WireProfile], Any]


def answer(core: Core, method: str, now: int = 0, /, **params: Any) -> Any:
    """The result, or the kind of the error."""
    found = core.call(method, params, now)
    if isinstance(found, Pending):
        return "pending"
    assert isinstance(found, Answer)
    return found.result if found.error is None else found.error.kind


def error(profile: WireProfile, method: str, /, **params: Any) -> dict[str, Any]:
    found = Core(profile).call(method, params, 0)
    assert isinstance(found, Answer)
    assert found.error is not None
    return found.error.body()


def first(profile: WireProfile, method: str, /, **params: Any) -> Any:
    return answer(Core(profile), method, **params)


def shown(profile: WireProfile, *steps: Step, now: int = 0, **manners: Any) -> dict[str, Any]:
    core = Core(profile, agents=[Agent(step=list(steps), **manners)])
    answer(core, "terminal.run", argv=["pi"])
    found: dict[str, Any] = answer(core, "terminal.get", now, terminal="t1")
    return found


def closes(profile: WireProfile) -> bool:
    found = decode(b"[]", profile)
    assert isinstance(found, Refusal)
    return found.close


def oversized(profile: WireProfile) -> bool | None:
    found = refuse_line(profile)
    return None if found is None else found.close


def addresses(profile: WireProfile) -> list[str]:
    core = Core(profile)
    for _ in range(2):
        answer(core, "terminal.run", argv=["pi"])
    answer(core, "terminal.kill", terminal="t1")
    answer(core, "terminal.rm", terminal="t1")
    answer(core, "terminal.run", argv=["pi"])
    return [terminal.address for terminal in core.terminals()]


def after_finished(profile: WireProfile, method: str, **params: Any) -> Any:
    core = Core(profile)
    core.add_terminal(name="a", finished=0)
    return answer(core, method, **params)


def child_dies(profile: WireProfile, now: int = 0) -> str:
    core = Core(profile)
    core.add_terminal()
    answer(core, "terminal.run", argv=["pi"], caller="t1")
    answer(core, "terminal.kill", terminal="t1")
    return str(answer(core, "terminal.get", now, terminal="t2")["state"])


def turns(profile: WireProfile, *words: Any) -> list[int]:
    core = Core(profile, agents=[Agent(step=[Step(after_ms=1, status=word) for word in words])])
    answer(core, "terminal.run", argv=["pi"])
    return [answer(core, "terminal.get", now, terminal="t1")["turn"] for now in range(1, len(words) + 1)]


def pair(profile: WireProfile, now: int) -> tuple[int, str]:
    found = shown(profile, Step(at_ms=100, turn=1, status="working"), status="idle", now=now)
    return found["turn"], found["status"]["state"]


def read_then_look(profile: WireProfile) -> str:
    core = Core(profile)
    core.add_terminal(status="done")
    answer(core, "terminal.read", terminal="t1")
    return str(answer(core, "terminal.get", terminal="t1")["status"]["state"])


def sent(profile: WireProfile, **manners: Any) -> Any:
    core = Core(profile, agents=[Agent(**manners)])
    answer(core, "terminal.run", argv=["pi"])
    return answer(core, "terminal.send", terminal="t1", text="x")


def interrupted(profile: WireProfile) -> str:
    core = Core(profile)
    core.add_terminal(status="working")
    answer(core, "terminal.interrupt", terminal="t1")
    return str(answer(core, "terminal.get", terminal="t1")["status"]["state"])


def checks_in_at(profile: WireProfile) -> int | None:
    core = Core(profile)
    core.add_terminal(status="working")
    answer(core, "terminal.wait", terminal="t1")
    return core.next_due()


def filled(profile: WireProfile, method: str, params: Callable[[int], dict[str, Any]]) -> list[Any]:
    core = Core(profile)
    core.add_terminal(status="working")
    core.add_terminal()
    return [answer(core, method, **params(number)) for number in range(3)]


def version_after(profile: WireProfile) -> Any:
    return first(profile, "doc.set", name="d", value=0)["version"]


LIVE = Step(at_ms=0, status="idle")
DEAD = Step(at_ms=0, finish=Finish(signal="SIGTERM"))

EFFECTS: dict[str, tuple[Any, Look]] = {
    "version": ("1.2.3", lambda p: first(p, "hello")["version"]),
    "generation": (2, lambda p: first(p, "hello")["generation"]),
    "refuse_other_generation": (False, lambda p: isinstance(first(p, "hello", generation=9), dict)),
    "strict_hello": (True, lambda p: first(p, "server.status") == "hello_required"),
    "hello_aliases": ({"core_id": ["core_key"]}, lambda p: sorted(first(p, "hello"))),
    "hello_reply": ("frame", lambda p: Framed(p).greeting[:1]),
    "hello_extra": ({"mode": "plain"}, lambda p: first(p, "hello").get("mode")),
    "pid": (7, lambda p: first(p, "server.status")["pid"]),
    "require_jsonrpc": (False, lambda p: isinstance(decode(b'{"id":1,"method":"x"}', p), Refusal)),
    "batches": ("close", closes),
    "positional": ("refuse", lambda p: positional(p)),
    "id_types": ("standard", lambda p: isinstance(decode(b'{"jsonrpc":"2.0","id":[],"method":"x"}', p), Refusal)),
    "sorted_keys": (False, lambda p: encode_result(1, {"b": 0, "a": 0}, p)),
    "max_line_bytes": (99, lambda p: "99" in str(refuse_line(p))),
    "oversize": ("error", oversized),
    "kind_style": ("upper", lambda p: first(p, "terminal.get", terminal="t1")),
    "kinds": ({"no_such_terminal": "NOT_FOUND"}, lambda p: first(p, "terminal.get", terminal="t1")),
    "codes": ({"unknown_method": -1}, lambda p: error(p, "pane.list")["code"]),
    "other_code": (-32050, lambda p: error(p, "terminal.get", terminal="t1")["code"]),
    "unknown_params": ("ignore", lambda p: first(p, "server.status", odd=1) == "invalid_params"),
    "caller_key": ("from", lambda p: first(p, "terminal.run", **{"from": "t7"})),
    "force_key": ("override", lambda p: first(p, "terminal.send", terminal="t1", text="", override=True)),
    "timeout_key": ("ms", lambda p: first(p, "terminal.wait", terminal="t1", ms=1)),
    "ended_key": ("over", lambda p: sorted(after_finished(p, "terminal.wait", terminal="a"))),
    "target_key": ("target", lambda p: first(p, "terminal.get", target="t1")),
    "address_style": ("suffix", lambda p: first(p, "terminal.run", argv=["pi"])["address"]),
    "reuse_addresses": (True, addresses),
    "live_state": ("live", lambda p: shown(p)["state"]),
    "exit_code_key": ("exit", lambda p: "exit" in shown(p)),
    "signal_key": ("killed_by", lambda p: "killed_by" in shown(p)),
    "signal_style": ("exit-128", lambda p: (shown(p, DEAD)["exit_code"], shown(p, DEAD)["signal"])),
    "absent_keys": ("null", lambda p: "msg" in shown(p, LIVE)["status"]),
    "no_status": ("omit", lambda p: "status" in shown(p)),
    "wrap_terminal": (True, lambda p: "terminal" in first(p, "terminal.run", argv=["pi"])),
    "finished_names_block": (True, lambda p: after_finished(p, "terminal.run", argv=["pi"], name="a") == "NAME_TAKEN"),
    "rm_live": ("kill", lambda p: filled(p, "terminal.rm", lambda _: {"terminal": "t1"})),
    "get_removed": ("last", lambda p: removed(p)),
    "kill_finished": ("accept", lambda p: after_finished(p, "terminal.kill", terminal="a")),
    "shell": ("/bin/dash", lambda p: first(p, "terminal.run")["argv"]),
    "core_path": ("/opt/bin", lambda p: core_path(p)),
    "core_cwd": ("/root", lambda p: shown(p)["cwd"]),
    "die_with_parent": (False, child_dies),
    "cascade": ("none", child_dies),
    "cascade_ms": (5, child_dies),
    "hangup_signal": ("SIGTERM", lambda p: filled_end(p)),
    "first_turn": (1, lambda p: shown(p)["turn"]),
    "turn_rule": ("work-starts", lambda p: turns(p, "idle", "working", "blocked", "working", "done", "working")),
    "torn": ("turn-first", lambda p: pair(p, 100)),
    "torn_ms": (10, lambda p: pair(msgspec.structs.replace(p, torn="turn-first"), 110)),
    "derive_done": (True, lambda p: shown(p, Step(at_ms=0, status="idle"), status="working")["status"]["state"]),
    "read_sees": (True, read_then_look),
    "send_started": (False, sent),
    "send_turn": (True, sent),
    "send_blocked": ("accept", lambda p: sent(p, status="blocked")),
    "interrupt_idles": (False, interrupted),
    "interrupt_watch_ms": (10_000, lambda p: filled(p, "terminal.interrupt", lambda _: {"terminal": "t2"})),
    "wait_default_ms": (30, checks_in_at),
    "wait_no_status": ("ends", lambda p: waited(p)),
    "blocked_to_working_counts": (
        True, lambda p: turns(msgspec.structs.replace(p, turn_rule="work-starts"), "working", "blocked", "working"),
    ),
    "program_turn": ("work-ends", lambda p: hosted(p)[0]),
    "program_status": ("most-urgent", lambda p: Hearing(p.program_status).feed(b"\x1b]7501;state=done:id=a\x07")),
    "program_paste": ("always", lambda p: hosted(p)[1].typed),
    "program_watch_ms": (0, lambda p: hosted(p)[2]),
    "program_grace_ms": (9, lambda p: hosted(p)[1].grace),
    "doc_version": ("string", version_after),
    "doc_first": (5, version_after),
    "doc_create": (False, lambda p: isinstance(first(p, "doc.set", name="d", value=0), dict)),
    "frames_key": ("framed", lambda p: asks_for_frames(p, {"framed": True})),
    "frames_value": ("yes", lambda p: asks_for_frames(p, {"frames": True})),
    "frame_kinds": ({"data": 9}, lambda p: [frame.kind for frame in Framed(p).frames("hello")]),
    "frame_newline": (False, lambda p: Framed(p).frames("hello")[0].payload[-1:]),
    "first_channel": (5, lambda p: first(p, "events.subscribe")),
    "channel_step": (3, lambda p: filled(p, "events.subscribe", lambda _: {})),
    "credit_first": ("explicit", lambda p: [frame.kind for frame in Framed(p).streamed()]),
    "window_bytes": (4, lambda p: [len(frame.payload) for frame in Framed(p).streamed() if not frame.kind]),
    "bad_frames": ("close", lambda p: len(Framed(p).raw(encode_frame(0, 200)))),
    "close_words": (False, lambda p: Framed(p).streamed()[-1].payload),
    "attach_replay": (False, lambda p: [frame.kind for frame in Framed(p).frames("terminal.attach", terminal="t1")]),
    "attach_facts": (False, lambda p: [frame.kind for frame in Framed(p).frames("terminal.attach", terminal="t1")]),
    "attach_sees": (True, lambda p: Framed(p).seen()),
    "focus_sees": (True, lambda p: Framed(p).seen(encode_frame(1, 4, b"\x01"))),
    "event_names": ({"terminal.created": "born"}, lambda p: Framed(p).events()),
    "slow_reader": ("close", lambda p: Framed(msgspec.structs.replace(p, max_stream_bytes=1, window_bytes=1)).events()),
    "max_frame_bytes": (200, lambda p: len(Framed(p).raw(encode_frame(0, 0, b" " * 201)))),
    "max_channels": (1, lambda p: filled(p, "events.subscribe", lambda _: {})[1]),
    "max_stream_bytes": (1, lambda p: Framed(msgspec.structs.replace(p, slow_reader="close", window_bytes=1)).events()),
    "max_terminals": (3, lambda p: filled(p, "terminal.run", lambda _: {"argv": ["pi"]})[1] == "limit_reached"),
    "max_documents": (1, lambda p: filled(p, "doc.set", lambda n: {"name": str(n), "value": 0})[1] == "limit_reached"),
    "max_document_bytes": (3, lambda p: first(p, "doc.set", name="d", value="xy") == "limit_reached"),
    "max_labels": (1, lambda p: first(p, "terminal.run", labels={"a": "", "b": ""}) == "limit_reached"),
    "max_waiting": (1, lambda p: filled(p, "terminal.wait", lambda _: {"terminal": "t1"})[1]),
    "max_arg_bytes": (4, lambda p: first(p, "terminal.run", argv=["12345"]) == "spawn_failed"),
    "max_args_bytes": (9, lambda p: first(p, "terminal.run", argv=["1", "2"]) == "spawn_failed"),
}  # fmt: skip
"""Field to another value of it, and something to look at that this value changes."""


class Framed:
    """A client in frames of a core with one terminal, `t1`, whose screen has a line; every look ends the story."""

    def __init__(self, profile: WireProfile) -> None:
        self.hub = Hub(Core(profile))
        self.data = profile.frame_numbers()["data"]
        self.core = self.hub.core
        self.core.add_terminal(status="working")
        self.core.set_state("t1", status="done", msg="a line of some length", now=0)
        self.conn = self.hub.connect(0)
        self.greeting: bytes = self.write(b'{"jsonrpc":"2.0","id":0,"method":"hello","params":{"frames":true}}\n')

    def write(self, data: bytes) -> bytes:
        self.hub.receive(self.conn, data, 0)
        return b"".join(delivery.data for delivery in self.hub.outgoing(0))

    def raw(self, data: bytes) -> list[Frame | TooBig]:
        return FrameSplitter(2**20).feed(self.write(data))

    def frames(self, method: str, **params: Any) -> list[Frame]:
        request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        return [frame for frame in self.raw(encode_frame(0, self.data, request + b"\n")) if isinstance(frame, Frame)]

    def streamed(self) -> list[Frame]:
        """What comes on the channel of a terminal until it ends."""
        first = self.frames("terminal.attach", terminal="t1")
        rest = self.frames("terminal.kill", terminal="t1")
        return [frame for frame in first + rest if frame.channel]

    def seen(self, act: bytes = b"") -> str:
        self.frames("terminal.attach", terminal="t1")
        self.write(act)
        return str(answer(self.core, "terminal.get", terminal="t1")["status"]["state"])

    def events(self) -> list[Any]:
        self.frames("events.subscribe")
        first, second = self.frames("terminal.run"), self.frames("terminal.run")
        return [(frame.kind, frame.payload[:60]) for frame in first + second if frame.channel]


def positional(profile: WireProfile) -> Any:
    found = Core(profile).call("doc.set", ["d", 1], 0)
    assert isinstance(found, Answer)
    return found.error is None


def removed(profile: WireProfile) -> Any:
    core = Core(profile)
    core.add_terminal(name="a", finished=3)
    answer(core, "terminal.rm", terminal="a")
    return answer(core, "terminal.get", terminal="a")


def core_path(profile: WireProfile) -> str:
    core = Core(profile)
    core.add_terminal()
    return core.trace.of("run")[0].env["PATH"]


def filled_end(profile: WireProfile) -> Any:
    core = Core(profile)
    core.add_terminal()
    answer(core, "terminal.kill", terminal="t1")
    return answer(core, "terminal.get", terminal="t1")["signal"]


def waited(profile: WireProfile) -> bool:
    core = Core(profile)
    core.add_terminal()
    return bool(answer(core, "terminal.wait", terminal="t1") == "pending")


class Started:
    """A program that only remembers what is done to it."""

    pid: int = 1
    unfinished: str = ""
    pastes: bool = False
    typed: bytes = b""
    grace: int = 0

    def type(self, data: bytes) -> bool:
        self.typed += data
        return True

    def resize(self, cols: int, rows: int) -> None: ...

    def hang_up(self, grace_ms: int) -> None:
        self.grace = grace_ms

    def abandon(self, grace_ms: int) -> None: ...


def hosted(profile: WireProfile) -> tuple[int, Started, int | None]:
    """A program works, gets a text, an Esc and a kill: its turn, itself, and when the Esc is answered."""
    program = Started()
    core = Core(profile, start_program=lambda _: program)
    answer(core, "terminal.run", argv=["pi"])
    core.reported("t1", program, Status(state="working"), 0)
    answer(core, "terminal.send", terminal="t1", text="x")
    answer(core, "terminal.interrupt", terminal="t1")
    due = core.next_due()
    answer(core, "terminal.kill", terminal="t1")
    return core.terminals()[0].turn, program, due


@pytest.mark.parametrize("name", WireProfile.__struct_fields__)
def test_every_field_changes_what_the_fake_does(name: str) -> None:
    value, look = EFFECTS[name]
    changed = msgspec.convert({name: value}, WireProfile)
    assert look(changed) != look(WireProfile())


def test_every_field_has_a_reason_and_says_how_well_it_is_known() -> None:
    found = reasons()
    assert list(found) == list(WireProfile.__struct_fields__)
    for reason in found.values():
        assert reason.text
        assert reason.certainty in get_args(Certainty)


@pytest.mark.parametrize(
    ("style", "spelt"),
    [
        ("mixed", ["unknown_method", "NAME_TAKEN", "not_live"]),
        ("lower", ["unknown_method", "name_taken", "not_live"]),
        ("upper", ["UNKNOWN_METHOD", "NAME_TAKEN", "NOT_LIVE"]),
    ],
)
def test_kinds_are_spelt_in_one_style(style: Any, spelt: list[str]) -> None:
    profile = WireProfile(kind_style=style)
    assert [profile.spelt(kind) for kind in ("unknown_method", "name_taken", "not_live")] == spelt


def test_single_kinds_and_codes_can_be_spelt_otherwise() -> None:
    profile = WireProfile(kind_style="upper", kinds={"blocked": "busy"}, codes={"blocked": -32001})
    assert profile.error("blocked", "m", "h").body() == {
        "code": -32001, "message": "m", "data": {"kind": "busy", "hint": "h"},
    }  # fmt: skip


def test_a_torn_change_shows_its_halves_in_the_order_of_the_profile_and_then_both() -> None:
    for torn, half in (("turn-first", (1, "idle")), ("status-first", (0, "working"))):
        profile = msgspec.convert({"torn": torn, "torn_ms": 50}, WireProfile)
        assert [pair(profile, now) for now in (99, 100, 149, 150)] == [(0, "idle"), half, half, (1, "working")]


def test_what_follows_a_torn_change_finds_it_whole() -> None:
    profile = WireProfile(torn="status-first", torn_ms=50)
    steps = [Step(at_ms=0, turn=1, status="working"), Step(at_ms=10, turn_add=1, status="done")]
    assert shown(profile, *steps, now=100)["turn"] == 2
    ended = shown(profile, steps[0], Step(at_ms=10, finish=Finish()), now=10)
    assert (ended["turn"], ended["status"]["state"]) == (1, "working")


def test_work_starts_counts_each_start_of_work_but_not_the_end_of_a_dialog() -> None:
    profile = WireProfile(turn_rule="work-starts")
    assert turns(profile, "idle", "working", "blocked", "working", "done", "working", "idle") == [0, 1, 1, 1, 1, 2, 2]


def test_a_forced_first_turn_is_a_script_s_own() -> None:
    assert shown(WireProfile(first_turn=1), turn=4)["turn"] == 4


@pytest.mark.parametrize(
    "wrong",
    [
        {"torn": "sideways"},
        {"max_line_bytes": 0},
        {"torn_ms": -1},
        {"generation": "1"},
        {"no_such_field": 1},
        {"kinds": {"nmae_taken": "TAKEN"}},
        {"codes": {"nmae_taken": -1}},
        {"hello_aliases": {"coer_id": ["id"]}},
        {"frame_kinds": {"data": 1}},
        {"frame_kinds": {"data": 256}},
        {"event_names": {"terminal.craeted": "x"}},
        {"first_channel": 0},
    ],
)
def test_a_value_that_no_profile_has_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, WireProfile)


def test_hello_greets_one_connection_until_it_hangs_up() -> None:
    core = Core(WireProfile(strict_hello=True))

    def kind(method: str, conn: int) -> str | None:
        found = core.call(method, {}, 0, conn=conn)
        assert isinstance(found, Answer)
        return None if found.error is None else found.error.kind

    assert kind("server.status", 1) == "hello_required"
    assert kind("hello", 1) is None
    assert kind("server.status", 1) is None
    assert kind("server.status", 2) == "hello_required"
    core.hang_up(1)
    assert kind("server.status", 1) == "hello_required"


def test_a_status_in_128_style_is_what_a_shell_would_say() -> None:
    found = shown(WireProfile(signal_style="exit-128"), DEAD)
    assert (found["exit_code"], found["signal"]) == (143, None)
    assert json.dumps(found)
