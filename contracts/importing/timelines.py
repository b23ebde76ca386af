"""Recorded runs of a real agent become scenarios whose outcome follows from D8.

What a supervisor does itself (a prompt submitted to a running agent, a lone Esc) is driven through it, and the agent's
reaction follows that call; all other keys were a person's, and only their effect stays, as a timed step. What each
wait must answer is worked out here from the rule of D8 and the polls alone; no supervisor is run.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import tomli_w

from contracts.importing.recording import Moment, RecordingError, Run, moments, read_runs
from contracts.scenario import Expect, Scenario, World
from contracts.scenario import Step as Drive
from hc_sim.script.format import Agent, Finish, StatusWord
from hc_sim.script.format import Step as Move

__all__ = ["RecordingError", "import_recording", "render", "write"]

POLL_MS = 250
END_AFTER_MS = 300
"""The recordings do not time the exit: it is put this long after the last event."""
MIN_WAIT_MS = 2 * POLL_MS
"""A pause between two acts that is shorter than this gets no wait of its own."""
_CALLS = {"steer": "terminal.send", "abort": "terminal.interrupt"}
HEADER = "# Written by `legion-contracts import-recording`; change the recording or the importer, not this file.\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """What `terminal.get` shows from `at_ms` on, when the supervisor acts at the recorded times."""

    at_ms: int
    turn: int
    status: StatusWord
    finished: bool = False

    def settles(self, prompt_turn: int) -> bool:
        """D8."""
        return self.finished or (self.turn > prompt_turn and self.status == "done")


def import_recording(path: Path) -> list[Scenario]:
    """One scenario for each run in the recording file, in the order of the file.

    Raises `RecordingError` when the file is not a recording.
    """
    return [_scenario(run, path.name) for run in read_runs(path)]


def write(scenarios: Sequence[Scenario], out: Path) -> list[Path]:
    """Write each scenario as `<out>/<id>.toml` and return the files; the same scenarios give the same bytes."""
    out.mkdir(parents=True, exist_ok=True)
    return [_write_one(scenario, out / f"{scenario.id}.toml") for scenario in scenarios]


def render(scenario: Scenario) -> str:
    """The text of the scenario's file."""
    return HEADER + tomli_w.dumps(msgspec.to_builtins(scenario))


def _write_one(scenario: Scenario, path: Path) -> Path:
    path.write_text(render(scenario), encoding="utf-8", newline="\n")
    return path


def _scenario(run: Run, file: str) -> Scenario:
    heard = list(moments(run))
    acts = [moment for moment in heard if moment.act != "said"]
    moves, shown = _timeline(run, heard)
    clauses = ["D8"] + ["D10"] * bool(acts) + ["D10-blocked"] * any(act.act == "refused" for act in acts)
    # What an interrupt does is in the steps, so the key itself does nothing.
    agent = Agent(interrupt="no-effect", step=moves) if any(act.act == "abort" for act in acts) else Agent(step=moves)
    return Scenario(
        id=f"recorded-{run.name}",
        why=_why(run, heard),
        clauses=clauses,
        source=f"{file}: {run.name}",
        poll_ms=POLL_MS,
        world=World(agent=[agent]),
        drive=list(_drive(acts, shown, run)),
        expect=[Expect(clause="D8", say="a wait kills nothing", calls="terminal.kill", count=0), *_sends(acts)],
    )


def _why(run: Run, heard: Sequence[Moment]) -> str:
    words = [_word(moment) for moment in heard]
    return f"A real agent was seen to do this: {', '.join([*words, run.signal or f'exit {run.exit_code}'])}."


def _word(moment: Moment) -> str:
    if moment.act != "said":
        return {"steer": "(a steer)", "abort": "(an abort)", "refused": "(a steer, refused)"}[moment.act]
    return "clear" if moment.status == "none" else moment.status


def _sends(acts: Sequence[Moment]) -> Iterator[Expect]:
    if acts:
        texts = sum(act.act == "steer" for act in acts)
        yield Expect(clause="D10", say="every prompt is sent once", calls="terminal.send", count=texts)


# --- the agent's timeline ---


def _timeline(run: Run, heard: Sequence[Moment]) -> tuple[list[Move], list[_Shown]]:
    """The steps, and what they show when the supervisor acts at the recorded times.

    Times are absolute up to the supervisor's first act. Its call is a step of its own, and what comes later follows at
    the recorded distance from it, so that the order of events holds whenever the call comes.
    """
    moves: list[Move] = []
    shown = [_Shown(at_ms=0, turn=0, status="none")]
    called = False
    before = 0
    for moment in (moment for moment in heard if moment.act != "refused"):
        if moment.act == "said":
            moves.append(_when(moment.at_ms, before if called else None, **_effect(moment)))
            shown.append(_Shown(at_ms=moment.at_ms, turn=moment.turn, status=moment.status))
        else:
            called = True
            moves.append(Move(on_call=_CALLS[moment.act], note=moment.act))
        before = moment.at_ms
    end = (run.events[-1].at_ms if run.events else 0) + END_AFTER_MS
    finish = Finish(signal=run.signal) if run.signal else Finish(code=run.exit_code)
    moves.append(_when(end, before if called else None, finish=finish))
    shown.append(_Shown(at_ms=end, turn=shown[-1].turn, status=shown[-1].status, finished=True))
    return moves, shown


