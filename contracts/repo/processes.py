"""Which calls start a process, and whether that process is git, as far as the text of a program tells."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from tree_sitter import Node

from contracts.repo.parsing import bare, parts, said, walk
from contracts.repo.values import GAP, External, Program, Thing

STARTERS: Final = {
    "child_process": frozenset({"spawn", "spawnSync", "exec", "execSync", "execFile", "execFileSync"}),
    "bun": frozenset({"$", "spawn", "spawnSync"}),
    "dax-sh": frozenset({"$"}),
    "shelljs": frozenset({"exec", "cmd"}),
    "node-pty": frozenset({"spawn"}),
    "@lydell/node-pty": frozenset({"spawn"}),
    "@homebridge/node-pty-prebuilt-multiarch": frozenset({"spawn"}),
    "": frozenset({"Bun.spawn", "Bun.spawnSync", "Bun.$", "Deno.Command", "Deno.run", "$"}),
}
"""Packages, and names in them that start a process. The empty package holds globals."""
ALL_START: Final = frozenset(
    {"execa", "cross-spawn", "cross-spawn-promise", "tinyexec", "nano-spawn", "zx", "zx/core", "@npmcli/promise-spawn"}
)
"""Packages of which every function starts a process."""
GIT_PACKAGES: Final = frozenset({"simple-git", "simple-git/promise", "dugite", "@npmcli/git", "gitly", "git-client"})
"""Packages of which every function starts git."""
STARTER_NAMES: Final = re.compile(
    r"exec|spawn|run|shell|command|cmd|process|launch|git|^eval$|^Function$", re.IGNORECASE
)
"""A function or method of such a name counts as a starter when what it is given names git."""
GIT_WORD: Final = re.compile(
    r"""(?:^|[\s;&|(`$"'=/\\])git(?:\.exe|\.cmd)?(?:$|[\s"';&|)])|/git-core/git-""", re.IGNORECASE
)
GIT_FILE: Final = re.compile(r"(?:^|[/\\])git(?:\.exe|\.cmd)?$", re.IGNORECASE)
GIT_LINE: Final = re.compile(r"git\s+(?:-|(\S+))")
QUIET: Final = re.compile(
    r"error|fail|warn|info|debug|log|print|say|tell|throw|assert|describe|includes|startsWith|endsWith|indexOf|has|test"
    r"|equals|match|replace|split|push|add|existsSync",
    re.IGNORECASE,
)
"""A function or method of such a name is given words to compare or to show, and starts nothing with them."""
PASSING_ON: Final = frozenset(
    {"sh", "bash", "zsh", "dash", "ash", "fish", "cmd", "cmd.exe", "powershell", "pwsh", "env", "nice", "ionice",
     "nohup", "sudo", "doas", "timeout", "time", "xargs", "setsid", "stdbuf", "command", "busybox", "npx", "script",
     "node", "deno", "bun", "tsx", "ts-node", "python", "python3", "perl", "ruby", "php", "awk", "make", "find", "ssh",
     "parallel", "watch", "flock", "su", "runuser", "chroot", "unshare", "docker", "podman"}
)  # fmt: skip
"""Programs that start the program that their arguments name."""
OWN_PROGRAM: Final = frozenset({"process.execPath", "process.argv0", "process.argv[0]"})
"""How a program names the node that runs it."""
GIT_COMMANDS: Final = frozenset(
    {"rev-parse", "worktree", "status", "rev-list", "symbolic-ref", "for-each-ref", "show-ref", "ls-files", "ls-tree",
     "ls-remote", "cat-file", "merge-base", "diff-index", "diff-files", "diff-tree", "update-ref", "checkout", "stash",
     "cherry-pick", "rebase", "check-ignore", "update-index", "write-tree", "read-tree", "commit-tree", "describe"}
)  # fmt: skip
"""First arguments by which a program of unknown name is taken for git."""
MORE_COMMANDS: Final = frozenset(
    {"diff", "log", "show", "branch", "config", "fetch", "pull", "push", "clone", "commit", "add", "reset", "clean",
     "init", "merge", "tag", "remote", "switch", "restore", "blame", "grep", "bisect", "gc", "apply", "am", "notes"}
)  # fmt: skip
"""Words that name a command of git only behind `git`."""
ELSEWHERE: Final = frozenset(
    {("child_process", "fork"), ("worker_threads", "Worker"), ("cluster", "fork"), ("", "Worker")}
)
_QUOTING: Final = re.compile(r"['\"\\]")
"""What a shell takes out of a word."""
_LEADING: Final = re.compile(r"-C|-c|--git-dir|--work-tree|--no-pager")

What = Literal["git", "maybe", "unknown"]


@dataclass(frozen=True, slots=True)
class Start:
    """A call that starts git, that is given the word git and may start it (`maybe`), or that starts some program.

    `command` is the command line as far as it can be read: the same call has the same one wherever it stands.
    """

    what: What
    command: str
    path: str
    node: Node


def start_of(program: Program, path: str, call: Node) -> Start | None:
    """The process that a call or `new` starts, when that is git or cannot be told; None for every other call."""
    callee = bare(call.child_by_field_name("function") or call.child_by_field_name("constructor"))
    if callee is None or callee.type in ("import", "super"):
        return None
    thing = program.thing(path, callee)
    name = _called_name(callee)
    if isinstance(thing, External) and thing.package in GIT_PACKAGES:
        return Start("git", f"{thing.package} {thing.name or name}".replace("()", ""), path, call)
    if isinstance(thing, External) and thing.package == "isomorphic-git":
        return None  # works in this process
    is_starter = _is_starter(thing)
    given = call.child_by_field_name("arguments")
    if not is_starter and not STARTER_NAMES.search(name):
        return _handed_git(program, path, call, name)
    words = _words(program, path, given)
    if name == "Function" and given is not None:  # its body comes last
        words = [frozenset(text for one in parts(given) for text in program.texts(path, one))]
    if words is None:
        return None
    first = parts(given)[0] if given is not None and parts(given) else call
    if said(first) in OWN_PROGRAM:
        words[0] = frozenset({"node"})
    if (line := _git_line(words)) is not None:
        return Start("git", line, path, call)
    if is_starter and not _readable(words[0]):
        what: What = "maybe" if _is_constant(program, path, first) else "unknown"
        return Start(what, " ".join(said(first).split())[:80], path, call)
    return _handed_git(program, path, call, name)


def _handed_git(program: Program, path: str, call: Node, name: str) -> Start | None:
    """A call of anything that is given the word git, alone or in a list or object: whether it starts it is not told."""
    given = call.child_by_field_name("arguments")
    if given is None:
        return None
    shown = " ".join(said(call).split())[:80]
    if given.type == "template_string":  # sh`git status`
        texts = program.texts(path, given)
        return Start("maybe", shown, path, call) if any(GIT_LINE.match(text) for text in texts) else None
    if QUIET.search(name):
        return None
    for one in parts(given):
        texts = program.texts(path, one)
        is_line = call.type == "call_expression" and any(_is_line(text) for text in texts)
        if is_line or any(GIT_FILE.search(text) for text in (*texts, *_held(program, path, one))):
            return Start("maybe", shown, path, call)
    return None


def _is_line(text: str) -> bool:
    found = GIT_LINE.match(text)
    return found is not None and (found[1] is None or found[1] in GIT_COMMANDS | MORE_COMMANDS)


def _held(program: Program, path: str, node: Node) -> Iterable[str]:
    """The texts in a list or an object that is written on the spot."""
    held = bare(node)
    if held is None or held.type not in ("array", "object"):
        return
    for one in parts(held):
        value = one.child_by_field_name("value") if one.type == "pair" else one
        yield from program.texts(path, value)
        if value is not None and (inner := bare(value)) is not None and inner.type == "array":
            yield from (text for item in program.items(path, inner) or () for text in item)


def set_to_git(program: Program, path: str, node: Node) -> Start | None:
    """An assignment or a field that holds the word git: what is done with it is not told."""
    value = node.child_by_field_name("right") or node.child_by_field_name("value")
    if value is None or not any(GIT_FILE.search(text) for text in program.texts(path, value)):
        return None
    return Start("maybe", " ".join(said(node).split())[:80], path, node)


def _is_constant(program: Program, path: str, node: Node) -> bool:
    """Whether an expression is computed of constants alone: nothing but globals is named in it."""
    held = bare(node)
    if held is None or held.type != "call_expression":
        return False
    names = [one for one in walk(held) if one.type in ("identifier", "this", "shorthand_property_identifier")]
    things = [program.thing(path, one) for one in names]
    return all(isinstance(one, External) and not one.package for one in things) and "process" not in said(held)


def leads_elsewhere(program: Program, path: str, call: Node) -> bool:
    """Whether a call runs another file in a process or thread of its own, which is not followed."""
    callee = call.child_by_field_name("function") or call.child_by_field_name("constructor")
    thing = program.thing(path, callee)
    return isinstance(thing, External) and (thing.package, thing.name) in ELSEWHERE


def _is_starter(thing: Thing) -> bool:
    if not isinstance(thing, External):
        return False
    if thing.package in ALL_START:
        return "()" not in thing.name.removesuffix("()")  # $({...})`...` starts one, too
    name = thing.name.removeprefix("promises.")
    return name in STARTERS.get(thing.package, frozenset())


def _called_name(callee: Node) -> str:
    if callee.type == "call_expression":  # promisify(execFile)(...), $({...})`...`
        inner = callee.child_by_field_name("function")
        return _called_name(inner) if inner is not None else ""
    return said(callee.child_by_field_name("property") or callee) if callee.type != "string" else ""


def _words(program: Program, path: str, given: Node | None) -> list[frozenset[str]] | None:
    """The program and its arguments, each as the texts that it can come to; None when nothing is given."""
    if given is None:
        return None
    if given.type == "template_string":
        return [program.texts(path, given)]
    arguments = parts(given)
    if not arguments:
        return None
    if arguments[0].type == "spread_element":
        return program.items(path, parts(arguments[0])[0]) or [frozenset()]
    first = program.texts(path, arguments[0])
    if not first:
        items = program.items(path, arguments[0])  # Bun.spawn(["git", ...])
        if items:
            return items
    rest = program.items(path, arguments[1]) if len(arguments) > 1 else []
    if len(arguments) > 1 and rest is None:
        rest = _in_options(program, path, arguments[1])
    return [first, *(rest or [])]


def _in_options(program: Program, path: str, node: Node) -> list[frozenset[str]] | None:
    """`new Deno.Command("git", { args: [...] })`; a list that cannot be read is one gap."""
    options = bare(node)
    if options is not None and options.type == "object":
        for one in parts(options):
            if one.type == "pair" and said(one.child_by_field_name("key")) == "args":
                return program.items(path, one.child_by_field_name("value"))
        return None
    return [frozenset()]


def _git_line(words: list[frozenset[str]]) -> str | None:
    """The command line, when one of the programs that the words can come to is git."""
    first, rest = words[0], words[1:]
    for text in sorted(first):
        if GIT_WORD.search(text) or GIT_WORD.search(_QUOTING.sub("", text)):
            return _line(text, rest)
        if _file(text) in PASSING_ON and any(GIT_WORD.search(one) for word in rest for one in word):
            return _line(text, rest)
    if not _readable(first):
        for word in rest:
            known = sorted(word)
            if known and not any(_LEADING.match(text) for text in known):
                return _line("git?", rest) if any(text in GIT_COMMANDS for text in known) else None
    return None


def _readable(texts: Iterable[str]) -> bool:
    """Whether it is known which program a text names: a gap in its arguments does not matter."""
    known = list(texts)
    return bool(known) and all(text.strip() and GAP not in text.split()[0] for text in known)


def _file(text: str) -> str:
    return re.split(r"[/\\]", text)[-1]


def _line(first: str, rest: list[frozenset[str]]) -> str:
    shown = [_file(first) if GIT_FILE.search(first) else first]
    shown += [next(iter(sorted(word)), GAP) for word in rest]
    return " ".join(" ".join(shown).split())
