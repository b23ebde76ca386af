"""What a driver has and what it lacks: a series of small probes, each with a word on what to do."""

import tomllib
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from typing import Any, Final, Literal

import msgspec

from contracts.judging.judge import judge
from contracts.records import Finding
from contracts.running.one_run import run_scenario
from contracts.scenario import Scenario
from contracts.sut.introduction import BadDriverError, introduce
from contracts.sut.messages import FEATURES, MANDATORY, InitializeResult
from contracts.sut.scope import in_real_time
from contracts.sut.stdio import StdioFactory

State = Literal["has", "lacks", "undeclared", "broken"]
LIMIT_MS: Final = 6_000
"""Real time for one probe."""
FIRST: Final = "spawn"
"""The probe that all others with a child build upon."""


class Probe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing to try. `do`: what to do when it fails."""

    id: str
    about: str
    feature: str
    do: str
    scenario: Scenario


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one probe. `got`: what was seen instead, in words; `do`: what to do, "" when there is nothing."""

    id: str
    about: str
    feature: str
    mandatory: bool
    state: State
    got: str = ""
    do: str = ""

    @property
    def matters(self) -> bool:
        """Whether the driver cannot be checked, or would fail, because of it."""
        return self.state == "broken" or (self.mandatory and self.state != "has")


def load_probes() -> list[Probe]:
    """The probes of the product, in the order in which they are tried."""
    text = files("contracts.sut").joinpath("probes.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text)["probe"], list[Probe])


def examine(
    factory: StdioFactory, *, on_row: Callable[[Row], None] = lambda _: None
) -> tuple[InitializeResult | None, list[Row]]:
    """Try everything. `on_row` hears of each result as it comes in. Raises `NoDriverError` for no program at all."""
    rows: list[Row] = []

    def tell(row: Row) -> None:
        rows.append(row)
        on_row(row)

    declared, first = _introduced(factory)
    tell(first)
    for row in _rows(factory, declared.features if declared else None):
        tell(row)
    return declared, rows


def _introduced(factory: StdioFactory) -> tuple[InitializeResult | None, Row]:
    row = Row(id="initialize", about="introduces itself", feature="", mandatory=True, state="has")
    try:
        declared = introduce(factory)
    except BadDriverError as error:
        what = "answer initialize with protocolVersion 1, name, version, language and features"
        return None, msgspec.structs.replace(row, state="lacks", got=str(error), do=what)
    return declared, row


def _rows(factory: StdioFactory, features: Sequence[str] | None) -> Iterator[Row]:
    if features is None:
        return
    no_child = False
    for probe in load_probes():
        row = Row(
            id=probe.id, about=probe.about, feature=probe.feature, mandatory=probe.feature == MANDATORY, state="has"
        )
        if probe.feature not in features:
            what = f"{probe.do}; then declare {probe.feature}"
            yield msgspec.structs.replace(row, state="undeclared", do=what)
        elif no_child and any(step.as_ for step in probe.scenario.drive):
            yield msgspec.structs.replace(row, state="broken", got="not tried: no child can be started", do=probe.do)
        else:
            tried = _tried(factory, probe, row)
            no_child = no_child or (probe.id == FIRST and tried.state != "has")
            yield tried
    unknown = sorted(set(features) - set(FEATURES))
    if unknown:
        about = f"declares {', '.join(unknown)}"
        what = f"a word that this suite does not know is ignored; it knows {', '.join(FEATURES)}"
        yield Row(id="features", about=about, feature="", mandatory=False, state="lacks", do=what)


def _tried(factory: StdioFactory, probe: Probe, row: Row) -> Row:
    scenario = in_real_time(msgspec.structs.replace(probe.scenario, hosts=["socket"], limit_ms=LIMIT_MS))
    verdict = judge(scenario, run_scenario(scenario, "socket", factory))
    if verdict.verdict == "pass":
        return row
    got = verdict.errored or _words([finding for finding in verdict.findings if not finding.ok])
    return msgspec.structs.replace(row, state="broken", got=got, do=probe.do)


def _words(failed: Sequence[Finding]) -> str:
    first = failed[0]
    got: Any = first.got
    if isinstance(got, dict) and "message" in got:
        got = got["message"]
    return f"{first.where}: expected {first.expected!r}, got {got!r}"
