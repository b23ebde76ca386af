"""The page of `check --html`: self-contained, escaped, the same for the same run, and usable by everybody."""

import dataclasses
import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from syrupy.assertion import SnapshotAssertion

from contracts.clauses import Clause, Clauses
from contracts.cli import main
from contracts.judging.baseline import Entry
from contracts.judging.tally import clause_table, outcome, totals
from contracts.records import Finding, RunRecord, RunVerdict, StepRecord
from contracts.report.content import Content, Known
from contracts.report.html import as_html
from contracts.report.html.page import policy
from contracts.report.html.views import MAX_DIFFERS, entries
from contracts.scenario import Level, Scenario, Step
from hc_sim.trace import Event

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'`&\u202e{{ 7 * 7 }}"
VOID = {"meta", "link", "br", "img", "input", "use", "path", "rect"}


def clause(name: str, level: Level) -> Clause:
    return Clause(id=name, title=f"Title of {name}", statement="x", source="x", proof=["x"], level=level)


CLAUSES: Clauses = {
    one.id: one for one in (clause("D8", "must"), clause("D9", "must"), clause("W1", "should"), clause("H1", "hazard"))
}
SCENARIO = Scenario(id="one", why="x", clauses=["D8"], drive=[Step(do="spawn", as_="a"), Step(do="wait", child="a")])
RECORD = RunRecord(
    scenario="one",
    host="memory",
    steps=[
        StepRecord(index=0, do="spawn", name="a", at_ms=0, took_ms=0, returned={"mode": "terminal"}),
        StepRecord(index=1, do="wait", child="a", at_ms=500, took_ms=500, returned={"settled": True}),
    ],
    trace=[
        Event(t=0, kind="run", terminal="t1", name="lgl-a", argv=["pi"]),
        Event(t=500, kind="call", method="terminal.get", params={"terminal": "lgl-a"}),
        Event(t=500, kind="state", terminal="t1", turn=1, status="idle"),
    ],
    children={"a": "lgl-a"},
    virtual_ms=500,
)


def verdict(name: str, word: str, *findings: Finding, **more: Any) -> RunVerdict:
    told = {"host": "memory", "why": f"Why {name}.", "clauses": [one.clause for one in findings], **more}
    return RunVerdict(scenario=name, verdict=word, findings=list(findings), **told)  # type: ignore[arg-type]


def finding(name: str, ok: bool, **more: Any) -> Finding:
    return Finding(clause=name, ok=ok, where=more.pop("where", "drive[1].returns.settled"), **more)


RUNS = [
    verdict("five", "pass", finding("W1", True, expected="a")),
    verdict("one", "fail", finding("D8", False, expected=False, got=True, say="it settles"), real_ms=1_500),
    verdict("two", "fail", finding("W1", False, expected="a", got="b\x00c"), host="socket", level="should"),
    verdict("three", "errored", clauses=["D9"], errored="the core & its <host> fell"),
    verdict("four", "hazard", finding("H1", True), level="hazard", cost_ms=14_500),
    verdict("six", "skipped", host="check", clauses=["D9"], why="mypy is not there"),
    verdict("seven", "known", finding("D8", False, expected=1, got=2, known=True)),
]


def content(*runs: RunVerdict, **more: Any) -> Content:
    rows = clause_table(CLAUSES, runs)
    told: dict[str, Any] = {
        "files": {"one": Path("scenarios/settle/one.toml"), "two": Path("scenarios/wire/two.toml")},
        "sut": {"name": "python", "package": "legion_terminal", "version": "1.2"},
        "host": {"core": "hc_sim", "hosts": ["memory"], "python": "3.13", "system": "Linux"},
        "records": {("one", "memory"): RECORD},
        "scenarios": {"one": SCENARIO},
        "seconds": 2.0,
        "began": "2026-01-02T03:04:05+00:00",
        "command": "legion-contracts check",
        **more,
    }
    return Content(rows=rows, verdicts=runs, totals=totals(rows, runs), outcome=outcome(rows, runs), **told)


