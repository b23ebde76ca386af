"""A1: every `test*` script of package.json clears the two markers of hc before it starts the tests.

Scripts are read as the shell would run them, one command after the other, and through the scripts that they call.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from contracts.repo.findings import ClauseResult, Finding, Weight, result
from contracts.repo.terms import MARKERS, PACKAGE
from contracts.repo.trees import Tree

MAX_DEPTH: Final = 20
"""Scripts that call scripts that call scripts ..."""
HARMLESS: Final = frozenset(
    {"cd", "echo", "printf", "true", ":", "test", "[", "rm", "rmdir", "mkdir", "cp", "mv", "touch", "sleep", "rimraf",
     "shx", "tsc", "tsup", "eslint", "biome", "prettier", "set", "export", "unset", "exit",
     "tee", "cat", "grep", "head", "tail"}
)  # fmt: skip
"""Commands that may run with the markers: they start no tests."""
RUNNERS: Final = frozenset({"npm", "pnpm", "yarn", "bun"})
MANAGING: Final = frozenset({"run", "run-script", "test", "t", "tst", "install", "i", "ci", "add", "build", "rebuild"})
"""What a package manager does itself."""
INSTALLING: Final = frozenset({"install", "i", "ci", "add", "rebuild", "audit", "--version", "-v"})
"""What a package manager does without starting tests."""
RUN_SEVERAL: Final = frozenset({"run-s", "run-p", "npm-run-all", "npm-run-all2"})
SHELLS: Final = frozenset({"sh", "bash", "zsh", "dash"})
SETTING: Final = frozenset({"unset", "export", "set", "declare", "typeset"})
STARTING: Final = frozenset({"npx", "exec", "command", "time", "nice", "nohup", "dotenv"})
_BETWEEN: Final = frozenset({"&&", "||", ";", "|", "&", "(", ")", ";;", "|&", "\n"})
_SETTING: Final = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)

Clear = frozenset[str]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A program that a script starts, and the markers that are cleared then."""

    words: tuple[str, ...]
    cleared: Clear


def judge_scripts(judged: Tree) -> ClauseResult:
    """All scripts whose name begins with `test`."""
    text = judged.text(PACKAGE)
    if text is None:
        say = f"{PACKAGE} {judged.why_not(PACKAGE)}"
        return _unproven(say, 1)
    try:
        package = json.loads(text)
    except json.JSONDecodeError as error:
        return _unproven(f"{PACKAGE} is no JSON: {error.msg}", error.lineno)
    except (ValueError, RecursionError) as error:
        return _unproven(f"{PACKAGE} cannot be read: {error}", 1)
    scripts = _scripts(package)
    tests = sorted(name for name in scripts if name.startswith("test"))
    if not tests:
        return _unproven(f"{PACKAGE} has no test script", line_of_script(text, "scripts"))
    findings = [finding for name in tests for finding in _judge_script(name, scripts, line_of_script(text, name))]
    return result("A1", f"the scripts {', '.join(tests)}", findings)


def line_of_script(text: str, name: str) -> int:
    """The line of a key in package.json: of a script where there is one of that name, else where the scripts begin."""
    start = text.find('"scripts"')
    key = re.compile(re.escape(json.dumps(name)) + r"\s*:")
    found = (key.search(text, start) if start >= 0 else None) or key.search(text)
    return text.count("\n", 0, max(start, 0) if found is None else found.start()) + 1


def without_clearing(script: str) -> list[str]:
    """The words of a script without those that clear a marker: scripts that differ in nothing else give the same."""
    kept: list[str] = []
    try:
        commands = list(_commands(script))
    except _UnreadableError:
        return [script]
    for command, between in commands:
        words = _uncleared(command)
        if words or not command:
            kept += [*words, between]
    while kept and kept[-1] in ("", ";", "&&"):
        kept.pop()
    return kept


def _uncleared(command: Sequence[str]) -> list[str]:
    words: list[str] = []
    skip = False
    for index, word in enumerate(command):
        if skip:
            skip = False
        elif word in ("-u", "--unset") and index + 1 < len(command) and command[index + 1] in MARKERS:
            skip = True
        elif word not in {f"{marker}=" for marker in MARKERS} | {f"--unset={m}" for m in MARKERS} | {
            f"-u{m}" for m in MARKERS
        }:
            words.append(word)
    if words[:1] == ["unset"]:
        words = [word for word in words if word not in MARKERS]
        words = [] if all(word == "unset" or word.startswith("-") for word in words) else words
    if words[:1] in (["env"], ["cross-env"]) and len(words) > 1 and not _SETTING.match(words[1]) and words[1][0] != "-":
        words = words[1:]
    return [] if words == ["export"] else words


