import os
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

import hc_sim.playing.fake
import hc_sim.pytest_plugin
from hc_sim.playing.fake import FakeCore

ROOT = Path(__file__).parents[2]
ALONE = ("-p", "no:hc_sim", "-p", "no:cacheprovider", "-p", "no:randomly")
"""The plugin is registered by hand, once, whether or not this project is installed where these tests run."""
START = """
    import subprocess
    def start(env, name="alpha"):
        subprocess.run(["hc", "run", "--bg", "--name", name, "--", "pi", "task"], env=env, check=True, timeout=20)
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> "Run":
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return Run(pytester)


class Run:
    """Runs tests of a file with the plugin, as somebody would who has installed it."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester

    def __call__(self, source: str, *args: str) -> pytest.RunResult:
        lines = [line.removeprefix("    ") for line in (START + source).splitlines()]
        (self.pytester.path / "test_it.py").write_text("\n".join(lines) + "\n")
        return self.pytester.runpytest_inprocess(*ALONE, "--strict-markers", *args, plugins=[hc_sim.pytest_plugin])


def indented(doc: str | None) -> str:
    """The example in a docstring: its indented lines, from the first to the last."""
    lines = [line for line in (doc or "").splitlines() if line.startswith("    ") or not line]
    return "\n".join(lines)


def test_the_example_of_the_plugin_runs(run: Run) -> None:
    run(indented(hc_sim.pytest_plugin.__doc__)).assert_outcomes(passed=2)


def test_the_example_of_the_readme_runs(run: Run) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    example = readme.partition("```py\n")[2].partition("```")[0]
    run(textwrap.indent(example, "    ")).assert_outcomes(passed=1)


def test_the_example_of_the_fake_in_process_runs() -> None:
    core = FakeCore()
    exec(textwrap.dedent(indented(hc_sim.playing.fake.__doc__)), {"FakeCore": lambda: core})  # noqa: S102 - our own text
    assert (core.agent("alpha").status, core.agent("alpha").turn, core.now()) == ("done", 1, 60_000)


def test_a_program_under_test_meets_a_core_of_its_own(run: Run) -> None:
    run(
        """
    def test_it(hc_core, hc_env, hc_trace):
        start(hc_env)
        hc_core.agent("alpha").working()
        assert hc_core.agent("alpha").turn == 1
        assert [event.name for event in hc_trace.of("run")] == ["you", "alpha"]
        assert hc_trace.of("call", "terminal.run")[0].params["argv"] == ["pi", "task"]
        assert hc_core.terminal("alpha").parent == hc_env["HC_TERMINAL_ID"]
    """
    ).assert_outcomes(passed=1)


def test_the_environment_has_all_that_leads_to_the_core(run: Run) -> None:
    run(
        """
    import os, socket
    def test_it(hc_env, hc_core):
        assert os.access(hc_env["HC_BIN"], os.X_OK)
        assert hc_env["PATH"].split(":")[0] == os.path.dirname(hc_env["HC_BIN"])
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(hc_env["HC_TERMINAL_SOCKET"])
        assert "HOME" in hc_env or "HOME" not in os.environ
    """
    ).assert_outcomes(passed=1)


def test_the_marker_names_a_script_file_beside_the_test(run: Run) -> None:
    (run.pytester.path / "agents.toml").write_text('[[agent]]\nstatus = "blocked"\n')
    run(
        """
    import pytest
    @pytest.mark.hc_script("agents.toml")
    def test_it(hc_core, hc_env):
        start(hc_env)
        assert hc_core.agent("alpha").status == "blocked"
    """
    ).assert_outcomes(passed=1)