def page(*runs: RunVerdict, **more: Any) -> str:
    return as_html(content(*(runs or RUNS), **more), lambda *_: 7)


class Reader(HTMLParser):
    """Reads a page strictly: every element is closed where it has to be."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"{tag} repeats an attribute"
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def all(self, tag: str) -> Iterator[dict[str, str | None]]:
        return (attributes for name, attributes in self.found if name == tag)

    def text(self) -> str:
        return " ".join(text for tag, text in self.texts if tag not in ("style", "script"))


# ------------------------------------------------------------------ the content


def body(text: str) -> str:
    """The page without its style, its script and its shapes, which a person does not read."""
    text = re.sub(r"<(style|script)>.*?</\1>", r"<\1>...</\1>", text, flags=re.DOTALL)
    text = re.sub(r"sha256-[\w+/=]+", "sha256-...", text)
    return re.sub(r'<svg class="shapes".*?</svg>', "<svg>...</svg>", text, flags=re.DOTALL)


def test_a_small_page_as_it_is_written(snapshot: SnapshotAssertion) -> None:
    assert body(page(*RUNS[:2])) == snapshot


def test_the_head_says_what_ran_when_on_what_and_with_which_end() -> None:
    text = Reader(page()).text()

    for said in (
        "The contract does not hold", "legion-contracts check", "2026-01-02T03:04:05+00:00", "2.0 s",
        "python, legion_terminal 1.2", "hc_sim (memory)", "Python 3.13, Linux",
    ):  # fmt: skip
        assert said in text


def test_every_clause_has_a_row_with_level_verdict_and_evidence() -> None:
    text = Reader(page()).text()

    for name in CLAUSES:
        assert f"Title of {name}" in text
    assert "1 scenario, up to 14.5 s lost" in text


def test_what_fails_comes_first_and_the_rest_keeps_its_order() -> None:
    shown = entries(content(*RUNS), lambda *_: 1)

    assert [(one.name, one.word.word) for one in shown] == [
        ("one", "FAIL"), ("three", "errored"), ("two", "warn"), ("seven", "known"), ("four", "hazard"),
        ("five", "pass"), ("six", "skipped"),
    ]  # fmt: skip


def test_a_failed_statement_is_told_field_by_field_with_its_file_and_line() -> None:
    text = Reader(page()).text()

    for said in ("scenarios/settle/one.toml:7", "drive[1].returns.settled", "it settles", "Why one.", "false", "true"):
        assert said in text
    assert "legion-contracts check --scenario one --host memory" in text


def test_only_a_run_with_a_record_is_drawn() -> None:
    drawings = [one for one in Reader(page()).all("svg") if one.get("class") == "lanes"]

    assert [one["aria-label"] for one in drawings] == [
        "one on memory, time going down: 1 child, 2 moments in 0.5 s"
    ]  # fmt: skip


def test_the_drawing_says_what_was_expected_and_what_came() -> None:
    assert "✗ settled = true, not false" in Reader(page()).text()


def test_of_too_many_statements_the_rest_is_counted() -> None:
    many = [finding("D8", False, expected=n, where=f"expect[{n}]") for n in range(MAX_DIFFERS + 7)]

    assert "and 7 more that differ" in Reader(page(verdict("one", "fail", *many))).text()


def test_a_baseline_and_what_has_to_be_taken_out_of_it_are_shown() -> None:
    stale = [(12, Entry(scenario="five", host="memory", clause="W1"))]
    known = Known(path=Path("known.toml"), failures=1, stale=stale, unseen=3)
    text = Reader(page(baseline=known)).text()

    assert "known.toml: 1 known, 3 not looked at" in text
    assert "known.toml:12: W1 holds in five (memory) now; take this entry out of the baseline" in text


def test_a_clause_without_evidence_is_among_what_fails_when_it_does() -> None:
    said = "✗ unproven D9 Title of D9: no scenario or check gave evidence"

    assert said in re.sub(r"\s+", " ", Reader(page(RUNS[0])).text())
    assert said not in re.sub(r"\s+", " ", Reader(page(RUNS[0], complete=False)).text())


def test_a_run_without_any_failure_has_no_list_of_them() -> None:
    assert "What fails" not in page(RUNS[0], complete=False)


# ------------------------------------------------------------------- the safety


def hostile() -> str:
    bad = verdict(HOSTILE, "fail", finding("D8", False, expected=HOSTILE, got=HOSTILE, say=HOSTILE), why=HOSTILE)
    broken = verdict("x", "errored", clauses=["D9"], errored=HOSTILE, why=HOSTILE)
    record = RunRecord(
        scenario=HOSTILE, host="memory", children={HOSTILE: HOSTILE},
        trace=[
            Event(t=0, kind="run", terminal="t", name=HOSTILE),
            Event(t=1, kind="text", terminal="t", text=HOSTILE),
            Event(t=2, kind="call", method=HOSTILE),
        ],
    )  # fmt: skip
    scenario = Scenario(id=HOSTILE, why=HOSTILE, clauses=["D8"], drive=[Step(do="spawn", as_=HOSTILE)])
    return page(
        bad, broken,
        records={(HOSTILE, "memory"): record}, scenarios={HOSTILE: scenario}, command=HOSTILE, sut={"name": HOSTILE},
        files={HOSTILE: Path(HOSTILE.replace("/", "_"))},
    )  # fmt: skip


def test_whatever_a_run_says_is_text_and_nothing_else() -> None:
    reader = Reader(hostile())

    assert len(list(reader.all("script"))) == 1
    assert not list(reader.all("img"))
    assert not [name for _, attributes in reader.found for name in attributes if name.startswith("on")]
    assert "<img src=x onerror=alert(2)>" in reader.text()
    assert "{{ 7 * 7 }}" in reader.text()


def test_nothing_turns_the_text_around_or_ends_it() -> None:
    assert not set(hostile()) & set("\x00\u202e\u2066")
    assert "\ufffd" in hostile()


def test_the_page_refers_to_nothing_outside_itself() -> None:
    reader = Reader(page())
    places = [value for _, told in reader.found for name, value in told.items() if name in ("href", "src", "action")]

    assert places
    assert all(place == "data:," or (place or "").startswith("#") for place in places)
    assert not re.search(r"@import|url\((?!#)", page())


def test_its_policy_allows_its_own_style_and_script_and_nothing_else() -> None:
    text = page()
    [style] = re.findall(r"<style>(.*?)</style>", text, flags=re.DOTALL)
    [script] = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    [told] = [one["content"] for one in Reader(text).all("meta") if one.get("http-equiv") == "Content-Security-Policy"]

    assert told == policy(style, script)
    assert told.startswith("default-src 'none'; ")
    assert "unsafe" not in told
    assert not [1 for _, attributes in Reader(text).found if "style" in attributes]


LEAKY = """
id = "leaky"
why = "A scenario whose findings and trace are full of secrets."
clauses = ["D5"]

