"""I4: the list of modes, and every switch, map and chain of comparisons over it, wherever it stands."""
# ruff: noqa: E501 - a program of one line is easier to compare with its neighbours than one of several

from pathlib import Path

import pytest

from contracts.repo.findings import ClauseResult, RepoReport
from contracts.repo.gate import judge_repo

TYPES = "src/shared/types.ts"
ROUTING = "src/supervisor/routing-supervisor.ts"
HEAD = 'import { SPAWN_MODES, assertNever, type SpawnMode } from "./types.js";\n'
PLACE = "src/shared/more.ts"


def red(report: RepoReport) -> list[str]:
    return [one.id for one in report.clauses if one.verdict != "pass"]


def modes(report: RepoReport) -> ClauseResult:
    return next(one for one in report.clauses if one.id == "I4")


def judged(checkout: Path, text: str) -> RepoReport:
    """The report on a checkout with one more source file, which nobody minds otherwise."""
    (checkout / PLACE).write_text(HEAD + text, encoding="utf-8")
    return judge_repo(checkout, "base", allowed=[PLACE])


INCOMPLETE = {
    "a switch": 'export function f(m: SpawnMode) { switch (m) { case "inprocess": return 1; case "rpc": return 2; } }',
    "a switch with a default": 'export function f(mode: SpawnMode) { switch (mode) { case "rpc": return 2; default: return 1; } }',
    "a switch that the type checker refuses": 'export function f(m: SpawnMode) { switch (m) { case "inprocess": case "rpc": return 2; default: return assertNever(m); } }',
    "a switch with constants": 'const M = { A: "inprocess", B: "rpc" } as const;\nexport function f(m: SpawnMode) { switch (m) { case M.A: return 1; case M["B"]: return 2; } }',
    "a record": 'export const M: Record<SpawnMode, number> = { inprocess: 1, "rpc": 2 };',
    "a record of one mode": "export const M: Record<SpawnMode, number> = { rpc: 2 } as never;",
    "a readonly record": 'export const M: Readonly<Record<SpawnMode, number>> = { inprocess: 1, ["rpc"]: 2 };',
    "a record that is satisfied": "export const M = { inprocess: 1, rpc: 2 } satisfies Record<SpawnMode, number>;",
    "a frozen record": "export const M = Object.freeze<Record<SpawnMode, number>>({ inprocess: 1, rpc: 2 });",
    "a record that is returned": "export function f(): Record<SpawnMode, number> { return { inprocess: 1, rpc: 2 }; }",
    "a mapped type": "export const M: { [K in SpawnMode]: number } = { inprocess: 1, rpc: 2 };",
    "a type under another name": "type Mode = SpawnMode;\nexport const M: Record<Mode, number> = { rpc: 1 } as never;",
    "an object of no type": "export const M = { inprocess: 1, rpc: 2 };",
    "an object that spreads another": "const A = { inprocess: 1 };\nexport const M = { ...A, rpc: 2 };",
    "an object of functions": "export const M = { inprocess() { return 1; }, rpc: () => 2 };",
    "a Map": 'export const M = new Map<SpawnMode, number>([["inprocess", 1], ["rpc", 2]]);',
    "a Map of no type": 'export const M = new Map([["inprocess", 1], ["rpc", 2]]);',
    "a Map that is filled": 'export const M = new Map();\nM.set("inprocess", 1);\nM.set("rpc", 2);',
    "a Map that is filled in a row": 'export const M = new Map().set("inprocess", 1).set("rpc", 2);',
    "an object that is filled": 'export const M: any = {};\nM.inprocess = 1;\nM["rpc"] = 2;',
    "a chain of ifs": 'export function f(m: SpawnMode) { if (m === "inprocess") return 1; else if (m === "rpc") return 2; return 0; }',
    "a chain of questions": 'export const f = (m: SpawnMode) => (m === "inprocess" ? 1 : m === "rpc" ? 2 : 0);',
    "a chain the other way round": 'export const f = (m: SpawnMode) => ("inprocess" === m ? 1 : "rpc" == m ? 2 : 0);',
    "a chain that ends in never": 'export function f(m: SpawnMode) { if (m === "inprocess") return 1; if (m === "rpc") return 2; return assertNever(m as never); }',
}  # fmt: skip


