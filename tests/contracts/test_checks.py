"""The checks: each holds for the supervisor as it is, and each sees a violation that was planted for it."""

import asyncio
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contracts.checks import CHECKS, Check, Subject, by_id, run_check
from contracts.checks.audit import PROCESS_EVENTS, WatchedFailedError, touched
from contracts.checks.base import PACKAGE, SkippedError, check, found
from contracts.checks.truth import table
from contracts.clauses import load_clauses
from contracts.hosts.witness import real_git
from contracts.records import Finding, RunVerdict
from legion_terminal import cards, client, host, routing
from legion_terminal.terminal import TerminalSupervisor


@pytest.fixture
def broken_copy(tmp_path: Path) -> Callable[[str, str, str], Subject]:
    """Copy the package, and replace one text in one of its modules."""

    def broken(module: str, old: str, new: str) -> Subject:
        package = tmp_path / "legion_terminal"
        shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
        path = package / module
        text = path.read_text()
        assert old in text, f"{module} has no {old!r} any more; plant the violation elsewhere"
        path.write_text(text.replace(old, new, 1))
        return Subject(package)

    return broken


def failures(verdict: RunVerdict) -> list[Finding]:
    assert verdict.errored is None, verdict.errored
    return [finding for finding in verdict.findings if not finding.ok]


@pytest.mark.parametrize("name", CHECKS)
def test_a_check_holds_for_the_supervisor_as_it_is(name: str) -> None:
    verdict = run_check(CHECKS[name])

    assert verdict.errored is None
    assert [finding for finding in verdict.findings if not finding.ok] == []
    assert verdict.verdict == "pass"
    assert verdict.host == "check"


@pytest.mark.parametrize("name", CHECKS)
def test_a_check_belongs_to_a_clause_that_there_is(name: str) -> None:
    clauses = load_clauses()

    assert CHECKS[name].clause in clauses
    assert CHECKS[name].why


def test_every_invariant_has_a_check() -> None:
    proved = {one.clause for one in CHECKS.values()}

    assert {"I1", "I2", "I3", "I4", "I5", "I6", "D1", "D2", "D3", "D13", "A1", "A2", "A3"} <= proved


# ------------------------------------------------------- arbitration and routing


def _arbitrates(*, outside: Any = None, inside: Any = None) -> Callable[..., Any]:
    honest = routing.arbitrate

    def planted(agent: str, worktree: bool, env: dict[str, str]) -> Any:
        changed = inside if host.terminal_host_available(env) else outside
        return changed(agent, worktree) or honest(agent, worktree, env) if changed else honest(agent, worktree, env)

    return planted


@pytest.mark.parametrize(
    ("name", "planted"),
    [
        ("i1-truth-table", _arbitrates(outside=lambda agent, worktree: "terminal" if agent == "centurion" else None)),
        ("i1-truth-table", _arbitrates(outside=lambda agent, worktree: "rpc" if agent == "scout" else None)),
        ("d1-scope", _arbitrates(inside=lambda agent, worktree: "terminal" if worktree else None)),
        ("d1-scope", _arbitrates(inside=lambda agent, worktree: "terminal" if agent == "centurion" else None)),
        (
            "d1-scope",
            _arbitrates(inside=lambda agent, worktree: "terminal" if agent == "Centurion" and worktree else None),
        ),
        ("i5-defaults", _arbitrates(inside=lambda agent, worktree: None if worktree else "rpc")),
        ("a2-unreachable", _arbitrates(inside=lambda agent, worktree: "terminal" if agent == "vexillatio" else None)),
    ],
)
def test_another_truth_is_seen(name: str, planted: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing, "arbitrate", planted)

    assert failures(run_check(CHECKS[name]))


