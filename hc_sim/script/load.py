"""A script file: agents and faults, read from TOML and checked; and the agent for those who bring no script."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from hc_sim.faults import FaultPlan
from hc_sim.faults.check import mistakes
from hc_sim.model import METHODS, REFUSED
from hc_sim.script.format import Agent, FileWrite, Step
from hc_sim.script.places import dotted
from hc_sim.script.toml import FileError, line_of, nearest, read_toml

TRIGGERS = ("at_ms", "after_ms", "on_call", "after_observations", "by_hand", "on_prompt")

MAX_STEPS = 10_000

_EFFECTS = (
    "turn", "turn_add", "status", "kind", "msg", "app", "finish", "file", "reborn", "rename", "labels", "composer",
    "send", "note",
)  # fmt: skip


class Script(FaultPlan, frozen=True):
    """A whole script file for `hc-sim serve --script`: `[[agent]]` tables, and all those of a fault plan."""

    agent: list[Agent] = msgspec.field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with an agent, and at which key (below the agent) it stands."""

    key: str
    message: str
    path: tuple[str | int, ...] = ()


def read_script(path: str | Path) -> Script:
    """Read and check a script file. Raises `FileError` with file, line, key and what to write instead."""
    script = read_toml(path, Script)
    for index, agent in enumerate(script.agent):
        for problem in check_agent(agent):
            text = Path(path).read_text(encoding="utf-8")
            line = line_of(text, ("agent", index, *problem.path))
            raise FileError(path, line, f"agent[{index}].{problem.key}", problem.message)
    for mistake in mistakes(script, frozenset({*METHODS, *REFUSED})):
        line = line_of(Path(path).read_text(encoding="utf-8"), mistake.path)
        raise FileError(path, line, dotted(mistake.path), mistake.message)
    return script


def check_agent(agent: Agent) -> Iterator[Problem]:
    """What the types alone cannot say: one trigger a step, an effect in each, known methods, no endless timeline."""
    if len(agent.step) > MAX_STEPS:
        yield Problem("step", f"more than {MAX_STEPS} steps", ("step",))
    for index, step in enumerate(agent.step):
        for message in _step_problems(step):
            yield Problem(f"step[{index}]", message, ("step", index))
    for name in ("uses", "hold_ms", "kill_ms", "turn"):
        value = getattr(agent, name)
        if value is not None and value < 0:
            yield Problem(name, "must not be negative", (name,))
    for name in ("repeat_from", "after_esc"):
        value = getattr(agent, name)
        if value is not None and not 0 <= value < len(agent.step):
            yield Problem(name, f"there is no step {value}; steps are counted from 0", (name,))
    start = agent.repeat_from
    if start is not None and 0 <= start < len(agent.step) and not any(map(_waits, agent.step[start:])):
        yield Problem("repeat_from", "nothing in the repeated steps waits: it would run for ever", ("repeat_from",))


def _step_problems(step: Step) -> Iterator[str]:
    set_ = [name for name in TRIGGERS if getattr(step, name) is not None]
    if len(set_) != 1:
        said = f"has {' and '.join(set_)}" if set_ else "has none"
        yield f"a step has exactly one trigger of {', '.join(TRIGGERS)}; this one {said}"
    if step.on_call is not None and not _callable(step.on_call):
        known = [name for name in METHODS if _callable(name)]
        yield f"on_call {step.on_call!r} is no call on a terminal; {nearest(step.on_call, known)}"
    if step.on_prompt is False:
        yield "on_prompt is true or absent"
    if step.nth < 1:
        yield "nth counts from 1"
    if step.nth != 1 and step.on_call is None:
        yield "nth belongs to on_call"
    for name in ("at_ms", "after_ms", "after_observations", "turn"):
        value = getattr(step, name)
        if value is not None and value < 0:
            yield f"{name} must not be negative"
    if not step.vanish and all(getattr(step, name) is None for name in _EFFECTS):
        yield "a step has at least one effect"
    if step.finish is not None and step.finish.code is not None and step.finish.signal is not None:
        yield "finish has a code or a signal, not both"
    if step.file is not None:
        yield from _file_problems(step.file)


def _file_problems(write: FileWrite) -> Iterator[str]:
    set_ = [name for name in ("append", "append_hex", "replace") if getattr(write, name) is not None]
    if len(set_) + write.remove != 1:
        yield "file has exactly one of append, append_hex, replace, remove"
    if write.append_hex is not None:
        try:
            bytes.fromhex(write.append_hex)
        except ValueError:
            yield "file.append_hex is not hexadecimal"


def _callable(method: str) -> bool:
    return method.startswith("terminal.") and method in METHODS


def _waits(step: Step) -> bool:
    """Whether this step makes a loop take time or wait for something outside."""
    return bool(step.after_ms or step.on_call or step.after_observations or step.by_hand or step.on_prompt)


POLITE = Agent(
    queued=True,
    repeat_from=1,
    after_esc=1,
    step=[
        Step(at_ms=300, status="idle", note="ready"),
        Step(on_prompt=True, turn_add=1, status="working", note="work begins"),
        Step(after_ms=1000, status="done", note="work ends"),
    ],
)
"""The agent for those who bring no script: idle after its boot, one turn of a second for its task and for each send.

What is sent while it works starts the next turn; Esc ends a turn in `idle` and gives waiting texts to the composer.
"""
