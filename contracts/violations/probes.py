"""Built-in probes: what the suite's own judging and counting must say of runs that are written down here.

A probe is for what no supervisor can show: a gate without evidence, a check that was skipped, a run that broke. Each
holds on the suite as it is; a planted violation of the suite that names one is caught when it holds no longer.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from contracts.checks.base import SkippedError, check, run_check
from contracts.clauses import Clause, Clauses
from contracts.hosts.environment import hermetic_process
from contracts.judging.judge import judge
from contracts.judging.match import equal
from contracts.judging.tally import Outcome, clause_table, outcome
from contracts.loading import ScenarioError, load_scenario
from contracts.records import Finding, RunRecord, RunVerdict
from contracts.report.redacted import verdict_without_secrets
from contracts.running.processes import end, left_over
from contracts.scenario import Expect, Scenario, Step

_CLAUSES: Final[Clauses] = {
    name: Clause(id=name, title=name, statement="A probe.", source="probe", proof=["probe"]) for name in ("D1", "D2")
}
_SECRET: Final = "sk-ant-" + "api03-abcdefghijklmnop"


def _gate(verdicts: list[RunVerdict], **options: bool) -> tuple[list[str], Outcome]:
    """Verdict on each of two clauses, and what the gate says of both."""
    rows = clause_table(_CLAUSES, verdicts)
    return [row.verdict for row in rows], outcome(rows, verdicts, **options)


def _held(clause: str, *, ok: bool = True, **more: Any) -> RunVerdict:
    finding = Finding(clause=clause, ok=ok, where="probe")
    fields = {"host": "memory", "verdict": "pass" if ok else "fail", "clauses": [clause], "findings": [finding]}
    return RunVerdict(scenario=f"probe-{clause}", **(fields | more))


def _without_evidence() -> bool:
    return _gate([_held("D1")]) == (["pass", "unproven"], "fails")


def _skipped_under_require() -> bool:
    @check("probe-skipped", "D2", "what it needs is not there")
    def absent(_: object) -> list[Finding]:
        raise SkippedError("a probe")

    verdicts = [_held("D1"), _held("D2"), run_check(absent)]
    return (_gate(verdicts)[1], _gate(verdicts, require=True)[1]) == ("holds", "fails")


def _nothing_checked() -> bool:
    @check("probe-empty", "D2", "nothing to look at")
    def empty(_: object) -> list[Finding]:
        return []

    return _gate([_held("D1"), run_check(empty)]) == (["pass", "errored"], "errored")


def _broken_run() -> bool:
    verdict = judge(_scenario(Expect(git=0)), RunRecord(scenario="probe", host="memory", errored="it fell over"))
    return (verdict.verdict, _gate([verdict, _held("D2")])) == ("errored", (["errored", "pass"], "errored"))


def _step_without_end() -> bool:
    verdict = judge(_scenario(drive=[Step(do="status")]), RunRecord(scenario="probe", host="memory"))
    return [finding.ok for finding in verdict.findings] == [False]


def _child_without_start() -> bool:
    verdict = judge(_scenario(Expect(child="a", calls="*", count=0)), RunRecord(scenario="probe", host="memory"))
    return [finding.ok for finding in verdict.findings] == [False]


def _failure_beside_a_broken_run() -> bool:
    broken = RunVerdict(scenario="probe", host="memory", verdict="errored", clauses=["D1"], errored="it fell over")
    return _gate([_held("D1", ok=False), broken, _held("D2")]) == (["fail", "pass"], "fails")


def _types() -> bool:
    wrong: list[tuple[Any, Any]] = [
        (True, 1),
        (0, False),
        ("1", 1),
        ([1], 1),
        ({"min": 1}, "2"),
        ({"a": 1}, {}),
        (1, None),
        ([1], [1, 2]),
    ]
    return not any(equal(pattern, got) for pattern, got in wrong)


def _bounds() -> bool:
    right: list[tuple[Any, Any]] = [
        ({"min": 2}, 2),
        ({"max": 2}, 2),
        ({"min": 1, "max": 3}, 2),
        ({"len": {"max": 1}}, ""),
    ]
    wrong: list[tuple[Any, Any]] = [
        ({"min": 2}, 1),
        ({"max": 2}, 3),
        ({"min": 1, "max": 3}, 4),
        ({"len": {"max": 1}}, "ab"),
    ]
    return all(equal(*one) for one in right) and not any(equal(*one) for one in wrong)


def _markers() -> bool:
    """What a surrounding session sets is not there within a run, and is there again afterwards."""
    around = dict.fromkeys(("HC_TERMINAL_SOCKET", "HC_TERMINAL_ID", "HC_BIN", "PI_SUBAGENT_DEPTH"), "probe")
    before = dict(os.environ)
    os.environ.update(around)
    try:
        with hermetic_process(Path("/nowhere")):
            inside = [name for name in around if name in os.environ]
        return not inside and all(os.environ.get(name) == "probe" for name in around)
    finally:
        for name in around:
            os.environ.pop(name, None)
        os.environ.update(before)


def _misspelt_key() -> bool:
    text = (
        'id = "probe"\nwhy = "A probe."\nclauses = ["D8"]\n[[drive]]\ndo = "shutdown"\n[[expect]]\ngit = 0\n{} = "x"\n'
    )
    said = []
    with tempfile.TemporaryDirectory(prefix="hc-") as folder:
        path = Path(folder) / "probe.toml"
        for key in ("say", "sya"):
            path.write_text(text.format(key))
            try:
                said.append(len(load_scenario(path).expect))
            except ScenarioError:
                said.append(-1)
    return said == [1, -1]


def _secret() -> bool:
    finding = Finding(clause="D5", ok=False, where="run.with.env.API_TOKEN", expected="x", got=f"key {_SECRET}")
    shown = verdict_without_secrets(RunVerdict(scenario="probe", host="memory", verdict="fail", findings=[finding]))
    return _SECRET not in str(shown)


def _process_left() -> bool:
    """A child, and one that has lost its parent but names the run's folder."""
    mark = f"probe-{os.getpid()}"
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()", mark], stdin=subprocess.PIPE)
    try:
        return {child.pid} <= {one.pid for one in left_over(os.getpid())} & {
            one.pid for one in left_over(0, mark) if mark in one.command
        }
    finally:
        for one in left_over(os.getpid(), mark):
            if one.pid == child.pid:
                end(one)
        with contextlib.suppress(OSError):
            child.kill()
        child.communicate()


