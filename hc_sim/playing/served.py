"""A fake core behind a real socket, in a thread of its own: for tests that are not asynchronous, and their children.

The core lives in the event loop of that thread and nowhere else; every method hands its work over and waits, for a
bounded time, until it is done and what followed from it has gone out.
"""

import asyncio
import contextlib
import os
import shutil
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

import msgspec

from hc_sim.core import Core
from hc_sim.driver import Driver
from hc_sim.faults import FaultPlan, Faults, as_plan
from hc_sim.faults.check import check_plan
from hc_sim.folder import private_folder
from hc_sim.hosting import Programs
from hc_sim.hub.connection import METHOD_NAMES, Hub
from hc_sim.playing.stage import Stage
from hc_sim.profile import WireProfile
from hc_sim.programs import install_faulty_hc, install_hc
from hc_sim.script.format import Agent
from hc_sim.server import UnixServer
from hc_sim.trace import Event, Kind, Trace

T = TypeVar("T")

START_S = 30.0
"""How long the thread may take to listen, and to end."""
ANSWER_S = 30.0
"""How long the thread may take to carry out one piece of work."""
WAIT_MS = 10_000
"""How long `wait_for` waits if nothing else is said."""
HOME_LABELS = {"herdr.space": "space-1"}
FOREIGN_PREFIXES = ("HC_", "PI_SUBAGENT_")
"""Variables of a surrounding terminal or agent, which a program under test must not follow."""


class ServedCore(Stage):
    """A fake core that any program on this machine can reach, between `start` and `close`; also a context manager.

    `socket` is where it listens, `hc` the executable that leads there, `home` the address of the terminal in which a
    program under test is meant to run, `env` the whole environment for one. All of it is in a private folder with a
    short path that is removed at the end. `problems` are defects in words; there should be none. With `programs`, what
    no agent plays is really started, and ended at the end.

    Raises `ValueError` for a timeline that cannot be played, or a fault that cannot be carried out.
    """

    def __init__(
        self,
        *,
        agents: Sequence[Agent] = (),
        faults: Faults = (),
        profile: WireProfile | None = None,
        env: Mapping[str, str] | None = None,
        programs: bool = False,
    ) -> None:
        self._plan = as_plan(faults)
        check_plan(self._plan, METHOD_NAMES)
        self.folder = private_folder()
        self._remove = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self.socket = self.folder / "core.sock"
        self._programs = Programs(profile) if programs else None
        self._core = Core(
            profile,
            agents=agents,
            env=env,
            core_id=f"hc-sim-{os.getpid()}",
            started_ms=time.time_ns() // 1_000_000,
            socket=str(self.socket),
            cwd_exists=os.path.isdir,
            start_program=None if self._programs is None else self._programs.start,
        )
        self.home = self._core.add_terminal(name="you", labels=HOME_LABELS)
        self.hc = install_planned(self.folder / "bin", self._plan)
        self.problems: list[str] = []
        self._news = threading.Condition()
        self._running: Future[tuple[Driver, asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._thread = threading.Thread(target=self._main, name="hc-sim core", daemon=True)

    @property
    def trace(self) -> Trace:
        """What happened so far: a list that only grows, so that it can be read while the core runs."""
        return self._core.trace

    @property
    def env(self) -> dict[str, str]:
        """The environment for a program under test: ours without what leads to another core, and what leads here."""
        env = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN_PREFIXES)}
        path = env.get("PATH") or os.defpath
        return env | {
            "HC_BIN": str(self.hc),
            "HC_TERMINAL_ID": self.home,
            "HC_TERMINAL_SOCKET": str(self.socket),
            "PATH": f"{self.hc.parent}{os.pathsep}{path}",
        }

    def start(self) -> "ServedCore":
        """Listen. Raises `SocketPathError` or `OSError` if that cannot be."""
        self._thread.start()
        try:
            self._running.result(START_S)
        except BaseException:
            self._remove()
            raise
        return self

    def close(self) -> None:
        """End every connection and remove socket and folder; the trace can still be read."""
        if self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # it has just ended by itself
                _, loop, ending = self._running.result(START_S)
                loop.call_soon_threadsafe(ending.set)
            self._thread.join(START_S)
        self._remove()

    def __enter__(self) -> "ServedCore":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def wait_for(
        self, kind: Kind, method: str = "", *, terminal: str = "", nth: int = 1, timeout_ms: int = WAIT_MS
    ) -> Event:
        """Wait until the trace has the n-th event of this kind; `TimeoutError`, with a picture, if it does not come."""
        found: list[Event] = []

        def there() -> bool:
            found[:] = self.trace.of(kind, method, terminal)
            return len(found) >= nth

        with self._news:
            came = self._news.wait_for(there, timeout_ms / 1_000)
        if not came:
            what = " ".join(word for word in (kind, method, terminal) if word)
            raise TimeoutError(f"no {what} number {nth} came in {timeout_ms} ms:\n{self.picture()}")
        return found[nth - 1]

    def _do(self, work: Callable[[Hub, int], T]) -> T:
        if not self._thread.is_alive():
            raise RuntimeError("this core does not run: it was not started, or has been closed")
        driver, loop, _ = self._running.result(START_S)
        done: Future[T] = Future()

        def carry_out() -> None:
            try:
                result = work(driver.hub, driver.now())
            except BaseException as error:
                done.set_exception(error)
            else:
                loop.call_soon(loop.call_soon, done.set_result, result)  # after what followed from it has gone out
            driver.kick()

        loop.call_soon_threadsafe(carry_out)
        return done.result(ANSWER_S)

    def _main(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            if self._running.done():
                self.problems.append(f"the core's thread ended: {error!r}")
            else:
                self._running.set_exception(error)

    async def _serve(self) -> None:
        loop, ending = asyncio.get_running_loop(), asyncio.Event()
        driver = Driver(Hub(self._core, self._plan), loop, on_event=self._happened)
        self.problems = driver.problems
        hosting = contextlib.nullcontext() if self._programs is None else self._programs.running(driver)
        async with UnixServer(driver, self.socket), hosting:
            self._running.set_result((driver, loop, ending))
            await ending.wait()
        driver.close()

    def _happened(self, _: Event) -> None:
        with self._news:
            self._news.notify_all()


def install_planned(folder: Path, plan: FaultPlan) -> Path:
    """The `hc` executable; one with faults of its own if the plan has some for it."""
    if plan.bridge:
        return install_faulty_hc(folder, [msgspec.structs.asdict(bridge) for bridge in plan.bridge])
    return install_hc(folder)
