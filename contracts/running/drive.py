"""Carry out the drive of a scenario: calls on the system under test and moves of the world, step by step.

A failure that the system reports (`SutError`) is a result like any other, and so is an exception that it lets out: that
one is on record with the code `unexpected`. Anything else that goes wrong ends the drive with `DriveError`: then the
run proves nothing, and is errored.
"""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, Protocol

import msgspec

from contracts.records import UNEXPECTED, StepRecord
from contracts.running.placeholders import fill
from contracts.scenario import Scenario, Step
from contracts.sut.base import DEFAULT_WAIT_MS, METHODS, OwnProcess, Sut, SutError, SutUnstartedError
from hc_sim.clock import VirtualDeadlock, VirtualTimeError

DEFAULT_HANDLE = "alpha"
DEFAULT_RUN_ID = "run00001"
DEFAULT_TASK = "do the work"

MOVES: Mapping[str, frozenset[str]] = {
    "fire": frozenset({"name"}),
    "pause": frozenset({"ms"}),
    "until": frozenset({"calls", "count"}),
    "join": frozenset(),
    "cancel": frozenset(),
    "write": frozenset({"file", "text", "append"}),
    "restart": frozenset({"ms"}),
}
"""Moves of the world and the arguments they take; every other step is a call of `contracts.sut.base.METHODS`."""


class DriveError(Exception):
    """The drive could not be carried out: a mistake of the scenario, or a world that broke."""


class Stage(Protocol):
    """The world as the drive sees it."""

    fills: dict[str, str]

    def now(self) -> int:
        """Milliseconds since the drive began."""

    def session(self, handle: str) -> str:
        """Path of the child's session file, created empty with mode 0600 when it is not there."""

    def fire(self, name: str) -> int:
        """Fire the `by_hand` steps of this name; the number that fired."""

    def write(self, file: str, text: str, *, append: bool) -> None:
        """Write a file below the run's folder."""

    async def calls(self, method: str, count: int) -> None:
        """Return when the core has received this method so often."""

    async def restart(self, ms: int) -> None:
        """Close every link, listen to nobody for so long, then listen again."""