def test_the_marker_takes_agents_faults_profile_and_variables(run: Run) -> None:
    run(
        """
    import pytest
    from hc_sim import Agent, Fault, WireProfile
    ENV = {"A": "1", "B": "1"}
    pytestmark = pytest.mark.hc_script(Agent(status="done"), profile=WireProfile(first_turn=3), env=ENV)
    @pytest.mark.hc_script(Fault(method="terminal.list", close="instead"), env={"A": "2"})
    def test_it(hc_core, hc_env, hc_trace):
        start(hc_env)
        agent = hc_core.agent("alpha")
        assert (agent.status, agent.turn) == ("done", 3)
        env = hc_trace.of("run", terminal="alpha")[0].env
        assert (env["A"], env["B"]) == ("2", "1")
        assert subprocess.run(["hc", "ls"], env=hc_env, capture_output=True).returncode != 0
    """
    ).assert_outcomes(passed=1)


def test_an_agent_of_the_test_itself_is_asked_before_one_of_its_module(run: Run) -> None:
    run(
        """
    import pytest
    from hc_sim import Agent
    pytestmark = pytest.mark.hc_script(Agent(status="done"))
    @pytest.mark.hc_script(Agent(status="idle"))
    def test_it(hc_core, hc_env):
        start(hc_env)
        assert hc_core.agent("alpha").status == "idle"
    """
    ).assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ('"bad.toml"', "*bad.toml:2: *turns*did you mean 'turn'*"),
        ('"none.toml"', "*none.toml*"),
        ("scrpt=1", "*hc_script: there is no argument scrpt*"),
        ("3", "*hc_script: *"),
        ("Agent(step=[Step(status='done')])", "*hc_script: *trigger*"),
        ("Fault(before_hex='zz')", "*hc_script: fault[[]0[]].before_hex: is not hexadecimal*"),
    ],
)
def test_a_mistake_in_a_script_is_named_where_the_test_is_set_up(run: Run, mark: str, said: str) -> None:
    (run.pytester.path / "bad.toml").write_text("[[agent]]\nturns = 1\n")
    result = run(
        f"""
    import pytest
    from hc_sim import Agent, Fault, Step
    @pytest.mark.hc_script({mark})
    def test_it(hc_core):
        pass
    """
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([said])


def test_under_a_failure_stands_a_picture_of_what_happened(run: Run) -> None:
    result = run(
        """
    def test_it(hc_core, hc_env):
        start(hc_env)
        hc_core.agent("alpha").blocked("question")
        assert hc_core.agent("alpha").status == "done"
    """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*- what happened in hc_core -*", "*ms | t1 you*| t2 alpha*| calls*", "*run alpha*", "*turn 0 blocked*"]
    )
    result.stdout.no_fnmatch_line("*jsonrpc*")


def test_a_failure_in_another_fixture_shows_the_picture_as_well(run: Run) -> None:
    result = run(
        """
    import pytest
    @pytest.fixture
    def program(hc_core, hc_env):
        start(hc_env)
        raise RuntimeError("no")
    def test_it(program):
        pass
    """
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*- what happened in hc_core -*", "*run alpha*"])


def test_a_test_that_passes_or_knows_no_core_shows_nothing(run: Run) -> None:
    result = run(
        """
    def test_good(hc_core):
        pass
    def test_bad():
        assert 0
    """
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.no_fnmatch_line("*what happened*")


def test_nothing_is_left_when_a_test_ends_however_it_ends(run: Run) -> None:
    result = run(
        """
    import os, pathlib, threading
    FOLDERS = []
    def test_good(hc_core):
        FOLDERS.append(hc_core.folder)
    def test_bad(hc_core):
        FOLDERS.append(hc_core.folder)
        assert 0
    def test_after():
        assert len(set(FOLDERS)) == 2
        assert not any(folder.exists() for folder in FOLDERS)
        assert "hc-sim core" not in [thread.name for thread in threading.enumerate()]
    """
    )
    result.assert_outcomes(passed=2, failed=1)


def test_the_marker_and_the_fixtures_explain_themselves(run: Run) -> None:
    result = run("", "--markers")
    result.stdout.fnmatch_lines(["@pytest.mark.hc_script(*parts, profile=None, env=None, programs=False): *"])
    result = run("", "--fixtures")
    for name in ("hc_core", "hc_env", "hc_trace"):
        result.stdout.fnmatch_lines([f"{name}*"])


def test_a_marker_can_ask_for_programs_that_are_really_started(run: Run) -> None:
    result = run(
        """
    import pytest

    @pytest.mark.hc_script(programs=True)
    def test_it(hc_core, hc_env):
        done = subprocess.run(["hc", "run", "--name", "alpha", "--", "sh", "-c", "exit 3"], env=hc_env)
        assert hc_core.terminal("alpha").exit_code == 3
    """
    )
    result.assert_outcomes(passed=1)


def test_a_problem_of_the_core_is_a_warning(run: Run) -> None:
    result = run(
        """
    def test_it(hc_core, hc_env):
        subprocess.run(["hc", "run", "--bg", "--name", "alpha", "--", "pi", "--session", "/nowhere/s"], env=hc_env)
        hc_core.agent("alpha").writes("x")
    """,
        "-W",
        "always::pytest.PytestWarning",
    )
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines(["*PytestWarning: hc_core: session file /nowhere/s: *"])


# --------------------------------------------------- in processes of their own


def install_entry_point(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the entry point of pyproject.toml visible, as an installation does."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    site = pytester.mkdir("site")
    info = site / "hc_probe-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hc-probe\nVersion: 1.0\n")
    points = project["entry-points"]["pytest11"].items()
    (info / "entry_points.txt").write_text("[pytest11]\n" + "".join(f"{name} = {value}\n" for name, value in points))
    monkeypatch.setenv("PYTHONPATH", f"{site}{os.pathsep}{ROOT}")
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", raising=False)


def test_an_installation_is_enough_and_warnings_may_be_errors(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_entry_point(pytester, monkeypatch)
    pytester.makepyfile("def test_it(hc_core, hc_env, hc_trace):\n    assert hc_core.agent('you').status == 'none'\n")
    pytester.makeini("[pytest]\nfilterwarnings = error\n")
    pytester.runpytest_subprocess("--strict-markers", "-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_under_xdist_every_worker_has_cores_of_its_own(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xdist")
    install_entry_point(pytester, monkeypatch)
    pytester.makepyfile(
        """
        import pathlib, subprocess, pytest
        SEEN = pathlib.Path(__file__).with_name("seen")
        @pytest.mark.parametrize("number", range(8))
        def test_it(number, hc_core, hc_env):
            with SEEN.open("a") as file:
                file.write(f"{hc_core.socket}\\n")
            subprocess.run(["hc", "run", "--bg", "--name", "alpha", "--", "pi"], env=hc_env, check=True, timeout=20)
            assert [one.name for one in hc_core.terminals()] == ["you", "alpha"]
            assert number != 5
        """
    )
    result = pytester.runpytest_subprocess("-n", "2", "-p", "no:cacheprovider", "--basetemp", str(pytester.path / "t"))
    result.assert_outcomes(passed=7, failed=1)
    result.stdout.fnmatch_lines(["*- what happened in hc_core -*", "*run alpha*"])
    sockets = (pytester.path / "seen").read_text().split()
    assert len(set(sockets)) == 8
    assert max(len(path) for path in sockets) < 107
    assert not any(Path(path).exists() for path in sockets)


def test_the_plugin_costs_nothing_where_no_test_asks_for_a_core() -> None:
    code = "import sys, hc_sim.pytest_plugin; print([name for name in sys.modules if name.startswith('hc_sim.')])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "['hc_sim.pytest_plugin']\n"


def test_every_public_name_can_be_imported() -> None:
    assert all(getattr(hc_sim, name) for name in hc_sim.__all__)
    with pytest.raises(AttributeError, match="no_such_name"):
        getattr(hc_sim, "no_such_name")  # noqa: B009 - a type checker knows that it is not there