# ------------------------------------------------------------------ what a script starts


def _judge_script(name: str, scripts: Mapping[str, str], line: int) -> Iterator[Finding]:
    try:
        leaves = list(_leaves(scripts[name], scripts, frozenset(), 0))
    except _UnreadableError as error:
        yield _finding("unproven", line, f"the script {name!r} cannot be read: {error}", "write it plainly")
        return
    guilty = [leaf for leaf in leaves if not _is_harmless(leaf) and not leaf.cleared >= set(MARKERS)]
    todo = "begin it with: env " + " ".join(f"-u {marker}" for marker in MARKERS)
    if guilty:
        left = [marker for marker in MARKERS if marker not in guilty[0].cleared]
        say = f"the script {name!r} starts {guilty[0].words[0]!r} without clearing {' and '.join(left)}"
        yield _finding("fail", line, say, todo)
    elif not any(leaf.cleared >= set(MARKERS) for leaf in leaves):
        yield _finding("fail", line, f"the script {name!r} starts nothing with {' and '.join(MARKERS)} cleared", todo)


def _is_harmless(leaf: Leaf) -> bool:
    if leaf.words[0] in RUNNERS:
        return leaf.words[1:2] == () or leaf.words[1] in INSTALLING
    return leaf.words[0] in HARMLESS


class _UnreadableError(Exception):
    """A script that cannot be taken apart; the message says why."""


def _leaves(script: str, scripts: Mapping[str, str], cleared: Clear, depth: int) -> Iterator[Leaf]:
    """The programs that a script starts, in order, each with what is cleared by then."""
    if depth > MAX_DEPTH:
        raise _UnreadableError("its scripts call one another without end")
    outside: list[Clear] = []
    came = ""
    for command, between in _commands(script):
        here, words = _take_settings(cleared, command)
        if words and words[0] not in SETTING:
            yield from _started(words, scripts, here, depth)
        elif not _is_apart(came, between):
            cleared = _after_setting(here, words)  # holds from here on
        for sign in between:
            if sign == "(":  # what a subshell sets ends with it
                outside.append(cleared)
            elif sign == ")" and outside:
                cleared = outside.pop()
        came = between


def _after_setting(cleared: Clear, words: Sequence[str]) -> Clear:
    if words[:1] == ["unset"]:
        return cleared | ({word for word in words[1:] if word in MARKERS} if "-f" not in words else set())
    return _take_settings(cleared, words[1:])[0]


def _is_apart(came: str, between: str) -> bool:
    """Whether a setting between these two signs may not happen, or happens in a shell of its own."""
    return came.strip("()") in ("||", "|", "|&") or between.strip("()") in ("|", "|&", "&")


def _started(words: list[str], scripts: Mapping[str, str], cleared: Clear, depth: int) -> Iterator[Leaf]:
    name = words[0].rpartition("/")[2]
    if name == "env":
        cleared, words = _through_env(words[1:], cleared)
    elif name in ("cross-env", "cross-env-shell") or (
        name == "npx" and words[1:2] in (["cross-env"], ["cross-env-shell"])
    ):
        cleared, words = _take_settings(cleared, words[2 if name == "npx" else 1 :])
    elif (held := _held_program(name, words, scripts)) is not None:
        words = held
    elif name in STARTING:
        words = [word for index, word in enumerate(words[1:]) if index or not word.startswith("-")]
    elif name in SHELLS and "-c" in words[:-1]:
        yield from _leaves(words[words.index("-c") + 1], scripts, cleared, depth + 1)
        return
    else:
        called = _called_scripts(name, words, scripts)
        if called:
            for one in called:
                yield from _leaves(scripts[one], scripts, cleared, depth + 1)
        elif words:
            yield Leaf((name, *words[1:]), cleared)
        return
    if words and depth <= MAX_DEPTH:
        yield from _started(words, scripts, cleared, depth + 1)