class Drive:
    """One drive on its way. `records` may be read at any moment; a step that is not back has neither result."""

    def __init__(self, scenario: Scenario, stage: Stage, sut: Sut) -> None:
        self._steps = scenario.drive
        self._stage = stage
        self._sut = sut
        self._tokens: dict[str, str] = {}
        self._background: dict[str, asyncio.Task[None]] = {}
        self._records: dict[int, StepRecord] = {}
        self.children: dict[str, str] = {}

    @property
    def records(self) -> list[StepRecord]:
        """How each step went, in the order written; steps that were never reached are there without a time."""
        return [self._records.get(index, _untold(index, step)) for index, step in enumerate(self._steps)]

    def waiting(self) -> str:
        """In words, the steps that have begun and are not back."""
        open_steps = [
            f"step {r.index} ({r.do})" for r in self._records.values() if r.returned is None and r.raised is None
        ]
        return ", ".join(open_steps) or "no step"

    def blame(self, what: str) -> None:
        """Lay what the system did after its last answer on the step that came back last."""
        records = self._records.values()
        back = [record for record in records if record.returned is not None]
        if back and not any(record.raised and record.raised.get("code") == UNEXPECTED for record in records):
            last = max(back, key=lambda record: (record.at_ms or 0, record.index))
            raised = {"code": UNEXPECTED, "message": f"afterwards the driver {what}", "type": "SutBrokenError"}
            self._records[last.index] = msgspec.structs.replace(last, returned=None, raised=raised)

    async def run(self) -> None:
        """Every step in order, then every background step to its end. Raises `DriveError`."""
        try:
            for index, step in enumerate(self._steps):
                await self._begin(index, step)
            for task in list(self._background.values()):
                await task
        finally:
            await self._drop_background()

    async def _begin(self, index: int, step: Step) -> None:
        if step.at_ms is not None:
            await asyncio.sleep(max(0, step.at_ms - self._stage.now()) / 1_000)
        if step.background:
            name = step.as_ or f"#{index}"
            self._background[name] = asyncio.create_task(
                self._step(index, step), name=f"drive step {index} ({step.do})"
            )
            await asyncio.sleep(0)
        else:
            await self._step(index, step)

    async def _step(self, index: int, step: Step) -> None:
        if step.child and step.child not in self._tokens:
            return  # its spawn did not succeed: the step is shown as never reached
        started = self._stage.now()
        begun = _untold(index, step, started)
        self._records[index] = begun
        returned: dict[str, Any] | None = None
        raised: dict[str, Any] | None = None
        try:
            returned = await self._do(step)
        except SutError as error:
            raised = error.error
        except (DriveError, asyncio.CancelledError):
            raise
        except Exception as error:
            raise DriveError(f"step {index} ({step.do}) broke with {type(error).__name__}: {error}") from error
        now = self._stage.now()
        self._records[index] = _told(begun, now, returned, raised)

    async def _do(self, step: Step) -> dict[str, Any]:
        args = fill(step.args, self._stage.fills, step.child)
        allowed = MOVES.get(step.do) if step.do in MOVES else METHODS.get(step.do)
        if allowed is None:
            raise DriveError(f"there is no step {step.do!r}")
        if unknown := sorted(set(args) - allowed):
            raise DriveError(
                f"step {step.do!r} takes no argument {unknown[0]!r}; it takes {', '.join(sorted(allowed))}"
            )
        return await (self._move(step, args) if step.do in MOVES else self._call(step, args))

    async def _call(self, step: Step, args: dict[str, Any]) -> dict[str, Any]:
        if step.do == "spawn":
            return await self._spawn(step, args)
        if step.child:
            args = {**args, "child": self._tokens[step.child]}
        if step.do == "wait":
            args = {"timeoutMs": DEFAULT_WAIT_MS, "token": step.as_, **args}
        return await self._ask(step.do, args)

    async def _ask(self, method: str, args: dict[str, Any]) -> dict[str, Any]:
        """One call on the system. Raises `SutError` for its failures, those too that it never meant to report."""
        try:
            return await self._sut.call(method, args)
        except (SutError, VirtualDeadlock, VirtualTimeError):
            raise
        except SutUnstartedError as error:
            raise DriveError(str(error)) from error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise  # the drive is cut short from outside
            raise SutError(_unexpected(error)) from error
        except Exception as error:
            raise SutError(_unexpected(error)) from error

    async def _spawn(self, step: Step, args: dict[str, Any]) -> dict[str, Any]:
        handle = str(args.get("handle", DEFAULT_HANDLE))
        defaults: dict[str, Any] = {
            "handle": handle,
            "runId": DEFAULT_RUN_ID,
            "agent": "centurion",
            "worktree": True,
            "task": DEFAULT_TASK,
            "cwd": self._stage.fills["cwd"],
        }
        if args.get("mode") == "rpc":
            defaults["minFreeMb"] = 0  # what comes of a scenario must not hang on the memory of this machine
        if "sessionFile" not in args:
            defaults["sessionFile"] = self._stage.session(handle)
        params = {**defaults, **args}
        fills = self._stage.fills
        name = step.as_ or handle
        fills[f"session:{name}"] = str(params["sessionFile"])
        returned = await self._ask("spawn", params)
        self._tokens[name] = str(returned["child"])
        terminal = str(returned.get("name") or "")
        self.children[name] = terminal
        fills[f"name:{name}"] = terminal
        if len(self.children) == 1:
            fills |= {"name": terminal, "session": str(params["sessionFile"])}
        return returned

    async def _move(self, step: Step, args: dict[str, Any]) -> dict[str, Any]:
        match step.do:
            case "fire":
                fired = self._stage.fire(str(args["name"]))
                await asyncio.sleep(0)  # what the step did to files is done when the loop comes round
                return {"fired": fired}
            case "pause":
                await asyncio.sleep(int(args["ms"]) / 1_000)
            case "until":
                await self._until(self._stage.calls(str(args["calls"]), int(args.get("count", 1))))
            case "join":
                for name in step.of:
                    await self._named(name)
                return self._result_of(step.of[0]) if len(step.of) == 1 else {}
            case "cancel":
                for name in step.of:
                    self._named(name)
                    await self._ask("cancel", {"token": name})
            case "write":
                self._stage.write(str(args["file"]), str(args.get("text", "")), append=bool(args.get("append", False)))
            case _:
                await self._stage.restart(int(args.get("ms", 0)))
        return {}

    async def _until(self, calls: Coroutine[Any, Any, None]) -> None:
        """Wait for calls of the system under test, but not for those of one that is of no more use."""
        if not isinstance(self._sut, OwnProcess):
            await calls
            return
        arrived = asyncio.ensure_future(calls)
        broken = asyncio.ensure_future(self._sut.broken.wait())
        try:
            await asyncio.wait({arrived, broken}, return_when=asyncio.FIRST_COMPLETED)
            if not arrived.done():
                raise SutError({"code": UNEXPECTED, "message": "the driver broke before it made these calls"})
            await arrived
        finally:
            for waiting in (arrived, broken):
                waiting.cancel()
            await asyncio.gather(arrived, broken, return_exceptions=True)

    def _result_of(self, name: str) -> dict[str, Any]:
        found = [record.returned for record in self._records.values() if record.name == name]
        return dict(found[0] or {}) if found else {}

    def _named(self, name: str) -> asyncio.Task[None]:
        if name not in self._background:
            raise DriveError(f"no background step is called {name!r}")
        return self._background[name]

    async def _drop_background(self) -> None:
        tasks = [task for task in self._background.values() if not task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*self._background.values(), return_exceptions=True)


def _unexpected(error: BaseException) -> dict[str, Any]:
    return {"code": UNEXPECTED, "message": str(error), "type": type(error).__name__}


def _untold(index: int, step: Step, started: int = 0) -> StepRecord:
    return StepRecord(index=index, do=step.do, name=step.as_, child=step.child, started_ms=started)


def _told(begun: StepRecord, now: int, returned: dict[str, Any] | None, raised: dict[str, Any] | None) -> StepRecord:
    return StepRecord(
        index=begun.index,
        do=begun.do,
        name=begun.name,
        child=begun.child,
        started_ms=begun.started_ms,
        at_ms=now,
        took_ms=now - begun.started_ms,
        returned=returned,
        raised=raised,
    )
