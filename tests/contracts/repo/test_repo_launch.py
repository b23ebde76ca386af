"""I3: a git process that the launch path could not reach in the base is found, however it is written."""
# ruff: noqa: E501 - a program of one line is easier to compare with its neighbours than one of several

from collections.abc import Callable
from pathlib import Path

import pytest

from contracts.repo.findings import ClauseResult, RepoReport
from contracts.repo.gate import judge_repo

TERMINAL = "src/supervisor/terminal-supervisor.ts"
CLIENT = "src/hc/client.ts"
ORCHESTRATOR = "src/runs/orchestrator.ts"
SKIPPED = ["I1", "I2", "I4", "D13", "files", "A1"]
HEAD = 'import type { HcClient } from "../hc/client.js";\n'


def red(report: RepoReport) -> list[str]:
    return [one.id for one in report.clauses if one.verdict != "pass"]


def launch(report: RepoReport) -> ClauseResult:
    return next(one for one in report.clauses if one.id == "I3")


def edit(top: Path, path: str, old: str, new: str) -> None:
    text = (top / path).read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {path}"
    (top / path).write_text(text.replace(old, new), encoding="utf-8")


def put(top: Path, top_lines: str, body: str) -> None:
    """Put imports at the head of the terminal supervisor, and statements at the beginning of its `spawn`."""
    edit(top, TERMINAL, HEAD, top_lines + "\n" + HEAD)
    edit(
        top,
        TERMINAL,
        "  async spawn(input: SpawnInput): Promise<string> {",
        f"  async spawn(input: SpawnInput): Promise<string> {{\n{body}",
    )


