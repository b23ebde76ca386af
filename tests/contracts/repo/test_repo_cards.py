"""D13: no agent card sets spawnMode, however the key is written."""

from pathlib import Path

import pytest

from contracts.repo.findings import ClauseResult, RepoReport
from contracts.repo.gate import judge_repo

ALLOWED = ["agents/*", "plugins/*", "docs/*", ".pi/*", "test/*"]


def cards(report: RepoReport) -> ClauseResult:
    return next(one for one in report.clauses if one.id == "D13")


def judged(checkout: Path, path: str, text: str | bytes) -> RepoReport:
    (checkout / path).parent.mkdir(parents=True, exist_ok=True)
    (checkout / path).write_bytes(text if isinstance(text, bytes) else text.encode())
    return judge_repo(checkout, "base", allowed=ALLOWED)


def red(report: RepoReport) -> list[str]:
    return [one.id for one in report.clauses if one.verdict != "pass"]


CARDS = {
    "at the top": ("name: x\nspawnMode: terminal", 3),
    "with no value": ("name: x\nspawnMode:", 3),
    "first": ("spawnMode: rpc\nname: x", 2),
    "nested": ("name: x\nrun:\n  deep:\n    spawnMode: rpc", 5),
    "in a list": ("name: x\nruns:\n  - a: 1\n  - spawnMode: rpc", 5),
    "in flow style": ("name: x\nrun: {a: [1, {spawnMode: rpc}]}", 3),
    "in quotes": ('name: x\n"spawnMode": rpc', 3),
    "in single quotes": ("name: x\n'spawnMode': rpc", 3),
    "with an escape": ('name: x\n"spawn\\u004dode": rpc', 3),
    "as an explicit key": ("name: x\n? spawnMode\n: rpc", 3),
    "behind an anchor": ("name: x\nbase: &b\n  spawnMode: rpc\nrun:\n  <<: *b", 4),
    "twice": ("spawnMode: rpc\nname: x\nname: y", 2),
    "in matter that is no YAML": ("description: Use it: when\nspawnMode: rpc", 3),
    "in Windows line ends": ("name: x\r\nspawnMode: rpc", 3),
}


@pytest.mark.parametrize(("front", "line"), CARDS.values(), ids=CARDS.keys())
def test_a_card_with_the_field_fails_at_its_line(checkout: Path, front: str, line: int) -> None:
    report = judged(checkout, "agents/scout.md", f"---\n{front}\n---\nText.\n")

    assert red(report) == ["D13"]
    assert [(one.path, one.line, one.weight) for one in cards(report).findings] == [("agents/scout.md", line, "fail")]


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        ("plugins/deep/er/card.md", "---\nname: x\nspawnMode: rpc\n---\n", 3),
        ("agents/tests/x.md", "---\nname: x\nspawnMode: rpc\n---\n", 3),
        ("agents/x.test.md", "---\nname: x\nspawnMode: rpc\n---\n", 3),
        ("agents/x.txt", "---\nname: x\nspawnMode: rpc\n---\n", 3),
        ("agents/x.md", "---yaml\nname: x\nspawnMode: rpc\n---\n", 3),
        ("agents/x.md", '+++\nname = "x"\nspawnMode = "rpc"\n+++\n', 3),
        ("agents/x.toml", 'name = "x"\nspawnMode = "rpc"\n', 2),
        ("agents/x.md", '---\nname: "a\u2028---\u2028b"\nspawnMode: rpc\n---\n', 3),
        (".pi/agents/x.MD", "---\nspawnMode: rpc\n---\n", 2),
        ("agents/x.mdx", "\ufeff---\nspawnMode: rpc\n---\n", 2),
        ("agents/x.md", "\n\n---\nspawnMode: rpc\n---\n", 4),
        ("agents/x.md", "---\nname: x\nspawnMode: rpc\n", 3),
        ("agents/x.yaml", "name: x\nspawnMode: rpc\n", 2),
        ("plugins/agents/x.json", '{\n "run": {"spawnMode": "rpc"}\n}\n', 2),
    ],
    ids=[
        "anywhere",
        "a folder like tests",
        "a name like a test",
        "plain text",
        "a named language",
        "TOML in front",
        "TOML",
        "a line separator",
        "upper case",
        "byte order mark",
        "blank lines first",
        "not closed",
        "YAML",
        "JSON",
    ],
)
def test_cards_are_found_wherever_and_however_they_lie(checkout: Path, path: str, text: str, line: int) -> None:
    report = judged(checkout, path, text)

    assert [(one.path, one.line) for one in cards(report).findings] == [(path, line)]


def test_a_card_of_the_base_fails_though_nobody_touched_it(checkout: Path) -> None:
    report = judged(checkout, "agents/old.md", "---\nname: x\nspawnMode: rpc\n---\n")

    assert cards(report).verdict == "fail"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("agents/x.md", "---\nname: spawnMode\n---\nspawnMode: rpc\n"),
        ("agents/x.md", "---\nspawnmode: rpc\nspawnModes: [rpc]\n---\n"),
        ("agents/x.md", "---\n# spawnMode: rpc\nname: x\n---\n"),
        ("agents/x.md", "spawnMode: rpc\n"),
        ("agents/x.md", "---\ndescription: Use it: when needed\n---\n"),
        ("docs/cards.md", "No card has:\n\n---\nspawnMode: rpc\n---\n"),
        ("test/fixtures/agents/more.md", "---\nspawnMode: rpc\n---\n"),
        ("docs/settings.json", '{"spawnMode": "rpc"}\n'),
    ],
    ids=["a value", "another key", "a comment", "no front matter", "no YAML", "further down", "a fixture", "no card"],
)
def test_what_sets_nothing_passes(checkout: Path, path: str, text: str) -> None:
    assert red(judged(checkout, path, text)) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"---\nname: \xff\n---\n", "is not UTF-8"),
        (b'---\na: \'x\nb: "spawn\\u004dode"\n---\n', "is no YAML"),
        (b"---\nname: " + b"x" * 300_000 + b"\n---\n", "characters"),
        (b"---\nname: " + b"x" * 1_100_000 + b"\n---\n", "bytes"),
        (b"---\na: " + b"[" * 3000 + b"spawnMode\n---\n", "no YAML"),
    ],
    ids=["not UTF-8", "no YAML", "long", "huge", "deep"],
)
def test_a_card_that_cannot_be_read_leaves_the_clause_unproven(checkout: Path, text: bytes, says: str) -> None:
    result = cards(judged(checkout, "agents/x.md", text))

    assert result.verdict == "unproven"
    assert says in result.findings[0].say


def test_a_cycle_of_aliases_ends(checkout: Path) -> None:
    assert red(judged(checkout, "agents/x.md", "---\na: &a [*a, {b: *a}]\n---\n")) == []


def test_a_checkout_without_cards_proves_nothing(checkout: Path) -> None:
    for path in [*(checkout / "agents").iterdir(), checkout / "docs/architecture.md"]:
        path.unlink()

    assert cards(judge_repo(checkout, "base")).verdict == "unproven"
