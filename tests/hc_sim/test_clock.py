import asyncio
import threading
import time

import pytest

from hc_sim.clock import LoopClock, RealClock, VirtualClock, VirtualDeadlock, VirtualLoop, VirtualTimeError, run_virtual


def test_a_virtual_quarter_of_an_hour_passes_exactly_and_on_its_own() -> None:
    async def nap() -> float:
        await asyncio.sleep(900)
        return asyncio.get_running_loop().time()

    assert run_virtual(nap()) == 900.0


def test_every_run_starts_at_zero() -> None:
    async def begin() -> float:
        return asyncio.get_running_loop().time()

    assert [run_virtual(begin()), run_virtual(begin())] == [0.0, 0.0]


def test_timers_of_the_same_instant_fire_in_the_order_in_which_they_were_set() -> None:
    seen: list[int] = []

    async def many() -> None:
        loop = asyncio.get_running_loop()
        for number in range(50):
            loop.call_at(1.0, seen.append, number)
        await asyncio.sleep(2)

    run_virtual(many())
    assert seen == list(range(50))


def test_an_instant_reached_by_different_sums_is_one_instant() -> None:
    """Ten steps of 0.1 s and one of 1 s differ in the last bit of a float; they must not differ in order."""
    seen: list[str] = []

    async def sums() -> None:
        loop = asyncio.get_running_loop()
        loop.call_at(1.0, seen.append, "whole")
        loop.call_at(sum([0.1] * 10), seen.append, "sum")
        loop.call_at(1.0, seen.append, "last")
        await asyncio.sleep(1.5)

    run_virtual(sums())
    assert seen == ["whole", "sum", "last"]


def test_what_is_ready_runs_before_time_moves() -> None:
    seen: list[tuple[str, float]] = []

    async def busy() -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(0.001, lambda: seen.append(("timer", loop.time())))
        for _ in range(1_000):
            await asyncio.sleep(0)
        seen.append(("busy", loop.time()))
        await asyncio.sleep(0.01)

    run_virtual(busy())
    assert seen == [("busy", 0.0), ("timer", 0.001)]


def test_a_timeout_of_asyncio_fires_at_its_virtual_moment() -> None:
    async def wait() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(90):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time()

    assert run_virtual(wait()) == 90.0


def test_a_cancelled_timer_does_not_move_time() -> None:
    async def cancel() -> float:
        loop = asyncio.get_running_loop()
        loop.call_later(500, lambda: None).cancel()
        await asyncio.sleep(1)
        return loop.time()

    assert run_virtual(cancel()) == 1.0


def test_waiting_for_what_cannot_happen_is_a_deadlock_and_not_a_hang() -> None:
    async def hang() -> None:
        await asyncio.sleep(2)
        await asyncio.Event().wait()

    with pytest.raises(VirtualDeadlock, match="nothing is scheduled at 2000 virtual ms"):
        run_virtual(hang())


def test_the_tasks_of_a_deadlock_are_cancelled() -> None:
    ended: list[str] = []

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cleaned up")

    with pytest.raises(VirtualDeadlock):
        run_virtual(hang())
    assert ended == ["cleaned up"]


def test_a_poller_without_end_is_stopped_at_the_limit() -> None:
    async def poll() -> None:
        loop = asyncio.get_running_loop()

        def again() -> None:
            loop.call_later(0.25, again)

        again()
        await asyncio.Event().wait()

    with pytest.raises(VirtualDeadlock, match="still running after 10000 virtual ms"):
        run_virtual(poll(), limit_ms=10_000)


def test_time_stands_still_while_a_thread_of_ours_is_at_work() -> None:
    gate = threading.Event()

    def work() -> str:
        gate.wait(10)
        return "done"

    async def both() -> tuple[str, float]:
        loop = asyncio.get_running_loop()
        rival = loop.call_later(3_600, lambda: None)
        task = asyncio.create_task(asyncio.to_thread(work))
        await asyncio.sleep(0)
        threading.Timer(0.02, gate.set).start()
        answer = await task
        rival.cancel()
        return answer, loop.time()

    assert run_virtual(both()) == ("done", 0.0)


@pytest.mark.parametrize(
    "ask",
    [
        lambda loop: asyncio.create_subprocess_exec("true"),
        lambda loop: asyncio.create_subprocess_shell("true"),
        lambda loop: asyncio.open_connection("127.0.0.1", 9),
        lambda loop: asyncio.open_unix_connection("/tmp/none"),
        lambda loop: asyncio.start_server(lambda r, w: None, "127.0.0.1", 0),
        lambda loop: asyncio.start_unix_server(lambda r, w: None, "/tmp/none"),
        lambda loop: loop.create_datagram_endpoint(asyncio.DatagramProtocol, local_addr=("127.0.0.1", 0)),
        lambda loop: loop.sock_connect(None, ("127.0.0.1", 9)),
        lambda loop: loop.connect_read_pipe(asyncio.Protocol, None),
        lambda loop: loop.connect_write_pipe(asyncio.Protocol, None),
    ],
    ids=["exec", "shell", "tcp", "unix", "tcp-server", "unix-server", "datagram", "sock", "read-pipe", "write-pipe"],
)
def test_whatever_a_virtual_clock_cannot_see_is_refused_with_the_reason(ask: object) -> None:
    async def try_it() -> None:
        await ask(asyncio.get_running_loop())  # type: ignore[operator]

    with pytest.raises(VirtualTimeError, match="cannot see whether the other side is still working; use real time"):
        run_virtual(try_it())


def test_a_loop_clock_counts_whole_milliseconds_from_its_own_beginning() -> None:
    async def read() -> list[int]:
        await asyncio.sleep(12.345)
        clock = LoopClock(asyncio.get_running_loop())
        seen = [clock.now()]
        for seconds in (0.001, 0.0005, 0.0005, 0.1):
            await asyncio.sleep(seconds)
            seen.append(clock.now())
        return seen

    assert run_virtual(read()) == [0, 1, 1, 2, 102]


def test_a_timer_set_for_a_millisecond_never_finds_itself_early() -> None:
    async def check() -> list[int]:
        await asyncio.sleep(0.123456)
        loop = asyncio.get_running_loop()
        clock = LoopClock(loop)
        seen: list[tuple[int, int]] = []
        for ms in range(1, 3_000):
            loop.call_at(clock.at(ms), lambda due: seen.append((due, clock.now())), ms)
        await asyncio.sleep(5)
        return [due for due, now in seen if now != due]

    assert run_virtual(check()) == []


def test_a_virtual_clock_refuses_to_go_back() -> None:
    clock = VirtualClock()
    clock.jump(2_500)
    assert clock.now() == 2
    with pytest.raises(ValueError, match="cannot go back"):
        clock.jump(-1)


def test_a_real_clock_starts_near_zero_and_goes_on() -> None:
    clock = RealClock()
    first = clock.now()
    time.sleep(0.005)
    assert first < clock.now()


def test_a_virtual_loop_can_be_used_like_any_other() -> None:
    loop = VirtualLoop()
    try:
        assert loop.run_until_complete(asyncio.sleep(60, "slept")) == "slept"
        assert loop.clock.now() == 60_000
    finally:
        loop.close()