[[drive]]
do = "spawn"
as = "a"
args = { task = "--token sesame", env = { MY_TOKEN = "sesame" } }

[[drive]]
do = "steer"
child = "a"
args = { text = "--token sesame" }

[[expect]]
run = true
with = { env = { MY_TOKEN = "another sesame" } }
"""


def test_the_page_shows_no_secret_unless_asked_to(tmp_path: Path) -> None:
    path = tmp_path / "leaky.toml"
    path.write_text(LEAKY, encoding="utf-8")
    args = ["check", "--scenario", str(path), "--workers", "0", "--html", str(tmp_path / "page")]
    CliRunner().invoke(main, args)
    hidden = (tmp_path / "page" / "index.html").read_text(encoding="utf-8")
    CliRunner().invoke(main, [*args, "--show-secrets"])

    assert "env.MY_TOKEN" in hidden
    assert "sesame" not in hidden
    assert "sesame" in (tmp_path / "page" / "index.html").read_text(encoding="utf-8")


# --------------------------------------------------------------- for everybody


def test_the_same_run_gives_the_same_page() -> None:
    assert page() == page()


def test_ids_are_unique_and_every_link_and_label_leads_to_one() -> None:
    reader = Reader(page())
    ids = [told["id"] for _, told in reader.found if "id" in told]
    links = {(told["href"] or "")[1:] for told in reader.all("a")} | {
        (told["href"] or "")[1:] for told in reader.all("use")
    }
    labels = {told["aria-labelledby"] for _, told in reader.found if "aria-labelledby" in told}

    assert len(ids) == len(set(ids))
    assert links | labels <= set(ids)


def test_it_has_a_language_a_title_one_heading_and_landmarks() -> None:
    reader = Reader(page())

    assert next(reader.all("html"))["lang"] == "en"
    assert [tag for tag, _ in reader.found if tag in ("h1", "main", "header")] == ["header", "h1", "main"]
    assert ("title", "✗ fails · legion-contracts") in reader.texts


def test_filters_are_buttons_that_say_whether_they_are_pressed() -> None:
    buttons = [told for told in Reader(page()).all("button") if "data-group" in told]

    assert {told["data-group"] for told in buttons} == {"verdict", "level", "host", "layer"}
    assert {told["aria-pressed"] for told in buttons} == {"false"}
    assert {told["type"] for told in Reader(page()).all("button")} == {"button"}


def test_no_verdict_is_told_by_colour_alone() -> None:
    for css in ("good", "bad", "warn", "hazard"):
        for said in re.findall(rf'<span class="v {css}">([^<]*)</span>', page()):
            assert re.match(r"[✓✗✱!≡?◆◇–]|.* lost$", said), said  # noqa: RUF001


@cache
def colours() -> dict[str, tuple[str, str]]:
    [style] = re.findall(r"<style>(.*?)</style>", page(), flags=re.DOTALL)
    return {name: (light, dark) for name, light, dark in re.findall(r"--([a-z-]+): light-dark\((\S+), (\S+)\)", style)}


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("ground", ["ground", "card", "raised"])
@pytest.mark.parametrize("ink", ["ink", "soft", "accent", "good", "bad", "warn", "hazard"])
def test_every_text_can_be_read_on_its_ground(ink: str, ground: str, scheme: int) -> None:
    pair = sorted((luminance(colours()[ink][scheme]), luminance(colours()[ground][scheme])))

    assert (pair[1] + 0.05) / (pair[0] + 0.05) >= 4.5


def test_a_large_run_stays_a_small_page() -> None:
    runs = [passing(n) for n in range(500)]
    records = {(one.scenario, "memory"): RECORD for one in runs}
    text = page(*runs, records=records, scenarios={one.scenario: SCENARIO for one in runs}, files={})

    assert len(text) < 4_000_000


def passing(number: int) -> RunVerdict:
    return verdict(f"s{number}", "pass", *(finding("D8", True, expected={"n": n}) for n in range(6)))


# ------------------------------------------------------------------ the command


def test_a_folder_is_made_for_the_page_and_its_place_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    one = ["check", "--scenario", "settle-abort-twice", "--host", "memory"]
    result = CliRunner().invoke(main, [*one, "--workers", "0", "--html", str(folder)])
    text = (folder / "index.html").read_text(encoding="utf-8")

    assert result.exit_code == 0
    assert f"page: {folder / 'index.html'}" in result.output
    assert "legion-contracts check --scenario settle-abort-twice --host memory" in Reader(text).text()
    assert [path.name for path in folder.iterdir()] == ["index.html"]


@pytest.mark.parametrize("where", ["file", "file/below"])
def test_where_no_page_can_be_written_nothing_is_run(where: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    result = CliRunner().invoke(main, ["check", "--html", str(tmp_path / where)])

    assert result.exit_code == 2
    assert "--html" in result.output


def test_a_page_is_made_of_a_finished_run_alone() -> None:
    bare = dataclasses.replace(content(*RUNS), records={}, scenarios={})

    assert 'class="lanes"' not in as_html(bare, lambda *_: 1)
