"""What a run found, without what looks like a secret: for every report, unless somebody asks for all of it."""

import dataclasses
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from contracts.judging.tally import ClauseRow, Failure
from contracts.records import Finding, RunRecord, RunVerdict
from contracts.report.content import Content
from hc_sim.redact import redact, redact_struct, redact_text, redact_value

T = TypeVar("T")


def without_secrets(content: Content) -> Content:
    """The same run of the gate with the values of its findings redacted. What was judged is not changed by it."""
    return dataclasses.replace(
        content,
        command=redact_text(content.command),
        sut={name: redact_text(value) if isinstance(value, str) else value for name, value in content.sut.items()},
        rows=[_row(row) for row in content.rows],
        verdicts=[verdict_without_secrets(verdict) for verdict in content.verdicts],
        records={key: record_without_secrets(record) for key, record in content.records.items()},
    )


def verdict_without_secrets(verdict: RunVerdict) -> RunVerdict:
    """The same verdict with the values of its findings redacted."""
    errored = None if verdict.errored is None else redact_text(verdict.errored)
    findings = [_finding(finding) for finding in verdict.findings]
    return msgspec.structs.replace(verdict, findings=findings, errored=errored)


def record_without_secrets(record: RunRecord) -> RunRecord:
    """The same record with its trace, what its programs saw, its results and the texts of its files redacted."""
    after = record.aftermath
    files = {path: (mode, redact_text(text)) for path, (mode, text) in after.files.items()}
    return msgspec.structs.replace(
        record,
        trace=[redact(event) for event in record.trace],
        steps=[redact_struct(step) for step in record.steps],
        pi=[redact_struct(one) for one in record.pi],
        aftermath=msgspec.structs.replace(after, files=files, left=[redact_text(line) for line in after.left]),
        errored=None if record.errored is None else redact_text(record.errored),
    )


def _row(row: ClauseRow) -> ClauseRow:
    failed, warnings, known = _failures(row.failed), _failures(row.warnings), _failures(row.known)
    return msgspec.structs.replace(row, failed=failed, warnings=warnings, known=known)


def _failures(failures: Sequence[Failure]) -> list[Failure]:
    return [msgspec.structs.replace(failure, finding=_finding(failure.finding)) for failure in failures]


def _finding(finding: Finding) -> Finding:
    name = finding.where.rpartition(".")[2]
    expected, got = _named(name, finding.expected), _named(name, finding.got)
    return msgspec.structs.replace(finding, expected=expected, got=got)


def _named(name: str, value: T) -> T:
    """A value that stands under a name: `env.X_TOKEN` tells what it is, as the member of an environment would."""
    shown: dict[str, T] = redact_value({"env": {name: value}})["env"]
    return shown[name]