@pytest.mark.parametrize(
    "planted",
    [
        lambda env: bool(env.get("HC_TERMINAL_SOCKET")),
        lambda env: bool(env.get("HC_TERMINAL_ID")),
        lambda env: "HC_TERMINAL_SOCKET" in env and "HC_TERMINAL_ID" in env,
        lambda env: any(name.startswith("HC_") for name in env),
        lambda env: False,
    ],
)
def test_another_detection_is_seen(planted: Callable[..., bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "terminal_host_available", planted)

    assert failures(run_check(CHECKS["d2-markers"]))


def test_a_worktree_for_another_role_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing, "check_spawn", lambda mode, request: None)

    seen = failures(run_check(CHECKS["i6-one-role"]))

    routed = [finding for finding in seen if not finding.where.startswith("guard")]
    assert {finding.got for finding in routed} == {"rpc"}
    assert len(routed) == len([row for row in table() if row.worktree and row.agent != "centurion"])
    assert len(seen) - len(routed) == 7, "two other roles in three modes, and the centurion in process"


def test_the_table_names_each_combination_once() -> None:
    rows = [(row.agent, row.worktree, row.markers) for row in table()]

    assert len(set(rows)) == len(rows) == 7 * 10 * 2


# ------------------------------------------------------------------------- modes


def test_a_match_that_misses_a_mode_is_seen(broken_copy: Callable[..., Subject]) -> None:
    subject = broken_copy("routing.py", 'case "rpc" | "terminal":', 'case "rpc":')

    (seen,) = failures(run_check(CHECKS["i4-every-map"], subject))
    assert seen.where.startswith("routing.py:")
    assert seen.got == ["inprocess", "rpc"]


def test_a_table_that_misses_a_mode_is_seen(broken_copy: Callable[..., Subject]) -> None:
    subject = broken_copy("routing.py", "WORKTREE_ROLE = ", 'LABELS = {"inprocess": "a", "rpc": "b"}\nWORKTREE_ROLE = ')

    assert [finding.got for finding in failures(run_check(CHECKS["i4-every-map"], subject))] == [["inprocess", "rpc"]]


def test_a_mode_without_a_label_of_its_own_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing, "mode_label", lambda mode: "headless")

    assert [finding.where for finding in failures(run_check(CHECKS["i4-every-map"]))] == ["labels"]


def test_a_mode_that_the_type_checker_does_not_know_is_seen(broken_copy: Callable[..., Subject]) -> None:
    subject = broken_copy(
        "types.py", 'SpawnMode = Literal["inprocess", "rpc", "terminal"]', 'SpawnMode = Literal["inprocess", "rpc"]'
    )

    assert failures(run_check(CHECKS["i4-type-checker"], subject))


def test_without_mypy_that_part_is_skipped_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    verdict = run_check(CHECKS["i4-type-checker"])

    assert verdict.verdict == "skipped"
    assert "legion-contracts[gate]" in verdict.why


# ------------------------------------------------------------------- quiet ways


@pytest.mark.parametrize(
    ("statement", "event"),
    [
        ("import subprocess; subprocess.run(['/bin/true'])", "subprocess.Popen"),
        ("import os; os.listdir('/')", "os.listdir"),
        ("import socket; socket.socket(socket.AF_UNIX).close()", "socket.__new__"),
        ("open('/dev/null').close()", "open"),
    ],
)
def test_detection_that_touches_the_machine_is_seen(
    statement: str, event: str, broken_copy: Callable[..., Subject]
) -> None:
    subject = broken_copy(
        "host.py", "    return bool(env.get(SOCKET_VAR))", f"    {statement}\n    return bool(env.get(SOCKET_VAR))"
    )

    (seen,) = failures(run_check(CHECKS["i1-touches-nothing"], subject))
    assert any(one.startswith(event) for one in seen.got)


def test_detection_that_only_looks_is_seen(broken_copy: Callable[..., Subject]) -> None:
    subject = broken_copy(
        "host.py",
        "    return bool(env.get(SOCKET_VAR))",
        "    Path(env.get(SOCKET_VAR, '/')).exists()\n    return bool(env.get(SOCKET_VAR))",
    )

    (seen,) = failures(run_check(CHECKS["d2-touches-nothing"], subject))
    assert all(one.startswith("os.stat") for one in seen.got)


