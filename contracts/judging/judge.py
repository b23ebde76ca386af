"""Trace and results in, verdict out: every statement of a scenario is compared with what one run left.

Pure: no I/O and no clock. A statement that refers to something that is not there never holds.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from contracts.judging.headless import lines, program, programs
from contracts.judging.match import MISSING, differences
from contracts.judging.traces import Who, calls, cost_ms, find_child, in_order, received, starts
from contracts.loading.rules import clauses_of
from contracts.records import UNEXPECTED, Finding, PiRecord, RunRecord, RunVerdict, StepRecord, Verdict
from contracts.running.placeholders import fill
from contracts.scenario import Expect, Scenario, Step

GIT_CLAUSE: Final = "I3"
"""The clause that still speaks when a run was cut short because the supervisor started a git."""
MAX_SHOWN_CALLS: Final = 20
"""Of a longer list of calls only so many are shown as evidence."""


def judge(scenario: Scenario, record: RunRecord) -> RunVerdict:
    """The verdict on one run. A run that broke, and one in which nothing was checked, is errored.

    Of a run in which virtual time refused a git, only the statements about git are judged; without any it is skipped.
    """
    if record.errored is not None:
        return _verdict(scenario, record, "errored", [], record.errored)
    findings = [*_drive(scenario, record), *_expectations(scenario, record)]
    if record.refused:
        findings = [finding for finding in findings if finding.clause == GIT_CLAUSE]
        if not findings:
            return _verdict(scenario, record, "skipped", [], why=_REFUSED.format(", ".join(record.refused)))
    if not findings:
        return _verdict(scenario, record, "errored", [], "nothing was checked in this run")
    holds = all(finding.ok for finding in findings)
    if scenario.level == "hazard":
        return _verdict(scenario, record, "hazard" if holds else "avoided", findings)
    return _verdict(scenario, record, "pass" if holds else "fail", findings)


_REFUSED: Final = "a process was started under virtual time ({}); runs over the socket judge this"


def _verdict(
    scenario: Scenario,
    record: RunRecord,
    verdict: Verdict,
    findings: list[Finding],
    errored: str | None = None,
    why: str = "",
) -> RunVerdict:
    return RunVerdict(
        scenario=scenario.id,
        host=record.host,
        verdict=verdict,
        level=scenario.level,
        clauses=clauses_of(scenario),
        findings=findings,
        errored=errored,
        cost_ms=cost_ms(record) if verdict == "hazard" else None,
        real_ms=record.real_ms,
        why=why or scenario.why,
    )


# ------------------------------------------------------------------ the drive


def _drive(scenario: Scenario, record: RunRecord) -> Iterator[Finding]:
    told = {step.index: step for step in record.steps}
    for index, step in enumerate(scenario.drive):
        clause = step.clause or scenario.clauses[0]
        yield from _step(step, told.get(index), f"drive[{index}]", clause, record.fills)


def _step(step: Step, told: StepRecord | None, where: str, clause: str, fills: dict[str, str]) -> Iterator[Finding]:
    if told is None or (told.returned is None and told.raised is None):
        yield Finding(clause=clause, ok=False, where=where, expected=f"{step.do} comes back", got=_never(told))
        return
    if told.raised is not None and told.raised.get("code") == UNEXPECTED:
        wanted = f"{step.do} succeeds" if step.raises is None else fill(step.raises, fills, step.child)
        yield Finding(clause=clause, ok=False, where=_place(step, where), expected=wanted, got=_error(told.raised))
    elif step.raises is not None:
        yield from _raises(fill(step.raises, fills, step.child), told, f"{where}.raises", clause)
    elif told.raised is not None:
        yield Finding(clause=clause, ok=False, where=where, expected=f"{step.do} succeeds", got=_error(told.raised))
    elif step.returns is not None:
        yield from _compare(fill(step.returns, fills, step.child), told.returned, f"{where}.returns", clause)
    for name, pattern, got in (("at", step.at, told.at_ms), ("took", step.took, told.took_ms)):
        if pattern is not None:
            yield from _compare(pattern, got, f"{where}.{name}", clause)


def _place(step: Step, where: str) -> str:
    return where if step.raises is None else f"{where}.raises"


def _never(told: StepRecord | None) -> str:
    if told is None or told.started_ms == 0:
        return "it was never reached, or never came back"
    return f"it began at {told.started_ms} ms and never came back"


def _raises(pattern: dict[str, Any], told: StepRecord, where: str, clause: str) -> Iterator[Finding]:
    if told.raised is None:
        yield Finding(clause=clause, ok=False, where=where, expected=pattern, got={"returned": told.returned})
    else:
        yield from _compare(pattern, told.raised, where, clause)


def _error(raised: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in raised.items() if value not in ("", None)}


def _compare(pattern: Any, got: Any, where: str, clause: str, say: str = "") -> Iterator[Finding]:
    """One finding for the whole when it matches, else one for each field that differs."""
    found = differences(pattern, got)
    if not found:
        yield Finding(clause=clause, ok=True, where=where, expected=pattern, got=got, say=say)
    for one in found:
        path = f"{where}{'' if one.field.startswith('[') or not one.field else '.'}{one.field}"
        yield Finding(clause=clause, ok=False, where=path, expected=one.expected, got=_shown(one.got), say=say)


def _shown(value: Any) -> Any:
    return None if value is MISSING else value


# ------------------------------------------------------------ the expectations


def _expectations(scenario: Scenario, record: RunRecord) -> Iterator[Finding]:
    for index, one in enumerate(scenario.expect):
        clause = one.clause or scenario.clauses[0]
        where = f"expect[{index}]"
        headless = one.pi or one.lines is not None or one.starts is not None
        who = find_child(scenario, record, one.child) if one.child and not headless else None
        if one.child and who is None and not headless:
            yield Finding(
                clause=clause, ok=False, where=f"{where}.child", expected=f"a child {one.child!r}",
                got="no such child was started", say=one.say,
            )  # fmt: skip
            continue
        for subject, check in _CHECKS.items():
            value = getattr(one, subject)
            if value is not None and value is not False:
                yield from check(one, record, who, f"{where}.{subject}", clause)


def _calls(one: Expect, record: RunRecord, who: Who | None, where: str, clause: str) -> Iterator[Finding]:
    wanted = fill(one.where, record.fills, one.child)
    found = [
        event
        for event in calls(record.trace, str(one.calls), who)
        if not differences(wanted, event.params if isinstance(event.params, dict) else {})
        and (one.after_ms is None or event.t >= one.after_ms)
        and (one.before_ms is None or event.t <= one.before_ms)
    ]
    pattern = _bounds(one)
    yield Finding(
        clause=clause,
        ok=not differences(pattern, len(found)),
        where=f"{where}({one.calls})",
        expected=_count(pattern),
        got=_count(len(found)) + _times([event.t for event in found]),
        say=one.say,
    )


def _bounds(one: Expect) -> int | dict[str, int]:
    """How many calls there must be; nothing said means at least one."""
    if one.count is not None:
        return one.count
    bounds = {"min": one.at_least, "max": one.at_most}
    return {key: bound for key, bound in bounds.items() if bound is not None} or {"min": 1}


def _count(pattern: int | dict[str, int]) -> str:
    if isinstance(pattern, int):
        return "no call" if pattern == 0 else f"{pattern} call{'s' * (pattern != 1)}"
    words = [f"at least {pattern['min']}"] if "min" in pattern else []
    words += [f"at most {pattern['max']}"] if "max" in pattern else []
    return f"{' and '.join(words)} calls"


def _times(at: list[int]) -> str:
    if not at:
        return ""
    more = f" and {len(at) - MAX_SHOWN_CALLS} more" if len(at) > MAX_SHOWN_CALLS else ""
    return f" at {', '.join(str(t) for t in at[:MAX_SHOWN_CALLS])} ms{more}"


def _order(one: Expect, record: RunRecord, who: Who | None, where: str, clause: str) -> Iterator[Finding]:
    ok, came = in_order(record.trace, one.order or [], who)
    yield Finding(clause=clause, ok=ok, where=where, expected=one.order, got=came[:MAX_SHOWN_CALLS], say=one.say)


def _run(one: Expect, record: RunRecord, who: Who | None, where: str, clause: str) -> Iterator[Finding]:
    found = starts(record.trace, who)
    if len(found) < one.nth:
        yield Finding(
            clause=clause, ok=False, where=where, expected=f"at least {one.nth} started terminals", got=len(found),
            say=one.say,
        )  # fmt: skip
        return
    pattern = fill(one.with_, record.fills, one.child)
    yield from _compare(pattern, found[one.nth - 1], f"{where}.with", clause, one.say)


def _received(one: Expect, record: RunRecord, who: Who | None, where: str, clause: str) -> Iterator[Finding]:
    pattern = fill(one.received, record.fills, one.child)
    yield from _compare(pattern, received(record.trace, "text", who), where, clause, one.say)


def _keys(one: Expect, record: RunRecord, who: Who | None, where: str, clause: str) -> Iterator[Finding]:
    yield from _compare(one.keys, received(record.trace, "key", who), where, clause, one.say)


def _terminals(one: Expect, record: RunRecord, who: Who | None, where: str, clause: str) -> Iterator[Finding]:
    pattern = fill(one.terminals, record.fills, one.child)
    yield from _compare(pattern, record.aftermath.terminals, where, clause, one.say)


def _left(one: Expect, record: RunRecord, who: Who | None, where: str, clause: str) -> Iterator[Finding]:
    yield from _nothing(record.aftermath.left, "nothing left", one, where, clause)


def _repo(one: Expect, record: RunRecord, who: Who | None, where: str, clause: str) -> Iterator[Finding]:
    yield from _nothing(record.aftermath.repo_changed, "unchanged", one, where, clause)


def _pi(one: Expect, record: RunRecord, who: Who | None, where: str, clause: str) -> Iterator[Finding]:
    yield from _of_program(one, record, one.with_, program, f"{where}.with", clause)


def _lines(one: Expect, record: RunRecord, who: Who | None, where: str, clause: str) -> Iterator[Finding]:
    yield from _of_program(one, record, one.lines, lines, where, clause)


def _of_program(
    one: Expect, record: RunRecord, wanted: Any, look: Callable[[PiRecord], Any], where: str, clause: str
) -> Iterator[Finding]:
    """A statement about the n-th started `pi`, as `look` shows it."""
    found = programs(record, one.child)
    if len(found) >= one.nth:
        pattern = fill(wanted, record.fills, one.child)
        yield from _compare(pattern, look(found[one.nth - 1]), where, clause, one.say)
        return
    expected = f"at least {one.nth} started pi"
    yield Finding(clause=clause, ok=False, where=where, expected=expected, got=len(found), say=one.say)


def _starts(one: Expect, record: RunRecord, who: Who | None, where: str, clause: str) -> Iterator[Finding]:
    yield from _compare(one.starts, len(programs(record, one.child)), where, clause, one.say)


def _nothing(found: list[str], expected: str, one: Expect, where: str, clause: str) -> Iterator[Finding]:
    yield Finding(clause=clause, ok=not found, where=where, expected=expected, got=found or expected, say=one.say)


def _git(one: Expect, record: RunRecord, who: Who | None, where: str, clause: str) -> Iterator[Finding]:
    yield from _compare(one.git, record.aftermath.git_calls, where, clause, one.say)


def _file(one: Expect, record: RunRecord, who: Who | None, where: str, clause: str) -> Iterator[Finding]:
    path = str(fill(one.file, record.fills, one.child))
    found = record.aftermath.files.get(path)
    if found is None:
        yield Finding(clause=clause, ok=False, where=where, expected=f"a file {path}", got="no such file", say=one.say)
        return
    if one.mode is not None:
        yield from _compare(one.mode, found[0], f"{where}({path}).mode", clause, one.say)
    if one.text is not None:
        yield from _compare(fill(one.text, record.fills, one.child), found[1], f"{where}({path}).text", clause, one.say)


def _methods(one: Expect, record: RunRecord, who: Who | None, where: str, clause: str) -> Iterator[Finding]:
    allowed = one.methods or []
    came = list(dict.fromkeys(event.method for event in calls(record.trace, "*")))
    others = [method for method in came if method not in allowed]
    ok = not others and bool(came or not allowed)
    yield Finding(clause=clause, ok=ok, where=where, expected=allowed, got=others or came or "no call", say=one.say)


_CHECKS: Final[dict[str, Callable[[Expect, RunRecord, Who | None, str, str], Iterator[Finding]]]] = {
    "calls": _calls,
    "order": _order,
    "run": _run,
    "received": _received,
    "keys": _keys,
    "terminals": _terminals,
    "left": _left,
    "repo": _repo,
    "git": _git,
    "file": _file,
    "methods": _methods,
    "pi": _pi,
    "lines": _lines,
    "starts": _starts,
}
