"""Session-file scenarios: they hold for our supervisor, and careless readers of session files turn D9 red."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from contracts import loading
from contracts.judging.judge import judge
from contracts.loading import load_all
from contracts.records import RunVerdict
from contracts.running.one_run import run_scenario
from contracts.scenario import HostName, Scenario
from legion_terminal import terminal
from legion_terminal.errors import SupervisorError
from legion_terminal.types import Child, Verdict

SCENARIOS = {s.id: s for s in load_all([loading.SCENARIOS / "session"]).scenarios}
RUNS = [(name, host) for name, scenario in SCENARIOS.items() for host in scenario.hosts]
RECORDINGS = Path(loading.__file__).parents[1] / "recordings"
VERDICT = re.compile(r"VERDICT:\s*(accept|reject|unknown)", re.IGNORECASE)


def verdict(scenario: Scenario, host: HostName = "memory") -> RunVerdict:
    return judge(scenario, run_scenario(scenario, host))


def red(result: RunVerdict) -> set[str]:
    return {finding.clause for finding in result.findings if not finding.ok}


@pytest.mark.parametrize(("name", "host"), RUNS)
def test_scenario_holds(name: str, host: HostName) -> None:
    result = verdict(SCENARIOS[name], host)
    assert result.verdict == "pass", [finding for finding in result.findings if not finding.ok] or result.errored


# careless readers: each is wrong in one way that the field has seen


def entries(path: str) -> Iterator[dict[str, Any]]:
    """What a reader gets that skips bad lines and follows nothing."""
    if not Path(path).is_file():
        return
    for line in Path(path).read_bytes().decode("utf-8-sig", "replace").splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and isinstance(entry.get("message"), dict):
            yield entry["message"]


def said(message: dict[str, Any]) -> str:
    return "".join(part.get("text", "") for part in message.get("content", []))


def decide(text: str, stop: str | None = None) -> Verdict:
    found = VERDICT.findall(text)
    return Verdict(outcome=found[-1].lower() if found else "unknown", text=text, stop_reason=stop)


def last_assistant(path: str) -> Verdict:
    answers = [message for message in entries(path) if message.get("role") == "assistant"]
    return decide(said(answers[-1]), answers[-1].get("stopReason")) if answers else decide("")


def last_text_of_anybody(path: str) -> Verdict:
    messages = list(entries(path))
    return decide(said(messages[-1]) if messages else "")


def last_verdict_anywhere(path: str) -> Verdict:
    return decide(Path(path).read_text(errors="replace") if Path(path).is_file() else "")


def whole_file_or_nothing(path: str) -> Verdict:
    for line in Path(path).read_text().splitlines():
        json.loads(line)
    return last_assistant(path)


def always_accept(path: str) -> Verdict:
    return Verdict(outcome="accept")


Reader = Callable[[str], Verdict]
CARELESS: list[tuple[Reader, list[str]]] = [
    (last_assistant, ["session-answer-late", "session-late-old-branch", "session-two-writers-late"]),
    (last_assistant, ["session-torn-after-prompt", "session-ended-length", "session-tool-last"]),
    (last_assistant, ["session-verdict-in-sentence", "session-edited-away"]),
    (last_text_of_anybody, ["session-prompt-unanswered"]),
    (last_verdict_anywhere, ["session-notices", "session-ended-error", "session-verdict-contradiction"]),
    (whole_file_or_nothing, ["session-torn-tail", "session-bad-lines", "session-glued-resume", "session-missing"]),
    (always_accept, ["session-empty", "session-header-only", "session-recorded-aborted", "session-directory"]),
]


def plant(patch: pytest.MonkeyPatch, reader: Reader) -> None:
    async def collect(self: terminal.TerminalSupervisor, child: Child) -> Verdict:
        try:
            return reader(child.session_file)
        except (OSError, ValueError) as error:
            raise SupervisorError("protocol", f"the session file is bad: {error}") from error

    patch.setattr(terminal.TerminalSupervisor, "collect", collect)


@pytest.mark.parametrize(
    ("reader", "name"),
    [(reader, name) for reader, names in CARELESS for name in names],
    ids=[f"{reader.__name__}-{name}" for reader, names in CARELESS for name in names],
)
def test_careless_reader_turns_d9_red(monkeypatch: pytest.MonkeyPatch, reader: Reader, name: str) -> None:
    plant(monkeypatch, reader)
    assert red(verdict(SCENARIOS[name])) == {"D9"}


def test_a_reader_that_looks_once_only_misses_the_second_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "COLLECT_MS", 0)
    assert red(verdict(SCENARIOS["session-answer-reread"])) == {"D9-reread"}
    assert red(verdict(SCENARIOS["session-answer-late"])) == set(), "an honest unknown is no failure"


def test_a_reader_that_waits_for_ever_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "COLLECT_MS", 600_000)
    assert red(verdict(SCENARIOS["session-answer-never"])) == {"D9"}


# what the scenarios cover


def test_every_p0_case_of_the_layer_has_a_scenario() -> None:
    sources = {scenario.source for scenario in SCENARIOS.values()}
    assert {f"BC-{case:03d}" for case in (84, 85, 86, 87, 89, 90, 92, 94, 96)} - sources == set()


@pytest.mark.parametrize("path", sorted(RECORDINGS.glob("session-*.jsonl")), ids=lambda path: path.stem)
def test_every_recorded_session_is_read_as_recorded(path: Path) -> None:
    (scenario,) = [scenario for scenario in SCENARIOS.values() if scenario.source == path.name]
    assert scenario.world.files == {"session-alpha.jsonl": path.read_text()}
