"""One look at a copy of the packages, in a process of its own: `python -m contracts.violations.look PLAN RESULT`.

Both are files of JSON. What is looked at is the copy that the plan names and nothing else: a module of the three
packages that comes from anywhere else ends the look before it has begun, and again at its end.
"""

import random
import sys
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from types import ModuleType

import msgspec

from contracts.checks import CHECKS
from contracts.clauses import load_clauses
from contracts.judging.judge import judge
from contracts.judging.tally import clause_table
from contracts.loading import Loaded, load_all
from contracts.loading.selection import Selection
from contracts.records import RunRecord, RunVerdict
from contracts.running.runner import run_all
from contracts.scenario import Scenario
from contracts.violations.entries import PACKAGES
from contracts.violations.plans import Looked, Plan, checks_of, scenarios_of
from contracts.violations.probes import failing_probes

MIN_POLL_MS = 1


class StrangeModuleError(Exception):
    """Something else than the copy would be judged; the message names the module and its place."""


def carry_out(plan: Plan) -> Looked:
    """Do what the plan says, in this process. Raises `StrangeModuleError` when this process is not the copy's."""
    _all_from(Path(plan.root), sys.modules)
    begun = time.monotonic()
    looked = _look(plan)
    _all_from(Path(plan.root), sys.modules)
    return msgspec.structs.replace(looked, real_ms=round((time.monotonic() - begun) * 1_000))


def _look(plan: Plan) -> Looked:
    if plan.part == "probes":
        return Looked(probes=failing_probes())
    if plan.part == "live":
        from contracts.live.proof import look

        return Looked(differences=list(look(Path(plan.core_root))), runs=1)
    return _whole(plan) if plan.part == "whole" else _gate(plan)


def _gate(plan: Plan) -> Looked:
    """Every must scenario and check of the plan, one after the other; and those of a should clause that it is about."""
    clauses = load_clauses()
    weak = frozenset(name for name in plan.socket_of if name in clauses and clauses[name].level == "should")
    found = scenarios_of(plan, list(load_all().scenarios), weak)
    chosen = [msgspec.structs.replace(one, hosts=hosts) for one, hosts in found]
    return _judged(chosen, run_all(chosen, workers=0, checks=checks_of(plan)), weak)


def _whole(plan: Plan) -> Looked:
    """Everything there is, side by side, in an order and with polls of its own; and the probes."""
    scenarios = [_repolled(one, plan.poll) for one in load_all().scenarios]
    random.Random(plan.seed).shuffle(scenarios)  # noqa: S311 - an order, and no secret
    if plan.sut:
        return _driven(plan, scenarios)
    results = run_all(scenarios, workers=plan.workers, checks=list(CHECKS))
    return msgspec.structs.replace(_judged(scenarios, results), probes=failing_probes())


def _driven(plan: Plan, scenarios: Sequence[Scenario]) -> Looked:
    """The same on a supervisor in a process of its own. Raises what the making of its gate raises."""
    from contracts.running.foreign import foreign_gate
    from contracts.sut.command import read_command
    from contracts.sut.introduction import introduce
    from contracts.sut.stdio import StdioFactory

    factory = StdioFactory(read_command(plan.sut, cwd=Path(plan.sut_cwd)))
    entries = tuple(Loaded(one, Path(f"{one.id}.toml")) for one in scenarios)
    engine, selection = foreign_gate(
        factory, introduce(factory), Selection(entries=entries, clauses=load_clauses(), checks=False)
    )
    played = selection.scenarios
    results = engine.run_all(played, workers=plan.workers, on_result=None, hosts=selection.hosts, checks=())
    return _judged(played, results)


def _repolled(one: Scenario, factor: float) -> Scenario:
    return msgspec.structs.replace(one, poll_ms=max(MIN_POLL_MS, round(one.poll_ms * factor)))


def _judged(
    scenarios: Sequence[Scenario], results: Sequence[RunRecord | RunVerdict], weak: Collection[str] = ()
) -> Looked:
    """What the copy's own judge and tally say: of must clauses, and of those should clauses that are looked at."""
    by_id = {one.id: one for one in scenarios}
    verdicts = [one if isinstance(one, RunVerdict) else judge(by_id[one.scenario], one) for one in results]
    failed = [row for row in clause_table(load_clauses(), verdicts) if row.verdict == "fail"]
    rows = [row for row in failed if row.level == "must" or row.id in weak]
    return Looked(
        red={row.id: list(dict.fromkeys(failure.scenario for failure in row.failed)) for row in rows},
        errored=[f"{one.scenario} ({one.host}): {one.errored}" for one in verdicts if one.verdict == "errored"],
        runs=len(verdicts),
    )


def _all_from(root: Path, modules: "dict[str, ModuleType]") -> None:
    """Raise unless every module of the three packages comes from below `root`."""
    for name, module in list(modules.items()):
        place = getattr(module, "__file__", None)
        if name.partition(".")[0] in PACKAGES and place and not Path(place).resolve().is_relative_to(root.resolve()):
            raise StrangeModuleError(f"{name} comes from {place}, not from the copy at {root}")


def main(arguments: Sequence[str]) -> int:
    """Read the plan, look, write the result; what goes wrong is a result too."""
    plan = msgspec.json.decode(Path(arguments[0]).read_bytes(), type=Plan)
    try:
        looked = carry_out(plan)
    except Exception as error:
        looked = Looked(why=f"{type(error).__name__}: {error}")
    Path(arguments[1]).write_bytes(msgspec.json.encode(looked))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
