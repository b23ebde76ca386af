"""The client over a scripted transport: ids, replies, lost links, deadlines, what is known (BC-004 to BC-031)."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from legion_terminal.client import MAX_CALLS_IN_FLIGHT, HcClient, Method
from legion_terminal.errors import SupervisorError


class Loop(asyncio.SelectorEventLoop):
    """Time stands still while there is work, and jumps to the next timer when there is none."""

    _now = 0.0

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self._now = max(self._now, self._scheduled[0]._when)  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


def run(main: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(main)


class Bridge:
    """One scripted transport: records what is written, returns what is fed. It answers `hello` by itself."""

    def __init__(
        self, *, refuse: OSError | None = None, hello: dict[str, Any] | None = None, polite: bool = True
    ) -> None:
        self.refuse = refuse
        self.hello = hello if hello is not None else {"core_id": "core-1", "generation": 1, "version": "0.1.20"}
        self.polite = polite
        self.sent: list[dict[str, Any]] = []
        self.raw = b""
        self.closed = 0
        self.end_words: str | None = None
        self.stderr = ""
        self.on_call: Callable[[Bridge, dict[str, Any]], None] = lambda bridge, call: None
        self.stuck = False
        self.broken = False
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue()

    async def open(self) -> None:
        if self.refuse is not None:
            raise self.refuse

    async def write(self, data: bytes) -> None:
        if self.broken:
            raise BrokenPipeError("the bridge takes no more input")
        self.raw += data
        for line in data.splitlines():
            call = json.loads(line)
            self.sent.append(call)
            if call["method"] == "hello" and self.polite:
                self.reply(call["id"], self.hello)
            else:
                self.on_call(self, call)
        if self.stuck:
            await asyncio.Event().wait()

    async def read(self) -> bytes:
        return await self._chunks.get()

    async def close(self) -> None:
        self.closed += 1

    def tail(self) -> str:
        return self.stderr

    def ended(self) -> str | None:
        return self.end_words

    def feed(self, data: bytes) -> None:
        self._chunks.put_nowait(data)

    def line(self, message: dict[str, Any]) -> None:
        self.feed(json.dumps(message).encode() + b"\n")

    def reply(self, call_id: Any, result: Any) -> None:
        self.line({"jsonrpc": "2.0", "id": call_id, "result": result})

    def end(self, words: str | None = None, stderr: str = "") -> None:
        self.end_words, self.stderr = words, stderr or self.stderr
        self.feed(b"")

    def calls(self, method: str) -> list[dict[str, Any]]:
        return [call for call in self.sent if call["method"] == method]


class Bridges:
    """Hands out the given bridges one after another, and counts."""

    def __init__(self, *bridges: Bridge) -> None:
        self.all = list(bridges)
        self.used = 0

    def __call__(self) -> Bridge:
        self.used += 1
        return self.all[min(self.used, len(self.all)) - 1]


def client_over(*bridges: Bridge, **more: Any) -> HcClient:
    return HcClient(Bridges(*bridges), **more)


def pending(client: HcClient, method: Method = "terminal.get", **params: Any) -> "asyncio.Task[dict[str, Any]]":
    return asyncio.create_task(client.call(method, params))


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def failure(task: "asyncio.Task[Any]") -> SupervisorError:
    with pytest.raises(SupervisorError) as caught:
        await task
    return caught.value


def echo(bridge: Bridge, call: dict[str, Any]) -> None:
    bridge.reply(call["id"], call["params"])


def test_the_first_call_says_hello_once_and_the_next_ones_share_the_bridge() -> None:
    async def main() -> None:
        bridge = Bridge()
        bridge.on_call = echo
        bridges = Bridges(bridge)
        client = HcClient(bridges)
        results = await asyncio.gather(*(client.call("terminal.get", {"terminal": f"t{n}"}) for n in range(5)))
        assert results == [{"terminal": f"t{n}"} for n in range(5)]
        assert [call["method"] for call in bridge.sent] == ["hello"] + ["terminal.get"] * 5
        assert bridges.used == 1
        assert len({call["id"] for call in bridge.sent}) == 6
        hello = await client.hello()
        assert (hello.core_id, hello.generation) == ("core-1", 1)
        await client.close()
        assert bridge.closed == 1

    run(main())


@pytest.mark.parametrize("method", ["terminal.list", "rpc.discover", "terminal.label", "doc.set", "", "HELLO"])
def test_no_other_method_leaves_the_client(method: Any) -> None:
    async def main() -> None:
        bridges = Bridges(Bridge())
        with pytest.raises(SupervisorError) as caught:
            await HcClient(bridges).call(method, {})
        assert (caught.value.code, caught.value.known) == ("bad-request", "not-sent")
        assert bridges.used == 0

    run(main())


def test_replies_in_any_order_reach_their_own_calls() -> None:
    async def main() -> None:
        bridge = Bridge()
        client = client_over(bridge)
        tasks = [pending(client, terminal=name) for name in "abc"]
        await settle()
        for call in (bridge.sent[3], bridge.sent[1], bridge.sent[2]):
            bridge.reply(call["id"], {"name": call["params"]["terminal"]})
        assert await asyncio.gather(*tasks) == [{"name": "a"}, {"name": "b"}, {"name": "c"}]

    run(main())


def test_a_number_as_id_answers_the_call_and_a_foreign_id_answers_none() -> None:
    async def main() -> None:
        bridge = Bridge()
        client = client_over(bridge)
        task = pending(client)
        await settle()
        number = int(bridge.sent[1]["id"])
        bridge.reply(f"{number}x", {"turn": 9})
        bridge.reply(True, {"turn": 8})
        await settle()
        assert not task.done()
        bridge.reply(number, {"turn": 1})
        assert await task == {"turn": 1}
        assert client.diagnostics.dropped_replies == 2

    run(main())


def test_a_late_reply_is_dropped_and_never_given_to_a_newer_call() -> None:
    async def main() -> None:
        bridge = Bridge()
        client = client_over(bridge, deadlines={"terminal.get": 1_000})
        error = await failure(pending(client))
        assert (error.code, error.known) == ("call-timeout", "not-applied")
        assert "terminal.get" in error.message
        assert asyncio.get_running_loop().time() == pytest.approx(1.0)
        second = pending(client)
        await settle()
        late, now = bridge.calls("terminal.get")
        assert late["id"] != now["id"]
        bridge.reply(late["id"], {"turn": 1})
        bridge.reply(now["id"], {"turn": 2})
        assert await second == {"turn": 2}
        assert client.diagnostics.dropped_replies == 1

    run(main())


def test_ids_go_on_over_a_new_bridge_so_that_old_replies_answer_nothing() -> None:
    async def main() -> None:
        first, second = Bridge(), Bridge()
        client = client_over(first, second)
        kill = pending(client, "terminal.kill", terminal="t4")
        await settle()
        first.end("exit code 1")
        assert (await failure(kill)).code == "outcome-unknown"
        get = pending(client, terminal="t9")
        await settle()
        second.reply(first.sent[1]["id"], {"killed": True})
        second.reply(second.sent[1]["id"], {"turn": 0, "state": "running"})
        assert await get == {"turn": 0, "state": "running"}
        ids = [call["id"] for call in first.sent + second.sent]
        assert len(set(ids)) == len(ids)

    run(main())


@pytest.mark.parametrize("member", [{"id": None}, {"id": ""}, {}])
def test_an_error_without_an_id_rejects_the_only_call_that_waits(member: dict[str, Any]) -> None:
    async def main() -> None:
        bridge = Bridge()
        client = client_over(bridge)
        task = pending(client)
        await settle()
        bridge.line({"jsonrpc": "2.0", **member, "error": {"code": -32700, "message": "bad"}})
        error = await failure(task)
        assert (error.code, error.kind) == ("call-failed", "parse_error")
        assert asyncio.get_running_loop().time() == 0

    run(main())


def test_an_error_without_an_id_fails_all_calls_when_several_wait() -> None:
    async def main() -> None:
        bridge = Bridge()
        client = client_over(bridge)
        reading, changing = pending(client), pending(client, "terminal.kill", terminal="t1")
        await settle()
        bridge.line({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "bad"}})
        assert (await failure(reading)).code == "protocol"
        assert (await failure(changing)).code == "outcome-unknown"
        assert asyncio.get_running_loop().time() == 0

    run(main())


def test_a_flood_of_notifications_neither_delays_nor_resolves() -> None:
    async def main() -> None:
        bridge = Bridge()
        client = client_over(bridge)
        task = pending(client)
        await settle()
        for _ in range(200):
            bridge.line({"jsonrpc": "2.0", "method": "terminal.changed", "params": {"id": "2"}})
        await settle()
        assert not task.done()
        bridge.reply(bridge.sent[1]["id"], {"turn": 1})
        assert await task == {"turn": 1}
        assert client.diagnostics.notices == 200

    run(main())


def test_some_noise_is_borne_and_kept_for_diagnosis() -> None:
    async def main() -> None:
        bridge = Bridge()
        client = client_over(bridge)
        task = pending(client)
        await settle()
        bridge.feed(b"Welcome back\r\n\r\n\x1b]0;ready\x07")
        bridge.reply(bridge.sent[1]["id"], {"turn": 1})
        assert await task == {"turn": 1}
        assert list(client.diagnostics.noise) == ["Welcome back"]

    run(main())


def test_nothing_but_noise_fails_fast() -> None:
    async def main() -> None:
        bridge = Bridge(polite=False)
        client = client_over(bridge)
        task = pending(client)
        await settle()
        for number in range(12):
            bridge.feed(f"usage: line {number}\n".encode())
        error = await failure(task)
        assert error.code == "protocol"
        assert "usage: line 8" in error.message
        assert asyncio.get_running_loop().time() == 0
        await settle()
        assert bridge.closed == 1

    run(main())


@pytest.mark.parametrize(
    ("method", "message", "code", "known"),
    [
        ("terminal.get", {}, "protocol", "not-applied"),
        ("terminal.send", {}, "outcome-unknown", "unknown"),
        (
            "terminal.send",
            {"error": {"code": -32000, "message": "no", "data": {"kind": "blocked"}}},
            "call-failed",
            "not-applied",
        ),
        ("terminal.send", {"error": {"code": -32603, "message": "internal"}}, "call-failed", "unknown"),
        (
            "terminal.get",
            {"error": {"code": -32000, "message": "x", "data": {"kind": "PROTOCOL_MISMATCH"}}},
            "protocol",
            "not-applied",
        ),
    ],
)
def test_a_bad_reply_says_what_is_known(method: Method, message: dict[str, Any], code: str, known: str) -> None:
    async def main() -> None:
        bridge = Bridge()
        client = client_over(bridge)
        task = pending(client, method)
        await settle()
        bridge.line({"jsonrpc": "2.0", "id": bridge.sent[1]["id"], **message})
        error = await failure(task)
        assert (error.code, error.known) == (code, known)
        assert method in error.message

    run(main())


def test_the_first_of_several_replies_decides() -> None:
    async def main() -> None:
        bridge = Bridge()
        client = client_over(bridge)
        task, other = pending(client, "terminal.send"), pending(client)
        await settle()
        bridge.reply(bridge.sent[1]["id"], {"started": True})
        bridge.line({"jsonrpc": "2.0", "id": bridge.sent[1]["id"], "error": {"code": 1, "message": "not ready"}})
        bridge.reply(bridge.sent[1]["id"], {"started": False})
        bridge.reply(bridge.sent[2]["id"], {"turn": 3})
        assert await task == {"started": True}
        assert await other == {"turn": 3}
        assert client.diagnostics.dropped_replies == 2

    run(main())


def test_a_last_frame_without_its_line_feed_still_counts() -> None:
    async def main() -> None:
        bridge = Bridge()
        client = client_over(bridge)
        task, second = pending(client), pending(client)
        await settle()
        bridge.feed(json.dumps({"jsonrpc": "2.0", "id": bridge.sent[1]["id"], "result": {"turn": 1}}).encode())
        bridge.end("exit code 0")
        assert await task == {"turn": 1}
        error = await failure(second)
        assert (error.code, error.known) == ("host-unreachable", "not-applied")
        assert "exit code 0" in error.message

    run(main())


def test_an_end_inside_a_frame_is_named() -> None:
    async def main() -> None:
        bridge = Bridge()
        client = client_over(bridge)
        task = pending(client)
        await settle()
        bridge.feed(b'{"jsonrpc":"2.0","id":"2","resu')
        bridge.end()
        error = await failure(task)
        assert error.code == "protocol"
        assert "inside a frame" in error.message

    run(main())


@pytest.mark.parametrize("words", ["exit code 1", "signal SIGKILL", "exit code 0"])
def test_a_bridge_that_dies_rejects_everything_at_once_with_its_last_words(words: str) -> None:
    async def main() -> None:
        dead, fresh = Bridge(polite=False), Bridge()
        fresh.on_call = echo
        client = client_over(dead, fresh)
        hello, get = asyncio.create_task(client.hello()), pending(client)
        await settle()
        dead.end(words, "no core")
        for task in (hello, get):
            error = await failure(task)
            assert words in error.message
            assert "no core" in error.message
            assert error.known == "not-sent"
        assert asyncio.get_running_loop().time() == 0
        assert await client.call("terminal.get", {"terminal": "t1"}) == {"terminal": "t1"}

    run(main())


def test_a_changing_call_whose_reply_was_lost_is_unknown_and_never_repeated() -> None:
    async def main() -> None:
        first, second = Bridge(), Bridge()
        second.on_call = echo
        client = client_over(first, second)
        send = pending(client, "terminal.send", terminal="n", text="go")
        await settle()
        first.end()
        error = await failure(send)
        assert (error.code, error.known) == ("outcome-unknown", "unknown")
        assert error.hint
        await client.call("terminal.get", {"terminal": "n"})
        assert second.calls("terminal.send") == []

    run(main())


def test_a_write_to_a_dead_bridge_rejects_once_and_close_still_works() -> None:
    async def main() -> None:
        bridge = Bridge()
        client = client_over(bridge)
        await client.hello()
        bridge.broken = True
        send = pending(client, "terminal.send", text="x" * 256 * 1024)
        error = await failure(send)
        assert (error.code, error.known) == ("outcome-unknown", "unknown")
        await client.close()

    run(main())


def test_refused_connections_are_tried_again_within_a_small_budget() -> None:
    async def main() -> None:
        refused = [
            Bridge(refuse=ConnectionRefusedError()),
            Bridge(refuse=FileNotFoundError()),
            Bridge(refuse=BlockingIOError()),
        ]
        good = Bridge()
        good.on_call = echo
        client = client_over(*refused, good)
        assert await client.call("terminal.get", {"terminal": "t"}) == {"terminal": "t"}
        assert asyncio.get_running_loop().time() < 2

    run(main())


def test_a_bridge_that_says_refused_before_anything_was_answered_is_tried_again() -> None:
    async def main() -> None:
        refused, good = Bridge(polite=False), Bridge()
        refused.on_call = lambda bridge, call: bridge.end("exit code 1", "hc: connect: Connection refused")
        good.on_call = echo
        client = client_over(refused, good)
        assert await client.call("terminal.get", {"terminal": "t"}) == {"terminal": "t"}
        assert refused.closed == 1

    run(main())


def test_the_budget_ends_and_a_later_call_starts_afresh() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        bridges = Bridges(*[Bridge(refuse=ConnectionRefusedError("nobody listens"))] * 50)
        client = HcClient(bridges, connect_ms=2_000)
        error = await failure(pending(client, "terminal.run"))
        assert (error.code, error.known) == ("host-unreachable", "not-sent")
        assert "nobody listens" in error.message
        assert loop.time() <= 2
        tries = bridges.used
        assert 3 <= tries <= 12
        good = Bridge()
        good.on_call = echo
        bridges.all = [good]
        assert await client.call("terminal.run", {"name": "n"}) == {"name": "n"}

    run(main())


def test_permission_errors_are_not_tried_again() -> None:
    async def main() -> None:
        bridges = Bridges(Bridge(refuse=PermissionError("not yours")))
        error = await failure(pending(HcClient(bridges)))
        assert error.code == "host-unreachable"
        assert bridges.used == 1

    run(main())


def test_every_call_has_a_deadline_of_its_own_and_close_is_bounded() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        client = client_over(Bridge(), deadlines={"terminal.interrupt": 3_000})
        interrupt = await failure(pending(client, "terminal.interrupt"))
        assert (interrupt.code, interrupt.known) == ("outcome-unknown", "unknown")
        assert loop.time() == pytest.approx(3)
        send = await failure(pending(client, "terminal.send"))
        assert "terminal.send" in send.message
        assert loop.time() == pytest.approx(93)
        await client.close()
        assert loop.time() == pytest.approx(93)

    run(main())


def test_a_core_that_answers_nothing_any_more_gets_a_new_bridge() -> None:
    async def main() -> None:
        silent, good = Bridge(), Bridge()
        good.on_call = echo
        client = client_over(silent, good)
        await failure(pending(client))
        await failure(pending(client))
        assert await client.call("terminal.get", {"terminal": "t"}) == {"terminal": "t"}

    run(main())


def test_a_silent_core_keeps_its_bridge_while_a_send_is_held() -> None:
    async def main() -> None:
        bridge = Bridge()
        client = client_over(bridge)
        send = pending(client, "terminal.send", text="held")
        for _ in range(3):
            await failure(pending(client))
        bridge.reply(bridge.calls("terminal.send")[0]["id"], {"started": False})
        assert await send == {"started": False}

    run(main())


def test_a_silent_hello_ends_at_its_deadline_and_is_not_remembered() -> None:
    async def main() -> None:
        silent, good = Bridge(polite=False), Bridge()
        good.on_call = echo
        client = client_over(silent, good, deadlines={"hello": 500})
        error = await failure(pending(client))
        assert error.code == "call-timeout"
        assert "hello" in error.message
        assert await client.call("terminal.get", {"terminal": "t"}) == {"terminal": "t"}

    run(main())


def test_another_generation_is_refused() -> None:
    async def main() -> None:
        error = await failure(pending(client_over(Bridge(hello={"generation": 2}))))
        assert error.code == "protocol"
        assert "generation 2" in error.message

    run(main())


@pytest.mark.parametrize(
    "hello", [{"core_id": "c"}, {"coreId": "c"}, {"core": "c"}, {"id": "c"}, {"core": {"id": "c"}}]
)
def test_the_core_id_is_found_under_its_likely_names(hello: dict[str, Any]) -> None:
    async def main() -> None:
        assert (await client_over(Bridge(hello=hello)).hello()).core_id == "c"

    run(main())


def test_an_oversized_line_fails_the_connection_with_all_its_calls() -> None:
    async def main() -> None:
        bridge = Bridge()
        client = client_over(bridge, line_limit=1024)
        tasks = [pending(client), pending(client)]
        await settle()
        bridge.feed(b"x" * 1025)
        for task in tasks:
            error = await failure(task)
            assert error.code == "protocol"
            assert "1024" in error.message

    run(main())


def test_a_call_bound_to_a_link_is_not_made_over_another() -> None:
    async def main() -> None:
        first, second = Bridge(), Bridge()
        first.on_call = second.on_call = echo
        client = client_over(first, second)
        seen = await client.ask("terminal.get", {"terminal": "n"})
        first.end()
        await settle()
        with pytest.raises(SupervisorError) as caught:
            await client.call("terminal.kill", {"terminal": "n"}, on_link=seen.link)
        assert (caught.value.code, caught.value.known) == ("host-unreachable", "not-sent")
        assert second.calls("terminal.kill") == []

    run(main())


def test_a_cancelled_call_is_forgotten_and_its_reply_dropped() -> None:
    async def main() -> None:
        bridge = Bridge()
        client = client_over(bridge)
        task = pending(client)
        await settle()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        bridge.reply(bridge.sent[1]["id"], {"turn": 1})
        await settle()
        assert client.diagnostics.dropped_replies == 1

    run(main())


def test_a_peer_that_reads_nothing_holds_up_no_reply_and_unsent_calls_say_so() -> None:
    async def main() -> None:
        bridge = Bridge()
        client = client_over(bridge)
        await client.hello()
        bridge.stuck = True
        first, second = pending(client, "terminal.kill"), pending(client, "terminal.kill")
        await settle()
        bridge.reply(bridge.sent[1]["id"], {"killed": True})
        assert await first == {"killed": True}
        error = await failure(second)
        assert (error.code, error.known) == ("call-timeout", "not-sent")

    run(main())


def test_closing_fails_what_waits_and_refuses_what_comes() -> None:
    async def main() -> None:
        bridge = Bridge()
        client = client_over(bridge)
        reading, changing = pending(client), pending(client, "terminal.rm")
        await settle()
        await client.close()
        assert (await failure(reading)).code == "closed"
        assert (await failure(changing)).code == "outcome-unknown"
        assert (await failure(pending(client))).code == "closed"
        await client.close()
        assert bridge.closed == 1

    run(main())


def test_closing_while_a_connection_is_tried_ends_the_tries() -> None:
    async def main() -> None:
        client = client_over(Bridge(refuse=ConnectionRefusedError()))
        task = pending(client)
        await settle()
        await client.close()
        assert (await failure(task)).code == "closed"
        others = [other for other in asyncio.all_tasks() if other is not asyncio.current_task()]
        assert others == []

    run(main())


def test_the_number_of_calls_in_flight_is_bounded() -> None:
    async def main() -> None:
        client = client_over(Bridge())
        tasks = [pending(client) for _ in range(MAX_CALLS_IN_FLIGHT)]
        await settle()
        assert (await failure(pending(client))).code == "bad-request"
        await client.close()
        await asyncio.gather(*tasks, return_exceptions=True)

    run(main())


def test_unsendable_parameters_are_refused_before_a_bridge_is_started() -> None:
    async def main() -> None:
        bridges = Bridges(Bridge())
        error = await failure(asyncio.create_task(HcClient(bridges).call("terminal.run", {"cwd": "/\udcff"})))
        assert error.code == "bad-request"
        assert bridges.used == 0

    run(main())


def test_a_call_may_be_given_less_time_but_never_more() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        client = client_over(Bridge(), deadlines={"terminal.get": 1_000})
        with pytest.raises(SupervisorError):
            await client.call("terminal.get", {}, within_ms=300)
        assert loop.time() == pytest.approx(0.3)
        with pytest.raises(SupervisorError):
            await client.call("terminal.get", {}, within_ms=60_000)
        assert loop.time() == pytest.approx(1.3)

    run(main())


def test_a_connection_that_never_opens_is_bounded_by_the_deadline_of_each_call() -> None:
    class Hanging(Bridge):
        async def open(self) -> None:
            await asyncio.Event().wait()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        bridge = Hanging()
        client = client_over(bridge, deadlines={"terminal.get": 1_000})
        short = await failure(pending(client))
        assert (short.code, short.known) == ("host-unreachable", "not-sent")
        assert loop.time() == pytest.approx(1)
        long = await failure(pending(client, "terminal.kill"))
        assert (long.code, long.known) == ("host-unreachable", "not-sent")
        assert loop.time() == pytest.approx(5)
        await client.close()
        assert bridge.closed == 1

    run(main())


def test_a_result_that_is_null_or_no_object_is_still_a_success() -> None:
    async def main() -> None:
        bridge = Bridge()
        results = [None, True]
        bridge.on_call = lambda bridge, call: bridge.reply(call["id"], results.pop(0))
        client = client_over(bridge)
        assert await client.call("terminal.rm", {}) == {}
        assert await client.call("terminal.rm", {}) == {"value": True}

    run(main())


def test_a_reply_at_the_very_deadline_still_counts() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        bridge = Bridge()
        client = client_over(bridge, deadlines={"terminal.send": 1_000})
        await client.hello()
        loop.call_at(loop.time() + 1, lambda: bridge.reply(bridge.sent[1]["id"], {"started": True}))
        outcome = await asyncio.gather(client.call("terminal.send", {}), return_exceptions=True)
        assert outcome[0] == {"started": True} or isinstance(outcome[0], SupervisorError)
        assert client.diagnostics.dropped_replies == isinstance(outcome[0], SupervisorError)

    run(main())


def test_a_caller_that_is_cancelled_while_connecting_leaves_the_connection_to_the_others() -> None:
    async def main() -> None:
        bridge = Bridge(polite=False)
        bridge.on_call = lambda bridge, call: None
        client = client_over(bridge)
        first, second = pending(client), pending(client)
        await settle()
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        bridge.reply(bridge.sent[0]["id"], bridge.hello)
        await settle()
        bridge.reply(bridge.sent[1]["id"], {"turn": 1})
        assert await second == {"turn": 1}
        assert first.cancelled()

    run(main())