def _when(at_ms: int, before: int | None, **effect: Any) -> Move:
    return Move(at_ms=at_ms, **effect) if before is None else Move(after_ms=at_ms - before, **effect)


def _effect(moment: Moment) -> dict[str, Any]:
    told = {"kind": moment.kind, "msg": moment.msg, "app": None if moment.app == "pi" else moment.app}
    return {"turn": moment.turn, "status": moment.status} | {key: value for key, value in told.items() if value}


# --- the drive, and what D8 makes of it ---


def _drive(acts: Sequence[Moment], shown: Sequence[_Shown], run: Run) -> Iterator[Drive]:
    """Spawn; wait up to each act and to the end of the last stretch; then see how the program ended."""
    yield Drive(do="spawn", as_="a")
    end = shown[-1].at_ms
    if all(state.status == "none" for state in shown):
        yield _ending(run, None, end)
        return
    last = shown[-2].at_ms if shown[-2].status == "none" else end
    starts: list[Moment | None] = [None, *acts]
    prompt_turn = 0
    for act, until in zip(starts, [*(act.at_ms for act in acts), last], strict=True):
        start = 0
        if act is not None:
            start = act.at_ms
            prompt_turn = act.turn if act.act == "steer" else prompt_turn
            yield _act(act)
        if until - start >= MIN_WAIT_MS:
            yield _wait(start, until - 1, prompt_turn, shown)
    yield _ending(run, end + 1, end + 1)


def _act(act: Moment) -> Drive:
    if act.act == "abort":
        return Drive(do="abort", child="a", at_ms=act.at_ms, returns={"status": "interrupted"}, clause="D10")
    args = {"text": act.text}
    if act.act == "refused":
        raises = {"code": "blocked"}
        return Drive(do="steer", child="a", at_ms=act.at_ms, args=args, raises=raises, clause="D10-blocked")
    return Drive(do="steer", child="a", at_ms=act.at_ms, args=args, returns={"promptTurn": act.turn}, clause="D8")


def _wait(start: int, deadline: int, prompt_turn: int, shown: Sequence[_Shown]) -> Drive:
    """A wait from `start` to `deadline`, and what its polls make of it by D8.

    Where the answer would hang on one more look exactly at the deadline, nothing is claimed of it.
    """
    polls = range(start, deadline, POLL_MS)
    settled_at = next((at for at in polls if _at(shown, at).settles(prompt_turn)), None)
    args = {"timeoutMs": deadline - start}
    if settled_at is not None:
        since = max(state.at_ms for state in shown if state.at_ms <= settled_at)
        state = _at(shown, settled_at)
        settled = {"settled": True, "lastTurn": state.turn, "lastStatus": state.status}
        at = {"min": max(since, start), "max": settled_at + POLL_MS}
        return Drive(do="wait", child="a", args=args, returns=settled, at=at)
    seen = [state for state in (_at(shown, polls[-1]), _at(shown, deadline)) if state.status != "none"]
    returns: dict[str, Any] = {"settled": False, "abnormal": False, "reason": "timeout"}
    if _at(shown, deadline).settles(prompt_turn):
        return Drive(do="wait", child="a", args=args)
    if len(seen) == 2:
        returns["lastStatus"] = _either([state.status for state in seen])
        returns["lastTurn"] = _either([state.turn for state in seen])
    at = {"min": deadline, "max": deadline + POLL_MS}
    return Drive(do="wait", child="a", args=args, returns=returns, at=at)


def _either(values: Sequence[str | int]) -> Any:
    return values[0] if values[0] == values[1] else {"one_of": list(values)}


def _at(shown: Sequence[_Shown], now: int) -> _Shown:
    return [state for state in shown if state.at_ms <= now][-1]


def _ending(run: Run, at_ms: int | None, end: int) -> Drive:
    """A wait that ends with the program: settled through `finished`, with the exit code or the signal."""
    returns: dict[str, Any] = {"settled": True}
    returns |= {"signal": run.signal} if run.signal else {"exitCode": run.exit_code}
    at = {"min": end, "max": end + POLL_MS}
    timeout_ms = MIN_WAIT_MS if at_ms is not None else end + MIN_WAIT_MS
    return Drive(do="wait", child="a", at_ms=at_ms, args={"timeoutMs": timeout_ms}, returns=returns, at=at)