def _held_program(name: str, words: Sequence[str], scripts: Mapping[str, str]) -> list[str] | None:
    """The program of a package that a package manager starts: `npm exec vitest`, `pnpm vitest`; None for the rest."""
    rest = [word for word in words[1:] if word != "--"]
    if name not in RUNNERS or not rest or rest[0].startswith("-"):
        return None
    if rest[0] in ("exec", "x", "dlx"):
        return rest[1:]
    if name in ("yarn", "pnpm") and rest[0] not in scripts and rest[0] not in MANAGING:
        return rest
    return None


def _called_scripts(name: str, words: Sequence[str], scripts: Mapping[str, str]) -> list[str]:
    """The scripts of package.json that a command runs."""
    rest = [word for word in words[1:] if not word.startswith("-")]
    if name in RUN_SEVERAL:
        return [script for word in rest for script in scripts if re.fullmatch(_glob(word), script)]
    if name == "node" and "--run" in words[:-1]:
        return [words[words.index("--run") + 1]] if words[words.index("--run") + 1] in scripts else []
    if name not in RUNNERS or not rest:
        return []
    if rest[0] in ("run", "run-script") and len(rest) > 1:
        found = rest[1]
    elif rest[0] in ("t", "tst", "test") and name != "bun":
        found = "test"
    elif name in ("yarn", "pnpm") and rest[0] in scripts:
        found = rest[0]
    else:
        return []
    if found not in scripts:
        raise _UnreadableError(f"it runs {found!r}, which is no script of {PACKAGE}")
    return [found]


def _glob(pattern: str) -> str:
    return re.escape(pattern).replace(r"\*\*", ".*").replace(r"\*", "[^:]*")


def _take_settings(cleared: Clear, words: Sequence[str]) -> tuple[Clear, list[str]]:
    """Settings in front of a command: an empty one clears a marker, another sets it again."""
    rest = list(words)
    while rest and (found := _SETTING.fullmatch(rest[0])):
        cleared = cleared - {found[1]} if found[2] else cleared | ({found[1]} & set(MARKERS))
        rest.pop(0)
    return cleared, rest


def _through_env(words: list[str], cleared: Clear) -> tuple[Clear, list[str]]:
    rest = list(words)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in ("-i", "-", "--ignore-environment"):
            cleared = frozenset(MARKERS)
        elif option in ("-u", "--unset") and rest:
            cleared |= {rest.pop(0)} & set(MARKERS)
        elif option.startswith(("-u", "--unset=")):
            cleared |= {option.removeprefix("--unset=").removeprefix("-u")} & set(MARKERS)
        elif option in ("-C", "--chdir", "-S", "--split-string") and rest:
            given = rest.pop(0)
            rest = shlex.split(given) + rest if option in ("-S", "--split-string") else rest
        elif option == "--":
            break
    return _take_settings(cleared, rest)


def _commands(script: str) -> Iterator[tuple[list[str], str]]:
    """The simple commands of a script, and what stands behind each."""
    if "`" in script:
        raise _UnreadableError("it runs a command between backquotes")
    plain = " ; ".join(_without_comment(line) for line in script.split("\n"))
    lexer = shlex.shlex(plain, posix=True, punctuation_chars="();|&")
    lexer.whitespace_split = True
    lexer.commenters = ""
    command: list[str] = []
    try:
        for word in lexer:
            if word in _BETWEEN or set(word) <= set("();|&"):
                yield command, word
                command = []
            else:
                command.append(word)
    except ValueError as error:
        raise _UnreadableError(str(error).lower()) from error
    if command:
        yield command, ""


def _without_comment(line: str) -> str:
    for found in re.finditer(r"(?:^|\s)#", line):
        before = line[: found.start()]
        if before.count('"') % 2 == 0 and before.count("'") % 2 == 0:
            return before
    return line


def _scripts(package: Any) -> dict[str, str]:
    scripts = package.get("scripts") if isinstance(package, dict) else None
    return {name: line for name, line in scripts.items() if isinstance(line, str)} if isinstance(scripts, dict) else {}


def _unproven(say: str, line: int) -> ClauseResult:
    todo = "give a checkout whose package.json has test scripts"
    return result("A1", PACKAGE, [_finding("unproven", line, say, todo)])


def _finding(weight: Weight, line: int, say: str, todo: str) -> Finding:
    return Finding(clause="A1", weight=weight, path=PACKAGE, line=line, say=say, todo=todo)