def _scenario(*expect: Expect, drive: list[Step] | None = None) -> Scenario:
    return Scenario(id="probe", why="A probe.", clauses=["D1"], drive=drive or [], expect=list(expect))


PROBES: Final[Mapping[str, Callable[[], bool]]] = {
    "without-evidence-is-unproven": _without_evidence,
    "skipped-fails-under-require": _skipped_under_require,
    "nothing-checked-is-errored": _nothing_checked,
    "broken-run-is-errored": _broken_run,
    "step-without-end-fails": _step_without_end,
    "child-without-start-fails": _child_without_start,
    "failure-outweighs-a-broken-run": _failure_beside_a_broken_run,
    "types-are-told-apart": _types,
    "bounds-are-bounds": _bounds,
    "markers-stay-outside": _markers,
    "misspelt-key-is-refused": _misspelt_key,
    "secret-is-hidden": _secret,
    "process-left-is-seen": _process_left,
}
"""Every probe by its id; true means that it holds."""


def failing_probes() -> list[str]:
    """The ids of the probes that do not hold; one that breaks does not hold either."""
    return [name for name, holds in PROBES.items() if not _tried(holds)]


def _tried(holds: Callable[[], bool]) -> bool:
    try:
        return holds()
    except Exception:  # a broken suite may raise anything
        return False