CHILD = 'import { execFile } from "node:child_process";'
STARTS = {
    "a named import": (CHILD, 'execFile("git", ["status"]);'),
    "an alias of the import": ('import { execFileSync as x } from "child_process";', 'x("git", ["status"]);'),
    "a namespace": ('import * as cp from "node:child_process";', 'cp.spawn("git", ["status"]);'),
    "a default import": ('import cp from "node:child_process";', 'cp.execSync("git status");'),
    "a computed member": ('import * as cp from "node:child_process";', 'cp["exec" + "Sync"]("git status");'),
    "a shell line": ('import { exec } from "node:child_process";', "exec(`cd ${input.cwd} && git status`);"),
    "a shell": ('import { spawn } from "node:child_process";', 'spawn("sh", ["-c", "git status | head"]);'),
    "env": ('import { spawn } from "node:child_process";', 'spawn("env", ["GIT_DIR=/x", "git", "status"]);'),
    "a full path": (CHILD, 'execFile("/usr/bin/git", ["status"]);'),
    "a program for Windows": (CHILD, 'execFile("git.exe", ["status"]);'),
    "a text in pieces": (CHILD, 'const g = "g"; execFile(`${g}it`, ["status"]);'),
    "a sum of texts": (CHILD, 'execFile("g" + "it", ["status"]);'),
    "an escape": (CHILD, 'execFile("\\u0067it", ["status"]);'),
    "a constant": (CHILD + '\nconst BIN = "git";', 'execFile(BIN, ["status"]);'),
    "an object of constants": (CHILD + '\nconst BINS = { vcs: "git" } as const;', 'execFile(BINS.vcs, ["status"]);'),
    "an enumeration": (CHILD + '\nenum Bin { Vcs = "git" }', 'execFile(Bin.Vcs, ["status"]);'),
    "a list in a constant": (CHILD + '\nconst ARGV = ["git", "status"] as const;', "execFile(ARGV[0], ARGV.slice(1));"),
    "a list that is spread": (CHILD + '\nconst ARGV = ["git", "status"] as const;', "execFile(...ARGV);"),
    "a list that is taken apart": (CHILD, 'const [bin, ...rest] = ["git", "status"]; execFile(bin, rest);'),
    "a list that is joined": ('import { exec } from "node:child_process";', 'exec(["git", "status"].join(" "));'),
    "a choice": (CHILD, 'execFile(process.env.GIT ?? "git", ["status"]);'),
    "a question": (CHILD, 'execFile(input.worktree ? "git" : "true", ["status"]);'),
    "an unknown program with words of git": (CHILD, 'execFile(input.env.VCS, ["rev-parse", "HEAD"]);'),
    "promisify": (CHILD + '\nimport { promisify } from "node:util";\nconst run = promisify(execFile);', 'await run("git", ["status"]);'),
    "promisify on the spot": (CHILD + '\nimport util from "node:util";', 'await util.promisify(execFile)("git", ["status"]);'),
    "bind": (CHILD + "\nconst run = execFile.bind(null);", 'run("git", ["status"]);'),
    "another name for it": (CHILD + "\nconst run = execFile;", 'run("git", ["status"]);'),
    "require": ("", 'require("child_process").execFileSync("git", ["status"]);'),
    "require taken apart": ('const { execFile: run } = require("node:child_process");', 'run("git", ["status"]);'),
    "import equals": ('import cp = require("child_process");', 'cp.execSync("git status");'),
    "createRequire": ('import { createRequire } from "node:module";\nconst r = createRequire(import.meta.url);', 'r("child_process").execSync("git status");'),
    "getBuiltinModule": ("", 'process.getBuiltinModule("child_process").execSync("git status");'),
    "a dynamic import": ("", 'const { execFile } = await import("node:child_process"); execFile("git", ["status"]);'),
    "a dynamic import by template": ("", 'const cp = await import(`node:child_process`); cp.exec("git status");'),
    "a dynamic import in one line": ("", '(await import("node:child_process")).execSync("git status");'),
    "a dynamic import with then": ("", 'import("node:child_process").then(({ exec }) => exec("git status"));'),
    "a dynamic import with then, whole": ("", 'import("node:child_process").then((cp) => cp.exec("git status"));'),
    "execa": ('import { execa } from "execa";', 'await execa("git", ["status"]);'),
    "execa by template": ('import { $ } from "execa";', "await $`git status`;"),
    "execa with options": ('import { $ } from "execa";', "await $({ cwd: input.cwd })`git status`;"),
    "zx": ('import { $ } from "zx";', "await $`git status`;"),
    "Bun": ("", 'Bun.spawn(["git", "status"]);'),
    "Deno": ("", 'new Deno.Command("git", { args: ["status"] });'),
    "simple-git": ('import { simpleGit } from "simple-git";', "await simpleGit(input.cwd).status();"),
    "simple-git, held": ('import simpleGit from "simple-git";', "const g = simpleGit(); await g.status();"),
    "the host's own exec": ("", 'await (this.client as any).pi.exec("git", ["status"]);'),
    "a function inside": (CHILD, 'const look = () => execFile("git", ["status"]); look();'),
    "a callback": (CHILD, '[1].forEach(() => execFile("git", ["status"]));'),
    "an optional call": (CHILD, 'execFile?.("git", ["status"]);'),
    "parentheses and types": (CHILD, '(execFile as any)(("git" as string)!, ["status"]);'),
}  # fmt: skip


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS.keys())
def test_a_new_git_process_is_found_however_it_is_written(checkout: Path, start: tuple[str, str]) -> None:
    put(checkout, *start)

    report = judge_repo(checkout, "base")

    assert red(report) == ["I3"]
    failing = [one for one in launch(report).findings if one.weight == "fail"]
    lines = (checkout / TERMINAL).read_text(encoding="utf-8").splitlines()
    body_at = next(index for index, line in enumerate(lines, 1) if line.strip() == start[1])
    assert {(one.path, one.line) for one in failing} == {(TERMINAL, body_at)}
    assert all(one.todo for one in failing)


