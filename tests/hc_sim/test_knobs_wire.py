"""Faults of bytes, replies, apply points and connections, as a client of a plain socket meets them."""

import contextlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hc_sim.faults import Bridge, Fault, FaultError, FaultPlan, LinkFault, Restart, Until
from hc_sim.occupied import Occupant, occupy
from hc_sim.playing.fake import FakeCore, FakeLink
from hc_sim.playing.served import ServedCore
from hc_sim.script.format import Agent
from hc_sim.server import SocketPathError

knob = pytest.mark.knob
PLAIN = b'{"id":1,"jsonrpc":"2.0","result":'


OPENED: list[socket.socket] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().close()


class Client:
    """A client of nothing but a socket."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        OPENED.append(self.socket)
        self.socket.settimeout(5)
        self.socket.connect(str(path))
        self.rest = b""

    def ask(self, method: str, id_: Any = 1, **params: Any) -> None:
        self.socket.sendall(
            json.dumps({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}).encode() + b"\n"
        )

    def line(self) -> bytes:
        while b"\n" not in self.rest:
            data = self.socket.recv(65_536)
            if not data:
                rest, self.rest = self.rest, b""
                return rest
            self.rest += data
        line, _, self.rest = self.rest.partition(b"\n")
        return line + b"\n"

    def all(self) -> bytes:
        data = self.rest
        while more := self.socket.recv(65_536):
            data += more
        return data

    def silent(self, seconds: float = 0.1) -> bool:
        self.socket.settimeout(seconds)
        try:
            return not self.rest and self.socket.recv(1) is None
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(5)


Serve = Callable[..., tuple[ServedCore, Client]]


@pytest.fixture
def serve() -> Iterator[Serve]:
    started: list[tuple[ServedCore, Client]] = []

    def start(*faults: Any, agents: tuple[Agent, ...] = ()) -> tuple[ServedCore, Client]:
        plan = FaultPlan(
            fault=[one for one in faults if isinstance(one, Fault)],
            link=[one for one in faults if isinstance(one, LinkFault)],
            restart=[one for one in faults if isinstance(one, Restart)],
        )
        core = ServedCore(agents=agents, faults=plan).start()
        started.append((core, Client(core.socket)))
        return started[-1]

    yield start
    for core, _ in started:
        core.close()
        assert core.problems == []


def met(serve: Serve, **fault: Any) -> bytes:
    """The bytes that follow one `server.status` which meets this fault, up to the end of the connection."""
    _, client = serve(Fault(method="server.status", **fault))
    client.ask("server.status")
    client.socket.shutdown(socket.SHUT_WR)
    return client.all()


def reply(serve: Serve, **fault: Any) -> Any:
    return json.loads(met(serve, **fault))


# ------------------------------------------------------------------- bytes


@knob("fault.before")
def test_noise_is_glued_to_the_front_of_a_frame(serve: Serve) -> None:
    assert met(serve, before="\x1b]0;ready\x07").startswith(b"\x1b]0;ready\x07" + PLAIN)


@knob("fault.before_hex")
def test_a_byte_order_mark_comes_before_a_frame(serve: Serve) -> None:
    assert met(serve, before_hex="efbbbf").startswith(b"\xef\xbb\xbf" + PLAIN)


@knob("fault.after")
def test_noise_follows_a_frame(serve: Serve) -> None:
    assert met(serve, after="Bye\n").endswith(b"}\nBye\n")


@knob("fault.raw")
def test_other_bytes_stand_for_a_frame(serve: Serve) -> None:
    assert met(serve, raw='{"id":{id},"result":[') == b'{"id":1,"result":[\n'


@knob("fault.cut")
@knob("fault.gap_ms")
def test_a_frame_is_cut_anywhere_with_time_between_the_pieces() -> None:
    core = FakeCore(faults=[Fault(cut=[3, 9], gap_ms=50)])
    link = core.connect()
    link.write(b'{"jsonrpc":"2.0","id":1,"method":"server.status"}\n')
    pieces = [(link.read(0 if index == 0 else 60), core.clock.now()) for index in range(3)]
    assert [len(data) for data, _ in pieces[:2]] == [3, 6]
    assert [at for _, at in pieces] == [0, 50, 100]
    assert json.loads(b"".join(data for data, _ in pieces))["id"] == 1


@knob("fault.cut")
def test_a_reply_that_leaves_in_pieces_is_not_mixed_with_the_next_one() -> None:
    core = FakeCore(faults=[Fault(cut=[-1], gap_ms=2)])
    link = core.connect()
    for number in (1, 2):
        link.write(b'{"jsonrpc":"2.0","id":%d,"method":"server.status"}\n' % number)
    assert [json.loads(link.read_line())["id"] for _ in range(2)] == [1, 2]


@knob("fault.join")
def test_two_replies_leave_in_one_write() -> None:
    core = FakeCore(faults=[Fault(join=True)])
    link = core.connect()
    link.write(b'{"jsonrpc":"2.0","id":1,"method":"server.status"}\n')
    with pytest.raises(TimeoutError):
        link.read(1_000)
    link.write(b'{"jsonrpc":"2.0","id":2,"method":"server.status"}\n')
    both = link.read(0)
    assert [json.loads(line)["id"] for line in both.splitlines()] == [1, 2]


@knob("fault.newline")
@pytest.mark.parametrize(("newline", "end"), [("crlf", b"}\r\n"), ("none", b"}")])
def test_a_frame_ends_otherwise(serve: Serve, newline: str, end: bytes) -> None:
    data = met(serve, newline=newline)
    assert data.endswith(end)
    assert data.count(b"\n") == end.count(b"\n")


@knob("fault.pad_bytes")
def test_a_frame_has_any_size_and_no_end(serve: Serve) -> None:
    data = met(serve, pad_bytes=3_000_000, newline="none")
    assert len(data) > 3_000_000
    assert b"\n" not in data
    assert json.loads(data)["result"]["pad"] == "x" * 3_000_000


@knob("fault.separators")
def test_a_frame_holds_raw_line_separators_and_is_one_line(serve: Serve) -> None:
    data = met(serve, separators=True)
    assert data.count(b"\n") == 1
    assert all(raw in data for raw in (b"\xe2\x80\xa8", b"\xe2\x80\xa9", b"\xc2\x85", b"\xf0\x9f\x98\x80"))
    assert len(data.decode().splitlines()) > 1


@knob("link.greeting")
@knob("link.greeting_hex")
def test_a_connection_begins_with_a_greeting(serve: Serve) -> None:
    _, client = serve(LinkFault(greeting="Welcome back\n", greeting_hex="efbbbf"))
    client.ask("server.status")
    assert client.line() == b"Welcome back\n"
    assert client.line().startswith(b"\xef\xbb\xbf" + PLAIN)


@knob("link.chunk_bytes")
@knob("link.chunk_ms")
def test_everything_on_a_connection_comes_in_small_chunks_slowly() -> None:
    core = FakeCore(faults=FaultPlan(link=[LinkFault(chunk_bytes=10, chunk_ms=5)]))
    link = core.connect()
    link.write(b'{"jsonrpc":"2.0","id":1,"method":"server.status"}\n')
    sizes = [len(link.read(5)) for _ in range(4)]
    assert sizes == [10] * 4
    assert core.clock.now() == 15


@knob("link.stall_after")
@knob("link.stall_ms")
def test_the_core_stops_to_read_and_reads_on_later() -> None:
    core = FakeCore(faults=FaultPlan(link=[LinkFault(stall_after=1, stall_ms=400)]))
    link = core.connect()
    for number in (1, 2):
        link.write(b'{"jsonrpc":"2.0","id":%d,"method":"server.status"}\n' % number)
    assert json.loads(link.read_line())["id"] == 1
    assert core.trace.count("server.status") == 1
    assert json.loads(link.read_line())["id"] == 2
    assert core.clock.now() == 400


@knob("link.stall_after")
def test_a_peer_that_is_not_read_cannot_send_without_end(serve: Serve) -> None:
    _, client = serve(LinkFault(stall_after=0))
    client.socket.settimeout(0.2)
    sent = 0
    try:
        while sent < 64 * 1024 * 1024:
            sent += client.socket.send(b"x" * 65_536 + b"\n")
    except TimeoutError:
        pass
    assert sent < 16 * 1024 * 1024


# ------------------------------------------------------------------- replies


@knob("fault.reply")
def test_a_reply_is_lost_and_the_call_took_effect(serve: Serve) -> None:
    core, client = serve(Fault(method="terminal.run", reply=False))
    client.ask("terminal.run", argv=["pi"], name="alpha")
    client.ask("terminal.get", 2, terminal="alpha")
    assert json.loads(client.line())["id"] == 2
    assert core.terminal("alpha").state == "running"


@knob("fault.delay_ms")
def test_a_reply_comes_late_and_another_one_before_it() -> None:
    core = FakeCore(faults=[Fault(delay_ms=300)])
    link = core.connect()
    link.write(
        b'{"jsonrpc":"2.0","id":1,"method":"server.status"}\n{"jsonrpc":"2.0","id":2,"method":"server.status"}\n'
    )
    assert [json.loads(link.read_line())["id"] for _ in range(2)] == [2, 1]
    assert core.clock.now() == 300


@knob("fault.hold_until")
def test_replies_come_in_another_order(serve: Serve) -> None:
    _, client = serve(Fault(method="server.status", hold_until=Until(method="hello")))
    client.ask("server.status", 1)
    client.ask("hello", 2)
    assert [json.loads(client.line())["id"] for _ in range(2)] == [2, 1]


@knob("fault.error")
def test_an_error_stands_for_the_call(serve: Serve) -> None:
    core, client = serve(
        Fault(method="terminal.run", error=FaultError(kind="busy", code=-5, message="no", hint="wait"))
    )
    client.ask("terminal.run", argv=["pi"], name="alpha")
    error = json.loads(client.line())["error"]
    assert error == {"code": -5, "message": "no", "data": {"kind": "busy", "hint": "wait"}}
    assert len(core.terminals()) == 1


@knob("fault.id")
@pytest.mark.parametrize(("how", "shown"), [("null", None), ("empty", ""), ("other-type", "1")])
def test_a_reply_bears_another_id(serve: Serve, how: str, shown: object) -> None:
    assert reply(serve, id=how)["id"] == shown


@knob("fault.id")
def test_a_reply_bears_no_id(serve: Serve) -> None:
    assert "id" not in reply(serve, id="missing")


@knob("fault.shape")
def test_a_reply_has_odd_members(serve: Serve) -> None:
    both = reply(serve, shape="null-error")
    assert both["error"] is None
    assert both["result"]["running"] == 1
    assert reply(serve, shape="null-result")["result"] is None
    assert set(reply(serve, shape="neither")) == {"id", "jsonrpc"}
    assert met(serve, shape="result-first").startswith(b'{"result":{')
    assert reply(serve, shape="result-first")["id"] == 1


@knob("fault.contradict")
def test_a_second_reply_contradicts_the_first(serve: Serve) -> None:
    first, second = map(json.loads, met(serve, contradict=FaultError(kind="not_ready")).splitlines())
    assert (first["id"], second["id"]) == (1, 1)
    assert "result" in first
    assert second["error"]["data"]["kind"] == "not_ready"


@knob("fault.repeat")
def test_a_reply_comes_three_times(serve: Serve) -> None:
    assert len(set(met(serve, repeat=3).splitlines())) == 1
    assert met(serve, repeat=3).count(b"\n") == 3


@knob("fault.notifications")
@knob("fault.requests")
def test_notifications_and_requests_come_in_between(serve: Serve) -> None:
    *between, last = map(json.loads, met(serve, notifications=200, requests=2).splitlines())
    assert sum("id" not in one for one in between) == 200
    assert [one["id"] for one in between if "id" in one] == ["core-1", "core-2"]
    assert last["id"] == 1


# ------------------------------------------------------------------- apply point


@knob("fault.apply")
def test_a_call_is_never_carried_out_and_never_answered(serve: Serve) -> None:
    core, client = serve(Fault(method="terminal.run", apply=False))
    client.ask("terminal.run", argv=["pi"], name="alpha")
    client.ask("server.status", 2)
    assert json.loads(client.line())["id"] == 2
    assert len(core.terminals()) == 1


@knob("fault.apply_ms")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("terminal.run", {"argv": ["pi"], "name": "late"}),
        ("terminal.send", {"terminal": "alpha", "text": "go"}),
        ("terminal.kill", {"terminal": "alpha"}),
        ("doc.set", {"name": "d", "value": 1}),
    ],
)
def test_a_call_is_carried_out_after_the_client_has_given_up(method: str, params: dict[str, Any]) -> None:
    core = FakeCore(faults=[Fault(method=method, apply_ms=12_000)])
    core.add_terminal("alpha")
    link = core.connect()
    with pytest.raises(TimeoutError):
        link.call(method, params, timeout_ms=10_000)
    before = _state(link)
    core.advance(2_000)
    assert _state(link) != before
    assert core.trace.count(method) == 1


def _state(link: FakeLink) -> Any:
    terminals = link.call("terminal.list", {"all": True})["terminals"]
    screens = [link.call("terminal.read", {"terminal": one["address"]}) for one in terminals]
    link.write(b'{"jsonrpc":"2.0","id":"look","method":"doc.get","params":{"name":"d"}}\n')
    while json.loads(line := link.read_line()).get("id") != "look":
        pass
    return terminals, screens, line


@knob("fault.apply_ms")
def test_a_late_call_dies_with_the_core_that_has_it() -> None:
    plan = FaultPlan(fault=[Fault(method="terminal.run", apply_ms=500)], restart=[Restart(at_ms=100)])
    core = FakeCore(faults=plan)
    link = core.connect()
    with pytest.raises(EOFError):
        link.call("terminal.run", {"argv": ["pi"]})
    core.advance(1_000)
    assert core.terminals() == []


def test_a_fault_can_be_addressed_by_connection_and_by_virtual_time() -> None:
    core = FakeCore(
        faults=[
            Fault(method="hello", connection=2, error=FaultError(kind="second")),
            Fault(method="server.status", nth=2, from_ms=1_000, until_ms=2_000, error=FaultError(kind="then")),
        ]
    )
    first, second = core.connect(), core.connect()
    assert "core_id" in first.call("hello")
    with pytest.raises(Exception, match="scripted error"):
        second.call("hello")
    for at in (0, 1_000):
        core.advance(at)
        assert "core_id" in first.call("server.status")
    with pytest.raises(Exception, match="scripted error"):
        first.call("server.status")
    core.advance(1_000)
    assert "core_id" in first.call("server.status")


# ------------------------------------------------------------------- connections


@knob("fault.close")
def test_a_connection_ends_around_a_reply(serve: Serve) -> None:
    whole = met(serve, close="after")
    assert whole.endswith(b"}\n")
    assert met(serve, close="instead") == b""
    part = met(serve, close="mid")
    assert b"\n" not in part
    assert whole.startswith(part[:20])


@knob("fault.silent")
def test_a_connection_goes_silent_and_stays_open(serve: Serve) -> None:
    core, client = serve(Fault(method="terminal.run", silent=True))
    client.ask("server.status", 1)
    assert json.loads(client.line())["id"] == 1
    client.ask("terminal.run", 2, argv=["pi"], name="alpha")
    client.ask("server.status", 3)
    core.wait_for("call", "server.status", nth=2)
    assert client.silent()
    assert core.terminal("alpha").state == "running"


@knob("link.refuse")
def test_the_first_two_connections_end_without_a_byte(serve: Serve) -> None:
    core, client = serve(LinkFault(refuse=True, times=2))
    assert client.all() == b""
    assert Client(core.socket).all() == b""
    third = Client(core.socket)
    third.ask("server.status")
    assert third.line().startswith(PLAIN)


@knob("link.silent_after")
def test_a_connection_answers_one_call_and_no_other(serve: Serve) -> None:
    core, client = serve(LinkFault(silent_after=1))
    client.ask("server.status", 1)
    assert json.loads(client.line())["id"] == 1
    client.ask("server.status", 2)
    core.wait_for("call", "server.status", nth=2)
    assert client.silent()


@knob("link.half_close_after")
def test_the_core_shuts_its_side_and_still_carries_out_calls(serve: Serve) -> None:
    core, client = serve(LinkFault(half_close_after=1))
    client.ask("server.status")
    assert client.all().startswith(PLAIN)
    client.ask("terminal.run", 2, argv=["pi"], name="alpha")
    core.wait_for("run", terminal="alpha")


@knob("link.close_after")
def test_a_connection_ends_after_its_second_reply(serve: Serve) -> None:
    _, client = serve(LinkFault(close_after=2))
    for number in (1, 2):
        client.ask("server.status", number)
    with contextlib.suppress(BrokenPipeError):  # the connection may be over before the third call leaves
        client.ask("server.status", 3)
    assert client.all().count(b"\n") == 2


@knob("link.close_ms")
def test_a_connection_ends_between_two_calls() -> None:
    core = FakeCore(faults=FaultPlan(link=[LinkFault(close_ms=250, nth=2)]))
    first, second = core.connect(), core.connect()
    assert second.call("server.status")
    assert second.read() == b""
    assert core.clock.now() == 250
    assert first.call("server.status")


@knob("bridge.stderr")
@knob("bridge.stderr_bytes")
@knob("bridge.exit_code")
@knob("bridge.signal")
@knob("bridge.after_requests")
def test_bridges_end_as_planned() -> None:
    plan = FaultPlan(
        bridge=[
            Bridge(nth=1, stderr="no core\n", exit_code=3),
            Bridge(nth=2, stderr_bytes=200_000, signal="SIGKILL", after_requests=2),
        ]
    )
    request = b'{"jsonrpc":"2.0","id":1,"method":"server.status"}\n'
    with ServedCore(faults=plan) as core:
        command = [str(core.hc), "connect"]
        first = subprocess.run(command, input=b"", capture_output=True, env=core.env, check=False, timeout=20)
        assert (first.returncode, first.stderr, first.stdout) == (3, b"no core\n", b"")
        second = subprocess.run(command, input=request * 2, capture_output=True, env=core.env, check=False, timeout=20)
        assert second.returncode == -9
        assert len(second.stderr) == 200_000
        third = subprocess.run(command, input=request, capture_output=True, env=core.env, check=False, timeout=20)
        assert third.stdout.startswith(PLAIN)


@knob("bridge.group")
@pytest.mark.parametrize("group", [True, False])
def test_a_signal_reaches_the_whole_group_of_a_bridge_or_the_bridge_alone(group: bool) -> None:
    both = (
        "import os, subprocess, sys, time\n"
        "bridge = subprocess.Popen([sys.argv[1], 'connect'], stdin=subprocess.PIPE)\n"
        "bridge.wait(20)\n"
        "print('still here', flush=True)\n"
    )
    with ServedCore(faults=FaultPlan(bridge=[Bridge(signal="SIGTERM", group=group)])) as core:
        done = subprocess.run(
            [sys.executable, "-c", both, str(core.hc)],
            env=core.env,
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
            start_new_session=True,
        )
    assert (done.returncode, done.stdout) == ((-15, "") if group else (0, "still here\n"))


@knob("restart.down_ms")
def test_nobody_listens_while_the_core_is_down_and_then_somebody_does(serve: Serve) -> None:
    core, client = serve(Fault(method="server.status", restart=Restart(down_ms=300)))
    client.ask("server.status")
    assert client.all() == b""
    with pytest.raises((FileNotFoundError, ConnectionRefusedError)):
        Client(core.socket)
    for _ in range(100):
        time.sleep(0.05)
        if core.socket.exists():
            break
    again = Client(core.socket)
    again.ask("server.status")
    assert again.line().startswith(PLAIN)


@knob("occupy")
@pytest.mark.parametrize(
    ("what", "error"),
    [
        ("dead-socket", ConnectionRefusedError),
        ("directory", ConnectionRefusedError),
        ("regular-file", ConnectionRefusedError),
        ("nothing", FileNotFoundError),
    ],
)
def test_something_else_stands_where_a_core_should_listen(tmp_path: Path, what: Occupant, error: type[OSError]) -> None:
    path = tmp_path / "core.sock"
    occupy(path, what)
    with pytest.raises(error):
        Client(path)
    assert path.exists() is (what != "nothing")


@knob("SocketPathError")
def test_a_path_that_is_too_long_is_refused_in_one_line(tmp_path: Path) -> None:
    from hc_sim.clock import run_virtual
    from hc_sim.core import Core
    from hc_sim.driver import Driver
    from hc_sim.hub.connection import Hub
    from hc_sim.server import UnixServer

    path = tmp_path / ("x" * 140)

    async def start() -> None:
        await UnixServer(Driver(Hub(Core())), path).start()

    with pytest.raises(SocketPathError, match="bytes long and the limit is"):
        run_virtual(start())


def test_the_trace_has_the_modes_of_the_socket(serve: Serve) -> None:
    core, _ = serve()
    event = core.trace.of("socket")[0]
    assert (event.text, event.note) == (str(core.socket), "0600 in a folder of 0700")


def bridged(core: ServedCore) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [str(core.hc), "connect"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=core.env,
    )


REQUEST = b'{"jsonrpc":"2.0","id":1,"method":"server.status"}\n'


@knob("bridge.after_ms")
@knob("bridge.after_reply_bytes")
def test_a_bridge_ends_between_two_calls_or_in_the_middle_of_a_reply() -> None:
    slow, torn = Bridge(exit_code=4, after_ms=1_000), Bridge(nth=2, signal="SIGTERM", after_reply_bytes=10)
    plan = FaultPlan(bridge=[slow, torn])
    with ServedCore(faults=plan) as core:
        with bridged(core) as first:
            assert first.stdin is not None
            first.stdin.write(REQUEST)
            first.stdin.flush()
            assert first.stdout is not None
            assert first.stdout.readline().startswith(PLAIN)
            assert first.wait(10) == 4
        with bridged(core) as second:
            out, _ = second.communicate(REQUEST, timeout=10)
            assert (second.returncode, out) == (-15, PLAIN[:10])


@knob("bridge.closes")
@pytest.mark.parametrize("stream", ["stdin", "stdout", "stderr"])
def test_a_bridge_lets_go_of_one_stream_and_lives_on(stream: Any) -> None:
    plan = FaultPlan(bridge=[Bridge(closes=stream, after_requests=1)])
    with ServedCore(faults=plan) as core, bridged(core) as bridge:
        assert bridge.stdin is not None
        assert bridge.stdout is not None
        assert bridge.stderr is not None
        bridge.stdin.write(REQUEST)
        bridge.stdin.flush()
        if stream == "stdout":
            assert bridge.stdout.read() == b""
        elif stream == "stderr":
            assert bridge.stderr.read() == b""
            assert bridge.stdout.readline().startswith(PLAIN)
        else:
            with pytest.raises(BrokenPipeError):
                _write_until_broken(bridge)
        assert bridge.poll() is None
        bridge.kill()
        with contextlib.suppress(BrokenPipeError):
            bridge.stdin.close()


def _write_until_broken(bridge: "subprocess.Popen[bytes]") -> None:
    assert bridge.stdin is not None
    for _ in range(200):
        bridge.stdin.write(REQUEST)
        bridge.stdin.flush()
        time.sleep(0.02)