@pytest.mark.parametrize("text", INCOMPLETE.values(), ids=INCOMPLETE.keys())
def test_a_place_without_terminal_fails(checkout: Path, text: str) -> None:
    report = judged(checkout, text + "\n")

    assert red(report) == ["I4"]
    assert {one.path for one in modes(report).findings} == {PLACE}
    assert all("terminal" in one.say and one.todo and one.line >= 2 for one in modes(report).findings)


INCOMPLETE_IN_A_SLY_WAY = {
    "a partial record": "export const M: Partial<Record<SpawnMode, number>> = { inprocess: 1, rpc: 2 };",
    "an optional mapped type": "export const M: { [K in SpawnMode]?: number } = { inprocess: 1, rpc: 2 };",
    "a key that is no mode": "export const M: Record<string, number> = { inprocess: 1, rpc: 2, other: 3 };",
    "a case that is no mode": 'export function f(m: string) { switch (m) { case "inprocess": return 1; case "rpc": return 2; case "none": return 3; } }',
    "a list of pairs": 'export const M = Object.fromEntries([["inprocess", 1], ["rpc", 2]]);',
    "a question about something else": 'export function f(m: SpawnMode, k: string) { if (k === "terminal") k = ""; switch (m) { case "inprocess": return 1; case "rpc": return 2; } }',
}  # fmt: skip


@pytest.mark.parametrize("text", INCOMPLETE_IN_A_SLY_WAY.values(), ids=INCOMPLETE_IN_A_SLY_WAY.keys())
def test_a_place_does_not_hide_that_it_lacks_terminal(checkout: Path, text: str) -> None:
    assert red(judged(checkout, text + "\n")) == ["I4"]


@pytest.mark.parametrize("derived", ['Exclude<(typeof SPAWN_MODES)[number], "terminal">', "(typeof OLD)[number]"])
def test_a_type_that_is_not_derived_from_the_list_is_unproven(checkout: Path, derived: str) -> None:
    path = checkout / TYPES
    path.write_text(path.read_text().replace("(typeof SPAWN_MODES)[number];", f"{derived};"))

    report = judge_repo(checkout, "base")

    assert red(report) == ["I4"]
    assert [(one.path, one.weight) for one in modes(report).findings] == [(TYPES, "unproven")]


COMPLETE = {
    "a switch": 'export function f(m: SpawnMode) { switch (m) { case "inprocess": return 1; case "rpc": case "terminal": return 2; } }',
    "a switch behind an if": 'export function f(m: SpawnMode) { if (m === "terminal") return 3; switch (m) { case "inprocess": return 1; case "rpc": return 2; default: return assertNever(m); } }',
    "a record": 'export const M: Record<SpawnMode, number> = { inprocess: 1, rpc: 2, "terminal": 3 };',
    "a record that spreads": 'const A = { terminal: 3 };\nexport const M: Record<SpawnMode, number> = { inprocess: 1, rpc: 2, ...A };',
    "a partial record": "export const M: Partial<Record<SpawnMode, number>> = { rpc: 2 };",
    "a Map": 'export const M = new Map<SpawnMode, number>([["inprocess", 1], ["rpc", 2], ["terminal", 3]]);',
    "a question about one mode": 'export const f = (m: SpawnMode) => m === "rpc";',
    "two questions in two functions": 'export const f = (m: SpawnMode) => m === "rpc";\nexport const g = (m: SpawnMode) => m === "inprocess";',
    "a switch over something else": 'export function f(m: string) { switch (m) { case "rpc": return 1; case "stdio": return 2; } return 0; }',
    "an object of something else": "export const M = { rpc: 1, stdio: 2 };",
    "a list of some modes": 'export const SOME: SpawnMode[] = ["inprocess", "rpc"];',
    "a map made of the list": "export const M = Object.fromEntries(SPAWN_MODES.map((m) => [m, 0]));",
    "a comment": '// switch (mode) { case "rpc": }',
}  # fmt: skip