EXEC = 'import { exec } from "node:child_process";'
SPAWN = 'import { spawn } from "node:child_process";'
WORKTREE = 'import * as w from "../runs/worktree.js";'
DISGUISED = {
    "an own wrapper": (CHILD + "\nfunction go(b: string, a: string[]) { return execFile(b, a); }", 'go("git", ["diff"]);'),
    "a wrapper that takes an object": (CHILD + "\nconst go = (o: any) => execFile(o.b, o.a);", 'go({ b: "git", a: ["diff"] });'),
    "a class around it": (CHILD + "\nclass Vcs { constructor(private b: string) {} look() { return execFile(this.b, []); } }", 'new Vcs("git").look();'),
    "apply": (CHILD, 'execFile.apply(null, ["git", ["diff"]] as any);'),
    "call": (CHILD, 'execFile.call(null, "git", ["diff"]);'),
    "Reflect": (CHILD, 'Reflect.apply(execFile, null, ["git", ["diff"]]);'),
    "a bound argument": (CHILD + '\nconst g = execFile.bind(null, "git");', 'g(["diff"]);'),
    "a function in a Map": (CHILD + '\nconst m = new Map([["x", execFile]]);', 'm.get("x")!("git", ["diff"]);'),
    "one of two functions": ('import * as cp from "node:child_process";', 'const f = input.worktree ? cp.execFile : cp.spawn; f("git", ["diff"]);'),
    "a variable that is assigned": (EXEC, 'let f: any; f = exec; f("git diff");'),
    "a parameter": (CHILD, '((f: any) => f("git", ["diff"]))(execFile);'),
    "a text that is assigned": (CHILD, 'let b = "x"; b = "git"; execFile(b, ["diff"]);'),
    "a variable of the environment": (CHILD, 'process.env.VCS = "git"; execFile(process.env.VCS, ["diff"]);'),
    "another interpreter": (SPAWN, "spawn(\"node\", [\"-e\", \"require('child_process').execSync('git status')\"]);"),
    "this interpreter": (SPAWN, "spawn(process.execPath, [\"-e\", \"require('child_process').execSync('git status')\"]);"),
    "find": (SPAWN, 'spawn("find", [".", "-exec", "git", "diff", ";"]);'),
    "eval": ("", "eval(\"require('child_process').execSync('git status')\");"),
    "a function from a text": ("", "new Function(\"r\", \"r('child_process').execSync('git status')\")(require);"),
    "capitals": (CHILD, 'execFile("GIT".toLowerCase(), ["diff"]);'),
    "a program of git": (CHILD, 'execFile("/usr/lib/git-core/git-rev-parse", ["HEAD"]);'),
    "quotes of a shell": (EXEC, "exec(\"g''it status\");"),
    "a code of the text": (CHILD, 'execFile(atob("Z2l0"), ["diff"]);'),
    "a part of a text": (CHILD, 'execFile("github".slice(0, 3), ["diff"]);'),
    "a global of zx": ('import "zx/globals";', "await $`git status`;"),
    "the tag of some package": ('import { sh } from "some-shell";', "await sh`git status`;"),
    "a thread": ('import { Worker } from "node:worker_threads";', 'new Worker(new URL("../git/status-line.js", import.meta.url));'),
    "a fork": ('import { fork } from "node:child_process";', 'fork("src/git/status-line.js");'),
    "a static field": (CHILD + '\nclass K { static b = "git"; }', 'execFile(K.b, ["diff"]);'),
    "a computed name of a module": (WORKTREE, 'const k = "probe" + "Worktree"; await (w as any)[k](input.cwd);'),
    "all that a module has": (WORKTREE, "for (const f of Object.values(w)) await (f as any)(input.cwd);"),
}  # fmt: skip


@pytest.mark.parametrize("disguise", DISGUISED.values(), ids=DISGUISED.keys())
def test_git_in_disguise_is_not_proved_absent(checkout: Path, disguise: tuple[str, str]) -> None:
    put(checkout, *disguise)

    assert red(judge_repo(checkout, "base")) == ["I3"]


INNOCENT = {
    "a message": 'throw new Error("git status failed");',
    "a question": 'if (["git", "hg"].includes(input.handle)) return "";',
    "a name among others": 'const kinds = new Set<string>(); kinds.add("git");',
    "a log": 'console.warn("git diff is not looked at");',
    "a word that holds it": 'this.client.call("terminal.run", { label: "legit gitless" });',
}


@pytest.mark.parametrize("line", INNOCENT.values(), ids=INNOCENT.keys())
def test_the_word_git_alone_is_no_process(checkout: Path, line: str) -> None:
    put(checkout, "", line)

    assert red(judge_repo(checkout, "base")) == []


def test_git_at_the_loading_of_a_module_is_found(checkout: Path) -> None:
    edit(checkout, CLIENT, "const METHODS", 'spawn("git", ["status"]);\nconst METHODS')

    assert red(judge_repo(checkout, "base")) == ["I3"]