def test_a_comparison_with_a_default_for_other_modes_is_seen(broken_copy: Callable[..., Subject]) -> None:
    subject = broken_copy(
        "routing.py",
        "def mode_label(",
        'def shown(mode: SpawnMode) -> str:\n    return "t" if mode in ("terminal",) else "x"\n\n\ndef mode_label(',
    )

    (seen,) = failures(run_check(CHECKS["i4-every-map"], subject))
    assert seen.got == ["terminal"]


@pytest.mark.parametrize(
    "statement",
    [
        "import subprocess; subprocess.run('true', shell=True)",
        "import os; os.system('true')",
        "import asyncio; asyncio.create_subprocess_shell",
        "import os; os.popen",
    ],
)
def test_a_shell_in_the_source_is_seen(statement: str, broken_copy: Callable[..., Subject]) -> None:
    subject = broken_copy(
        "retiring.py", "\nclass Retirement", f"\ndef _unused():\n    {statement}\n\n\nclass Retirement"
    )

    assert [finding.where for finding in failures(run_check(CHECKS["d3-no-shell"], subject))] == ["source"]


def test_a_shell_is_not_seen_where_there_is_none(broken_copy: Callable[..., Subject]) -> None:
    subject = broken_copy(
        "retiring.py",
        "\nclass Retirement",
        "\ndef _unused():\n    import subprocess; subprocess.run(['true'], shell=False)\n\n\nclass Retirement",
    )

    assert failures(run_check(CHECKS["d3-no-shell"], subject)) == []


def test_a_bridge_that_starts_something_else_is_seen(broken_copy: Callable[..., Subject]) -> None:
    subject = broken_copy(
        "bridge.py", '_Pipes, self._executable, "connect"', '_Pipes, "/bin/sh", "-c", "exec cat", "connect"'
    )

    assert [finding.where for finding in failures(run_check(CHECKS["d3-no-shell"], subject))] == ["audit"]


def test_a_client_that_lets_another_method_out_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "METHODS", client.METHODS | {"terminal.list"})

    seen = failures(run_check(CHECKS["d3-allowlist"]))

    assert [finding.where for finding in seen] == ["methods", "call 'terminal.list'"]


def test_a_client_that_lacks_a_method_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "METHODS", client.METHODS - {"terminal.rm"})

    assert [finding.where for finding in failures(run_check(CHECKS["d3-allowlist"]))] == ["methods"]


@pytest.mark.parametrize(
    "planted",
    [
        lambda env, **_: "hc",
        lambda env, **_: env.get("HC_BIN") or "/one/hc",
        lambda env, is_executable: next(
            (path for path in ("/me/.local/bin/hc", "/one/hc", "/two/hc") if is_executable(path)),
            env.get("HC_BIN", "hc"),
        ),
    ],
)
def test_another_order_of_executables_is_seen(planted: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "resolve_hc", planted)

    assert failures(run_check(CHECKS["d3-executable"]))


def test_a_memory_gate_is_seen_by_its_words(broken_copy: Callable[..., Subject]) -> None:
    subject = broken_copy("terminal.py", 'ROLE = "centurion"', 'ROLE = "centurion"\nSOURCE = "/proc/meminfo"')

    (seen,) = failures(run_check(CHECKS["a3-no-memory-gate"], subject))
    assert (seen.where, seen.got) == ("source", ["terminal.py: meminfo"])


def test_a_memory_gate_is_seen_by_what_it_reads(broken_copy: Callable[..., Subject]) -> None:
    subject = broken_copy(
        "terminal.py",
        "        self._check_open(request.handle)\n",
        "        self._check_open(request.handle)\n        open('/proc/' + 'mem' + 'info').close()\n",
    )

    (seen,) = failures(run_check(CHECKS["a3-no-memory-gate"], subject))
    assert seen.where == "audit"
    assert "/proc/meminfo" in seen.got[0]


