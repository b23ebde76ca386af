"""What a campaign has found, for a person and for a program."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from contracts.fuzz.faulty import KNOBS
from contracts.fuzz.features import faults_in, pairs_in
from contracts.fuzz.saved import State
from contracts.fuzz.sometimes import SOMETIMES

SCHEMA = 1
Kept = Sequence[tuple[str, Path]]
"""The invariant that a kept failure broke, and its scenario file."""


def never_seen(state: State) -> list[str]:
    """The states that the campaign should have reached and did not."""
    return [name for name in SOMETIMES if not state.seen.get(name)]


def clauses_seen(state: State) -> set[str]:
    """The clauses that some state which was reached puts to the test."""
    return {SOMETIMES[name].clause for name in state.seen if name in SOMETIMES}


def all_clauses() -> set[str]:
    """The clauses that a campaign puts to the test."""
    return {state.clause for state in SOMETIMES.values()}


def as_json(state: State, kept: Kept = (), *, deaths: int = 0) -> str:
    """Everything as one JSON object."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "seed": state.setting.seed,
        "mode": state.setting.mode,
        "runs": state.runs,
        "calls": state.calls,
        "decisions": state.decisions,
        "seconds": round(state.seconds, 3),
        "virtual_ms": state.virtual_ms,
        "failed": state.failed,
        "failures": [
            {
                "invariant": one.invariant,
                "clause": one.clause,
                "words": one.words,
                "step": one.step,
                "seed": one.seed,
                "run": one.number,
            }
            for one in state.failures
        ],
        "disagreements": state.disagreements,
        "kept": [str(path) for _, path in kept],
        "coverage": coverage(state),
        "sometimes": {name: state.seen.get(name, 0) for name in SOMETIMES},
        "never": never_seen(state),
        "workers_lost": deaths,
    }
    return json.dumps(document, ensure_ascii=False)


def coverage(state: State) -> Mapping[str, Any]:
    """Clauses, faults and state pairs: reached, and where it is known how many there are, of how many."""
    return {
        "clauses": [len(clauses_seen(state)), len(all_clauses())],
        "faults": [len(faults_in(state.features)), len(set(KNOBS))],
        "pairs": len(pairs_in(state.features)),
        "features": len(state.features),
    }


def lines(state: State, kept: Kept = (), *, deaths: int = 0) -> Iterator[str]:
    """What a person reads at the end."""
    covered = coverage(state)
    rate = state.runs / state.seconds if state.seconds else 0.0
    yield f"{state.runs:,} runs of the whole supervisor ({state.setting.mode}), {state.calls:,} calls"
    hours = state.virtual_ms / 3_600_000
    wrong = len(state.disagreements)
    yield f"  took           {state.seconds:.1f} s, {rate:,.0f} runs a second; {hours:,.1f} h of virtual time"
    yield f"  decisions      {state.decisions:,} timelines through the settle decision, {wrong} disagreements"
    yield f"  clauses        {covered['clauses'][0]} of {covered['clauses'][1]}"
    yield f"  faults         {covered['faults'][0]} of {covered['faults'][1]} kinds"
    yield f"  state pairs    {covered['pairs']:,}"
    yield f"  seen sometimes {len(SOMETIMES) - len(never_seen(state))} of {len(SOMETIMES)}"
    if deaths:
        yield f"  workers lost   {deaths}; their runs were made again"
    yield f"  failures       {state.failed:,}"
    for name in never_seen(state):
        yield f"never seen: {name} ({SOMETIMES[name].clause})"
    yield from state.disagreements[:3]
    yield from _failures(state, kept)


def _failures(state: State, kept: Kept) -> Iterator[str]:
    told: set[str] = set()
    files = dict(kept)
    planted = f" --plant {state.setting.plant}" if state.setting.plant else ""
    for one in state.failures:
        if one.invariant in told:
            continue
        told.add(one.invariant)
        again = "kept file only: it followed another run"
        if one.seed is not None:
            again = f"legion-contracts fuzz --seed {one.seed} --examples 1{planted}"
        yield f"broke: {one.invariant} ({one.clause or 'harness'}), run {one.number}: {one.words}"
        yield f"  again:    {again}"
        if one.invariant in files:
            yield f"  run it:   legion-contracts check --scenario {files[one.invariant]}"
            yield f"  draw it:  legion-contracts show {files[one.invariant]}"