def test_a_second_use_of_the_old_probe_is_found(checkout: Path) -> None:
    edit(checkout, ORCHESTRATOR, "  return deps.", "  await probeWorktree(cwd);\n  return deps.")

    report = judge_repo(checkout, "base")

    assert red(report) == ["I3"]
    (finding,) = launch(report).findings[:1]
    assert "a further call" in next(one.say for one in launch(report).findings if one.weight == "fail")
    assert finding.path


USES = {
    "named": ('import { probeWorktree } from "../runs/worktree.js";', "await probeWorktree(input.cwd);"),
    "under another name": ('import { probeWorktree as p } from "../runs/worktree.js";', "await p(input.cwd);"),
    "as a namespace": ('import * as w from "../runs/worktree.js";', "await w.probeWorktree(input.cwd);"),
    "imported when needed": ("", 'const w = await import("../runs/worktree.js"); await w.probeWorktree(input.cwd);'),
    "handed to somebody": ('import { probeWorktree } from "../runs/worktree.js";', "[input.cwd].map(probeWorktree);"),
    "of a module that was out of reach": ('import { branchName } from "../git/status-line.js";', "branchName(input.cwd);"),
}  # fmt: skip


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_a_new_way_to_an_old_git_function_is_found(checkout: Path, use: tuple[str, str]) -> None:
    put(checkout, *use)

    assert red(judge_repo(checkout, "base")) == ["I3"]


def test_a_way_through_re_exports_is_told_step_by_step(checkout: Path) -> None:
    (checkout / "src/hc/more.ts").write_text('export { branchName as label } from "../git/status-line.js";\n')
    (checkout / "src/hc/all.ts").write_text('export * from "./more.js";\n')
    put(checkout, 'import { label } from "../hc/all.js";', "label(input.cwd);")

    report = judge_repo(checkout, "base", allowed=["src/hc/*.ts"])

    assert red(report) == ["I3"]
    (found,) = [one for one in launch(report).findings if one.weight == "fail"]
    assert found.path == "src/git/status-line.ts"
    assert found.line == 4
    assert f"reached through {TERMINAL}:17" in found.say


def test_a_process_module_that_is_handed_on_is_followed(checkout: Path) -> None:
    (checkout / "src/hc/start.ts").write_text('export { execFile as start } from "node:child_process";\n')
    put(checkout, 'import { start } from "../hc/start.js";', 'start("git", ["status"]);')

    assert red(judge_repo(checkout, "base", allowed=["src/hc/start.ts"])) == ["I3"]


def test_a_constant_of_another_file_is_followed(checkout: Path) -> None:
    (checkout / "src/hc/vcs.ts").write_text('export const VCS = { bin: "git" } as const;\n')
    put(checkout, CHILD + '\nimport { VCS } from "../hc/vcs.js";', 'execFile(VCS.bin, ["status"]);')

    assert red(judge_repo(checkout, "base", allowed=["src/hc/vcs.ts"])) == ["I3"]


def test_a_changed_git_command_is_a_new_one(checkout: Path) -> None:
    edit(checkout, "src/hc/client.ts", 'spawn(this.bin, ["connect"]', 'spawn(this.bin, ["ls-files"]')

    assert red(judge_repo(checkout, "base")) == ["I3"]


HARMLESS = {
    "a type of child_process": ('import type { ChildProcess } from "node:child_process";', "const c: ChildProcess | null = null;"),
    "another program": (CHILD, 'execFile("hc", ["ls"]);'),
    "a word that only begins with git": (CHILD, 'execFile("gitless", ["status"]);'),
    "a folder called git": (CHILD, 'execFile("/opt/git/bin/hc", ["ls"]);'),
    "a text about git": ("", 'console.log("git status is not run here");'),
    "a label": ("", 'const labels = new Set<string>(); labels.add("git");'),
    "a comment": ("", '// execFile("git", ["status"])'),
    "a neighbour of a git function": ('import { shortName } from "../git/status-line.js";', "shortName(input.cwd);"),
    "a type of the worktree module": ('import type * as w from "../runs/worktree.js";', "const p: typeof w.probeWorktree | null = null;"),
    "a local of the same name": ("", 'const execFile = (..._: unknown[]) => 1; const words = ["status"]; execFile("x", words);'),
    "git in this process": ('import git from "isomorphic-git";', "await git.status({} as never);"),
}  # fmt: skip


