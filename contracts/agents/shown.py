"""A report of live checks of `pi`: as a JSON value, as text, and the exit code that it stands for. Pure."""

from collections.abc import Mapping
from typing import Any

from contracts.agents.found import NoPi
from contracts.agents.pi import PiReport
from contracts.clauses import Clause

SCHEMA = 1
HOLDS, FAILS, BROKE = 0, 1, 3


def level_of(clause: str, clauses: Mapping[str, Clause]) -> str:
    """The level of a clause; one that is in no file counts as a must."""
    return clauses[clause].level if clause in clauses else "must"


def verdicts(report: PiReport, clauses: Mapping[str, Clause]) -> dict[str, str]:
    """Every clause of headless children and every other that was looked at, to `pass`, `fail` or `unproven`."""
    wanted = [name for name in clauses if name.startswith("H") and clauses[name].level != "hazard"]
    found = report.clauses
    names = dict.fromkeys([*wanted, *found])
    return {name: {True: "pass", False: "fail", None: "unproven"}[found.get(name)] for name in names}


def exit_code(report: PiReport, clauses: Mapping[str, Clause], *, strict: bool = False) -> int:
    """0: it holds; 1: a must fails (a should too under `strict`); 3: some part could not be played."""
    failed = [name for name, holds in report.clauses.items() if not holds]
    if any(strict or level_of(name, clauses) == "must" for name in failed):
        return FAILS
    return BROKE if report.broken else HOLDS


def as_json(report: PiReport, clauses: Mapping[str, Clause]) -> dict[str, Any]:
    """The whole report; paths of this machine are not in it."""
    return {
        "schema": SCHEMA,
        "agent": "pi",
        "version": report.pi.version,
        "found": report.pi.how,
        "clauses": [
            {"id": name, "level": level_of(name, clauses), "verdict": verdict}
            for name, verdict in verdicts(report, clauses).items()
        ],
        "rows": [
            {"clause": row.clause, "part": row.part, "what": row.what, "ok": row.ok, "saw": row.saw}
            for row in report.rows
        ],
        "facts": [
            {"part": fact.part, "what": fact.what, "saw": fact.saw, "beside": fact.beside} for fact in report.facts
        ],
        "broken": [{"part": one.part, "why": one.why} for one in report.broken],
    }


def skipped_json(missing: NoPi) -> dict[str, Any]:
    """The report of a machine without the program."""
    return {"schema": SCHEMA, "agent": "pi", "skipped": missing.reason, "clauses": [], "rows": [], "facts": []}


def as_text(report: PiReport, clauses: Mapping[str, Clause]) -> str:
    """For a person: clause by clause, what failed and what broke, the facts beside, and at last what it comes to."""
    lines = [f"pi {report.pi.version} ({report.pi.how})", ""]
    told = verdicts(report, clauses)
    for name, verdict in told.items():
        title = clauses[name].title if name in clauses else ""
        lines.append(f"{verdict:9} {name:15} {title}".rstrip())
    for row in report.rows:
        if not row.ok:
            lines += ["", f"{row.clause} fails in {row.part}: {row.what}", f"  saw: {row.saw}"]
    for one in report.broken:
        lines += ["", f"{one.part} could not be played: {one.why}"]
    lines += ["", "facts, beside the document:"]
    lines += [f"  {fact.what}: {fact.saw}  [{fact.beside}]" for fact in report.facts]
    lines += ["", _summary(report, list(told.values()), exit_code(report, clauses))]
    return "\n".join(lines) + "\n"


def _summary(report: PiReport, words: list[str], code: int) -> str:
    counted = [f"{words.count('pass')} clauses hold with the real program"]
    if failed := words.count("fail"):
        counted.append(f"{failed} fail")
    if unseen := words.count("unproven"):
        counted.append(f"{unseen} need a child that misbehaves on purpose (legion-contracts check)")
    head = {HOLDS: "holds", FAILS: "fails"}.get(code, "broke")
    return f"{head}: {', '.join(counted)}; {len(report.rows)} statements, {len(report.facts)} facts"