@pytest.mark.parametrize("text", COMPLETE.values(), ids=COMPLETE.keys())
def test_a_place_that_knows_terminal_or_is_none_passes(checkout: Path, text: str) -> None:
    assert red(judged(checkout, text + "\n")) == []


def test_a_map_that_was_not_touched_since_the_base_fails_too(checkout: Path) -> None:
    path = checkout / "src/ui/mode-label.ts"
    path.write_text(path.read_text(encoding="utf-8").replace('  terminal: "terminal",\n', ""), encoding="utf-8")

    report = judge_repo(checkout, "base")

    assert red(report) == ["I4"]
    (finding,) = modes(report).findings
    assert (finding.path, finding.line) == ("src/ui/mode-label.ts", 3)
    assert "LABELS" in finding.say


LISTS = {
    "without the new mode": '["inprocess", "rpc"] as const',
    "without an old mode": '["inprocess", "terminal"] as const',
    "with another spelling": '["inprocess", "rpc", "Terminal"] as const',
}


@pytest.mark.parametrize("text", LISTS.values(), ids=LISTS.keys())
def test_a_list_that_is_wrong_fails_at_its_line(checkout: Path, text: str) -> None:
    path = checkout / TYPES
    path.write_text(path.read_text().replace('["inprocess", "rpc", "terminal"] as const', text))

    report = judge_repo(checkout, "base")

    assert red(report) == ["I4"]
    assert {(one.path, one.line) for one in modes(report).findings} == {(TYPES, 2)}


def test_a_list_that_is_built_of_others_is_read(checkout: Path) -> None:
    path = checkout / TYPES
    path.write_text(
        path.read_text().replace(
            'export const SPAWN_MODES = ["inprocess", "rpc", "terminal"]',
            'const OLD = ["inprocess", "rpc"] as const;\nexport const SPAWN_MODES = [...OLD, "terminal"]',
        )
    )

    assert red(judge_repo(checkout, "base")) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('export const SPAWN_MODES = ["inprocess", "rpc", "terminal"] as const;', "export const SPAWN_MODES = load();"),
        ("export const SPAWN_MODES", "export const MODES_OF_SPAWN"),
    ],
    ids=["computed", "gone"],
)
def test_a_list_that_cannot_be_read_leaves_the_clause_unproven(checkout: Path, old: str, new: str) -> None:
    path = checkout / TYPES
    path.write_text(path.read_text().replace(old, new))

    assert modes(judge_repo(checkout, "base")).verdict == "unproven"


def test_a_type_that_is_written_out_without_terminal_fails(checkout: Path) -> None:
    path = checkout / TYPES
    path.write_text(path.read_text().replace("(typeof SPAWN_MODES)[number]", '"inprocess" | "rpc"'))

    report = judge_repo(checkout, "base")

    assert red(report) == ["I4"]
    assert "written out" in modes(report).findings[0].say


def test_a_map_that_spreads_the_unknown_is_unproven(checkout: Path) -> None:
    report = judged(checkout, "export const f = (x: object): Record<SpawnMode, number> => ({ ...x, rpc: 2 }) as never;\n"
                              "export const M: Record<SpawnMode, number> = { ...f({}), rpc: 2 };\n")  # fmt: skip

    assert modes(report).verdict == "unproven"


def test_a_file_about_modes_that_does_not_parse_is_named(checkout: Path) -> None:
    report = judged(checkout, "export const M: Record<SpawnMode, number> = {{{;\n")

    assert modes(report).verdict == "unproven"
    assert any(one.path == PLACE and "does not parse" in one.say for one in modes(report).findings)


def test_a_source_that_is_not_utf_8_is_named(checkout: Path) -> None:
    (checkout / PLACE).write_bytes(b'export const a = "\xff\xfe";\n')

    report = judge_repo(checkout, "base", allowed=[PLACE])

    assert red(report) == ["I4"]
    assert modes(report).findings[0].say.startswith(f"{PLACE} is not UTF-8")


def test_maps_of_tests_may_stay_as_they_are(checkout: Path) -> None:
    path = checkout / "test/unit/terminal-supervisor.test.ts"
    path.write_text("const fake = { inprocess: 1, rpc: 2 };\n")

    assert red(judge_repo(checkout, "base")) == []