@pytest.mark.parametrize("change", HARMLESS.values(), ids=HARMLESS.keys())
def test_what_starts_no_git_stays_green(checkout: Path, change: tuple[str, str]) -> None:
    put(checkout, *change)

    assert red(judge_repo(checkout, "base")) == []


def test_the_probe_moved_into_a_function_of_its_own_stays_green(checkout: Path) -> None:
    edit(checkout, ORCHESTRATOR, "(await probeWorktree(cwd))", "(await isUsable(cwd))")
    edit(checkout, ORCHESTRATOR, "export async function launch", "async function isUsable(at: string): Promise<boolean> {\n  return probeWorktree(at);\n}\n\nexport async function launch")  # fmt: skip

    assert red(judge_repo(checkout, "base")) == []


def test_the_probe_in_a_function_that_is_called_twice_is_found(checkout: Path) -> None:
    edit(checkout, ORCHESTRATOR, "(await probeWorktree(cwd))", "(await isUsable(cwd)) && (await isUsable(cwd))")
    edit(checkout, ORCHESTRATOR, "export async function launch", "async function isUsable(at: string): Promise<boolean> {\n  return probeWorktree(at);\n}\n\nexport async function launch")  # fmt: skip

    assert red(judge_repo(checkout, "base")) == ["I3"]


def test_a_method_that_is_known_by_its_name_alone_is_counted(checkout: Path, git: Callable[..., str]) -> None:
    edit(
        checkout, ORCHESTRATOR, "  readonly env", "  readonly look: (cwd: string) => Promise<boolean>;\n  readonly env"
    )
    edit(checkout, ORCHESTRATOR, "(await probeWorktree(cwd))", "(await deps.look(cwd))")
    edit(checkout, ORCHESTRATOR, "export async function launch", "export const DEPS = { look: probeWorktree };\n\nexport async function launch")  # fmt: skip
    git(checkout, "add", "-A")
    git(checkout, "commit", "-q", "-m", "probe handed in")
    assert red(judge_repo(checkout, "HEAD", only=["I3"])) == SKIPPED
    edit(checkout, ORCHESTRATOR, "  return deps.", "  await deps.look(cwd);\n  return deps.")

    report = judge_repo(checkout, "HEAD", only=["I3"])

    assert launch(report).verdict == "fail"
    assert [one.path for one in launch(report).findings if one.weight == "fail"] == [ORCHESTRATOR]


def test_a_test_may_start_git(checkout: Path) -> None:
    path = "test/unit/terminal-supervisor.test.ts"
    (checkout / path).write_text('import { execSync } from "node:child_process";\nexecSync("git init");\n')

    assert red(judge_repo(checkout, "base")) == []


@pytest.mark.parametrize(
    ("top", "body", "says"),
    [
        ("", "const where = input.cwd; await import(where);", "computes which module"),
        ('import { gone } from "../runs/gone.js";', "gone();", "leads to no file"),
    ],
)
def test_a_module_that_cannot_be_followed_leaves_the_clause_unproven(
    checkout: Path, top: str, body: str, says: str
) -> None:
    put(checkout, top, body)

    found = launch(judge_repo(checkout, "base"))

    assert found.verdict == "unproven"
    assert any(says in one.say for one in found.findings)


def test_a_launch_module_that_does_not_parse_is_named_with_its_line(checkout: Path) -> None:
    (checkout / TERMINAL).write_text((checkout / TERMINAL).read_text() + "export function ( {\n")

    found = launch(judge_repo(checkout, "base"))

    assert found.verdict == "unproven"
    assert any(one.path == TERMINAL and one.line > 20 and "does not parse" in one.say for one in found.findings)


def test_a_program_that_the_text_does_not_tell_is_a_note(checkout: Path) -> None:
    found = launch(judge_repo(checkout, "base"))

    assert found.verdict == "pass"
    assert [(one.weight, one.path, one.line) for one in found.findings] == [("note", CLIENT, 19)]


def test_without_a_launch_path_nothing_is_proved(checkout: Path) -> None:
    for path in [*(checkout / "src/supervisor").iterdir(), *(checkout / "src/hc").iterdir(), checkout / ORCHESTRATOR]:
        path.unlink()

    assert launch(judge_repo(checkout, "base")).verdict == "unproven"