@pytest.mark.parametrize(
    "statement",
    [
        "open('/proc/self/' + 'statm').close()",
        "import os; os.system('fr' + 'ee -m > /dev/null')",
        "import subprocess; subprocess.run(['cat', '/proc/mem' + 'info'], stdout=-3)",
        "import subprocess; subprocess.run(['sh', '-c', 'vm' + 'stat || true'], stdout=-3, stderr=-3)",
        "__import__('sys').audit('import', 'psu' + 'til', None, None, None, None)",
    ],
)
def test_every_way_to_ask_about_memory_is_seen(statement: str, broken_copy: Callable[..., Subject]) -> None:
    subject = broken_copy(
        "terminal.py",
        "        self._check_open(request.handle)\n",
        f"        self._check_open(request.handle)\n        {statement}\n",
    )

    assert [finding.where for finding in failures(run_check(CHECKS["a3-no-memory-gate"], subject))] == ["audit"]


@pytest.mark.parametrize(
    "statement",
    [
        "open('/dev/null').close()",
        "open('/proc/self/' + 'cmdline').close()",
        "import subprocess; subprocess.run(['true', 'free'], timeout=30)",
        "import os; os.system('true # top')",
        "import os; os.listdir('/')",
    ],
)
def test_what_has_nothing_to_do_with_memory_is_no_concern_of_the_memory_check(
    statement: str, broken_copy: Callable[..., Subject]
) -> None:
    subject = broken_copy(
        "terminal.py",
        "        self._check_open(request.handle)\n",
        f"        self._check_open(request.handle)\n        {statement}\n",
    )

    assert failures(run_check(CHECKS["a3-no-memory-gate"], subject)) == []


@pytest.mark.parametrize("planted", [lambda text, source: cards.AgentCard(source=source, fields={"name": "centurion"})])
def test_a_card_with_a_mode_that_loads_is_seen(planted: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "load_card", planted)

    assert len(failures(run_check(CHECKS["d13-cards"]))) == 16


# ------------------------------------------------------------------------- lives


def _spawns_after(act: Callable[[str], None]) -> Callable[..., Any]:
    honest = TerminalSupervisor.spawn

    async def spawn(self: TerminalSupervisor, request: Any) -> Any:
        act(request.cwd)
        return await honest(self, request)

    return spawn


def _git(*args: str) -> Callable[[str], None]:
    return lambda cwd: (subprocess.run(["git", *args], cwd=cwd, check=True, capture_output=True, timeout=30), None)[1]  # noqa: S607


@pytest.mark.parametrize(
    ("act", "part"),
    [
        (lambda cwd: (Path(cwd) / "left.txt").write_text("x") and None, "tree"),
        (_git("branch", "side"), "refs"),
        (_git("worktree", "add", "--detach", "../beside"), "worktrees"),
        (_git("config", "core.editor", "true"), "config"),
        (lambda cwd: (Path(cwd) / ".git" / "legion").write_text("x") and None, "inside"),
    ],
    ids=["tree", "refs", "worktrees", "config", "inside"],
)
def test_a_repository_that_is_touched_is_seen(
    act: Callable[[str], None], part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TerminalSupervisor, "spawn", _spawns_after(act))

    (seen,) = failures(run_check(CHECKS["i2-repository"]))
    assert part in [change.split()[0] for change in seen.got]


def test_a_git_call_at_launch_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TerminalSupervisor, "spawn", _spawns_after(_git("--version")))

    (seen,) = failures(run_check(CHECKS["i3-git-witness"]))
    assert seen.got == 1


def _git_in_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = TerminalSupervisor.spawn

    async def spawn(self: TerminalSupervisor, request: Any) -> Any:
        await asyncio.create_subprocess_exec("git", "--version")
        return await honest(self, request)

    monkeypatch.setattr(TerminalSupervisor, "spawn", spawn)


