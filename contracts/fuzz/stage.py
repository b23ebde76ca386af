"""One supervisor in a lean world, driven step by step, with every invariant looked at after every step."""

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from contracts.fuzz import invariants
from contracts.fuzz.features import features_of
from contracts.fuzz.invariants import Broken, Done, Watched
from contracts.fuzz.lean import NOWHERE, LeanWorld, Make, correct, timers
from contracts.fuzz.sometimes import noticed
from contracts.fuzz.watched import STEP, Ask, Incarnation
from contracts.running.drive import DEFAULT_RUN_ID, DEFAULT_TASK
from contracts.scenario import Step, World
from hc_sim.clock import VirtualLoop
from legion_terminal.errors import SupervisorError
from legion_terminal.types import Child, RetireResult, SpawnRequest

CHANGES_A_WAIT = frozenset({"steer", "retire"})
GRACE_ROUNDS = 12
"""How often the loop comes round after the close before what is left counts as left over."""


class Stage:
    """A world, its supervisor and what became of every step. `broken` and `seen` grow as the run goes on.

    `features` are what a guided search goes after. `make` makes the supervisor under test.
    """

    def __init__(
        self, world: World, loop: VirtualLoop, *, poll_ms: int = 250, make: Make = correct, folder: str = NOWHERE
    ) -> None:
        self.world = LeanWorld(world, loop, make=make, poll_ms=poll_ms, folder=folder)
        self.broken: list[Broken] = []
        self.seen: set[str] = set()
        self.features: set[str] = set()
        self.done: list[Done] = []
        self.children: dict[str, Child] = {}
        self._loop = loop
        self._steps = 0
        self._kept = Watched()
        self._own: dict[Incarnation, int | None] = {}
        self._texts: dict[str, Incarnation | None] = {}
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._running: dict[int, Done] = {}
        self._off: dict[str, asyncio.Event] = {}

    async def carry_out(self, step: Step) -> None:
        """One step of a drive; a step about a child that was never started is passed over."""
        index = self._steps
        self._steps += 1
        STEP.set(index)
        match step.do:
            case "pause":
                await asyncio.sleep(int(step.args["ms"]) / 1_000)
            case "join":
                for name in step.of:
                    await self._join(name)
            case "cancel":
                for name in step.of:
                    self._call_off(name)
                await asyncio.sleep(0)
            case _ if step.child and step.child not in self.children:
                pass
            case _ if step.background:
                self._under_way[step.as_] = asyncio.create_task(self._call(index, step))
                await asyncio.sleep(0)
            case _:
                await self._call(index, step)
        self._look(index)

    async def leave(self) -> None:
        """Let what is under way come back, close the supervisor, and look at what is left."""
        for name in list(self._under_way):
            await self._join(name)
        await self.world.supervisor.close()
        for _ in range(GRACE_ROUNDS):
            if not (self.world.hub.connections or self._tasks()):
                break
            await asyncio.sleep(0)
        open_links = self.world.hub.connections
        self.world.driver.close()
        self._look(self._steps)
        for what in self._left(open_links):
            self._break(Broken(invariant="left-over", words=what, step=self._steps))
        for problem in self.world.driver.problems:
            self._break(Broken(invariant="harness", words=problem, step=self._steps))

    def hangs(self, why: str) -> None:
        """The run can never end: some call does not come back."""
        at = min(self._running, default=self._steps)
        what = ", ".join(f"{done.step.do} (step {index})" for index, done in self._running.items()) or "the close"
        self._break(Broken(invariant="hangs", words=f"{what} never comes back: {why}", step=at))

    def _tasks(self) -> list["asyncio.Task[Any]"]:
        mine = asyncio.current_task()
        return [task for task in asyncio.all_tasks() if task is not mine]

    def _left(self, links: tuple[int, ...]) -> Iterator[str]:
        for task in self._tasks():
            yield f"task still runs: {getattr(task.get_coro(), '__qualname__', 'unnamed')}"
        for conn in links:
            yield f"connection {conn} is still open"
        for handle in timers(self._loop):
            yield f"timer is still set: {getattr(handle, '_callback', handle)!r}"

    async def _join(self, name: str) -> None:
        task = self._under_way.pop(name, None)
        if task is not None:
            await task

    def _call_off(self, name: str) -> None:
        event = self._off.get(name)
        if event is not None and not event.is_set():
            event.set()
            for done in self._running.values():
                if done.step.as_ == name:
                    done.cancelled_ms = self.world.now()

    async def _call(self, index: int, step: Step) -> None:
        STEP.set(index)
        child = self.children.get(step.child)
        done = Done(index, step, self.world.now(), 0, child=child, identity=_identity(child))
        done.retired = child is not None and child.retired
        done.prompt_turn = child.prompt_turn if child is not None else 0
        self._kept.runs = {} if step.do == "spawn" and not self._spawning() else self._kept.runs
        self._disturb(done)
        self._running[index] = done
        if step.do == "steer":
            self._texts[str(step.args["text"])] = done.identity
        try:
            done.result = await self._ask(step, child)
        except SupervisorError as error:
            done.error = error
        except Exception as error:  # what it is decides an invariant
            done.error = error
        finally:
            self._running.pop(index, None)
        done.ended_ms = self.world.now()
        if step.do == "spawn" and isinstance(done.result, Child):
            self.children[step.as_] = done.child = done.result
            done.identity = _identity(done.child)
        self.done.append(done)
        self._look(index, done)

    def _spawning(self) -> bool:
        return any(done.step.do == "spawn" for done in self._running.values())

    def _disturb(self, done: Done) -> None:
        """Whatever may change what a wait waits for disturbs the waits for the same child that are under way."""
        others = [other for other in self._running.values() if other.child is done.child]
        if done.step.do in CHANGES_A_WAIT:
            for other in others:
                other.disturbed = True
        done.disturbed = any(other.step.do in CHANGES_A_WAIT for other in others)

    async def _ask(self, step: Step, child: Child | None) -> Any:
        supervisor = self.world.supervisor
        if child is None:
            return await supervisor.spawn(self._request(str(step.args["handle"])))
        match step.do:
            case "steer":
                return await supervisor.steer(child, str(step.args["text"]))
            case "wait":
                event = self._off[step.as_] = asyncio.Event()
                return await supervisor.wait_settled(child, float(step.args["timeoutMs"]), event if step.as_ else None)
            case "abort":
                return await supervisor.abort(child)
            case "status":
                return await supervisor.status(child)
            case "collect":
                return await supervisor.collect(child)
            case "retire":
                return await supervisor.retire(child)
        raise ValueError(f"there is no step {step.do!r}")

    def _request(self, handle: str) -> SpawnRequest:
        return SpawnRequest(
            agent="centurion",
            run_id=DEFAULT_RUN_ID,
            handle=handle,
            task=DEFAULT_TASK,
            cwd=self.world.folder,
            session_file=self.world.session(handle),
            worktree=True,
        )

    def _look(self, index: int, done: Done | None = None) -> None:
        """Every invariant, on what is new since the last look."""
        self._take_events(index)
        core, asks = self.world.core, self.world.client.asks
        self._own.update((new, self._own.get(new)) for new in core.started)
        for touch in core.touches[self._kept.touches :]:
            for broken in invariants.own_only(touch, asks, self._own, index):
                self._break(broken)
        self._kept.touches = len(core.touches)
        if done is None:
            return
        for found in (
            invariants.typed(done),
            invariants.in_time(done),
            invariants.few_runs(done, self._kept.runs),
            invariants.consent(done, asks, self._kept.shown),
        ):
            for broken in found:
                self._break(broken)
        if isinstance(done.result, RetireResult):
            standing = {(one.address, one.created_ms): str(one.state) for one in core.terminals()}
            for broken in invariants.claims(done, self._retiring(done), standing):
                self._break(broken)
        mine = [ask for ask in asks if ask.step == index]
        new = self.world.core.trace.events
        self.seen.update(noticed(done, mine, new))
        self.features.update(features_of(done, mine, new))

    def _retiring(self, done: Done) -> list[Ask]:
        """The calls of every retirement of the same child so far: several at once share one attempt."""
        steps = {one.index for one in self.done if one.step.do == "retire" and one.child is done.child}
        steps |= {index for index, one in self._running.items() if one.step.do == "retire" and one.child is done.child}
        return [ask for ask in self.world.client.asks if ask.step in steps]

    def _take_events(self, index: int) -> None:
        events = self.world.core.trace.events
        for event in events[self._kept.events :]:
            if event.kind == "text":
                for broken in invariants.reached_once(event, self._kept, index, self._texts):
                    self._break(broken)
            elif event.kind in ("state", "run"):
                self._kept.shown.setdefault(event.terminal, []).append(event)
            elif event.kind == "call" and event.method == "terminal.run":
                self._kept.runs[event.name] = self._kept.runs.get(event.name, 0) + 1
        self._kept.events = len(events)

    def _break(self, broken: Broken) -> None:
        if not any(replace(broken, words="") == replace(known, words="") for known in self.broken):
            self.broken.append(broken)


def _identity(child: Child | None) -> Incarnation | None:
    return (child.address, child.created_ms or 0) if child is not None and child.address else None


async def settle_down() -> None:
    """Cancel every other task of the loop and let it come to rest, after a run that could not end."""
    mine = asyncio.current_task()
    rest = [task for task in asyncio.all_tasks() if task is not mine]
    for task in rest:
        task.cancel()
    with contextlib.suppress(Exception):
        await asyncio.gather(*rest, return_exceptions=True)