def test_a_git_call_that_virtual_time_refuses_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    _git_in_the_loop(monkeypatch)

    verdict = run_check(CHECKS["i3-git-witness"])
    assert [(finding.where, finding.got) for finding in failures(verdict)] == [("git processes", 1)]


def test_the_repository_part_is_skipped_when_virtual_time_refused_a_git(monkeypatch: pytest.MonkeyPatch) -> None:
    _git_in_the_loop(monkeypatch)

    verdict = run_check(CHECKS["i2-repository"])
    assert verdict.verdict == "skipped"
    assert "started under virtual time" in verdict.why


def test_a_git_call_by_its_path_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    git = str(real_git())
    monkeypatch.setattr(
        TerminalSupervisor, "spawn", _spawns_after(lambda _: (subprocess.run([git, "--version"], check=True), None)[1])
    )

    (seen,) = failures(run_check(CHECKS["i3-git-witness"]))
    assert seen.got == 1


def test_without_git_the_repository_part_is_skipped_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contracts.checks.lives.real_git", lambda: None)

    assert run_check(CHECKS["i2-repository"]).verdict == "skipped"


def test_a_run_that_follows_the_surrounding_variables_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    import os
    import socket

    def strays(_: str) -> None:
        with socket.socket(socket.AF_UNIX) as visitor:
            visitor.connect(os.environ["HC_SOCKET"])

    def keeps_everything(*_: Any) -> Any:
        from contextlib import nullcontext

        return nullcontext()

    monkeypatch.setattr("contracts.running.one_run.hermetic_process", keeps_everything)
    honest = TerminalSupervisor.spawn

    async def spawn(self: TerminalSupervisor, request: Any) -> Any:
        if "HC_SOCKET" in os.environ:
            strays(request.cwd)
        return await honest(self, request)

    monkeypatch.setattr(TerminalSupervisor, "spawn", spawn)

    assert [finding.where for finding in failures(run_check(CHECKS["a1-hermetic"]))] == ["visits to the other core"]


# ------------------------------------------------------------ the machinery itself


@check("planted", "D2", "a planted check")
def _nothing(_: Subject) -> list[Finding]:
    return []


@check("planted", "D2", "a planted check")
def _breaks(_: Subject) -> list[Finding]:
    raise KeyError("x")


@check("planted", "D2", "a planted check", level="should", also=("D3",))
def _fails(_: Subject) -> list[Finding]:
    return [found("D2", "here", expected=1, got=1), found("D3", "there", expected=1, got=2)]


@check("planted", "D2", "a planted check")
def _skips(_: Subject) -> list[Finding]:
    raise SkippedError("no such tool")


@pytest.mark.parametrize(
    ("one", "verdict"), [(_nothing, "errored"), (_breaks, "errored"), (_fails, "fail"), (_skips, "skipped")]
)
def test_a_check_is_never_green_by_absence(one: Check, verdict: str) -> None:
    assert run_check(one).verdict == verdict


def test_a_verdict_carries_level_and_clauses_of_its_check() -> None:
    verdict = run_check(_fails)

    assert (verdict.level, verdict.clauses, [finding.ok for finding in verdict.findings]) == (
        "should",
        ["D2", "D3"],
        [True, False],
    )


def test_two_checks_with_one_id_are_refused() -> None:
    with pytest.raises(ValueError, match="same id"):
        by_id((_nothing, _fails))


def test_only_what_happens_while_watching_is_noted() -> None:
    code = "open('/dev/null').close()\nwatch()\nimport os\nos.system('true')\nforget()\nopen('/dev/null').close()"

    assert [one.event for one in touched(code, Subject(), kinds=(*PROCESS_EVENTS, "open"))] == ["os.system"]


def test_a_watched_piece_that_breaks_is_no_evidence() -> None:
    with pytest.raises(WatchedFailedError, match="ZeroDivisionError"):
        touched("watch()\n1 / 0", Subject())
