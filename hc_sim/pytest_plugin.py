"""The pytest plugin: `hc_core`, `hc_env` and `hc_trace` give a test a fake core of its own on a real socket.

    import subprocess

    import pytest
    from hc_sim import Agent, Fault, Step

    def test_it_waits_for_the_end_of_the_turn(hc_core, hc_env, hc_trace):
        subprocess.run(["hc", "run", "--bg", "--name", "alpha", "--", "pi", "fix it"], env=hc_env, check=True)
        hc_core.agent("alpha").working()
        waiting = subprocess.Popen(["hc", "wait", "alpha"], env=hc_env)
        hc_core.wait_for("call", "terminal.wait")
        hc_core.agent("alpha").done("fixed")
        assert waiting.wait(timeout=10) == 0
        assert hc_trace.count("terminal.wait") == 1 and hc_trace.none("terminal.kill")

    @pytest.mark.hc_script(Agent(status="idle", step=[Step(on_call="terminal.send", turn_add=1, status="working")]))
    @pytest.mark.hc_script(Fault(method="terminal.send", close="instead"))
    def test_a_lost_reply_is_no_success_although_the_text_arrived(hc_core, hc_env):
        subprocess.run(["hc", "run", "--bg", "--name", "alpha", "--", "pi"], env=hc_env, check=True)
        assert subprocess.run(["hc", "send", "alpha", "go on"], env=hc_env).returncode != 0
        assert hc_core.agent("alpha").texts == ["go on"]

The plugin is found through its entry point, so that no conftest is needed. Every core has a private folder with a short
path, and nothing is shared between tests or xdist workers. What is imported here is imported by every pytest run of
everyone who has this installed, so the simulator itself is imported only when a test asks for it.
"""

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from hc_sim.playing.served import ServedCore
    from hc_sim.trace import Trace

MARKER = (
    "hc_script(*parts, profile=None, env=None, programs=False): what the agents of hc_core do and what goes wrong. "
    "Each part is the path of a script file (relative to the test's own file), an Agent, a Fault, a LinkFault, a "
    "FaultPlan or a Script; "
    "`profile` is a WireProfile, `env` is laid over the environment of the core's terminals; with `programs`, what no "
    "agent plays is really started."
)
_MISTAKES = (OSError, TypeError, ValueError)
"""What a script with a mistake in it raises, in a file (`FileError`) or in the test itself."""
_CORE = pytest.StashKey["ServedCore"]()


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", MARKER)


@pytest.fixture
def hc_core(request: pytest.FixtureRequest) -> Iterator["ServedCore"]:
    """A running fake core, to be scripted (`hc_script`, `core.script`) and played by hand (`core.agent("alpha")`)."""
    from hc_sim.playing.served import ServedCore

    try:
        core = ServedCore(**_wanted(request.node))
    except _MISTAKES as error:
        pytest.fail(f"hc_script: {error}", pytrace=False)
    with core:
        request.node.stash[_CORE] = core
        yield core
    if core.problems:
        request.node.warn(pytest.PytestWarning("hc_core: " + "; ".join(core.problems)))


@pytest.fixture
def hc_env(hc_core: "ServedCore") -> dict[str, str]:
    """The whole environment for a program under test: HC_BIN, HC_TERMINAL_*, PATH lead to hc_core."""
    return hc_core.env


@pytest.fixture
def hc_trace(hc_core: "ServedCore") -> "Trace":
    """What happened in hc_core so far; it goes on growing while the test runs."""
    return hc_core.trace


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put the picture of what happened in the core under a test that failed."""
    report = yield
    core = item.stash.get(_CORE, None)
    if report.failed and core is not None:
        report.sections.append(("what happened in hc_core", core.picture()))
        if core.problems:
            report.sections.append(("problems of hc_core", "\n".join(core.problems)))
    return report


def _wanted(node: pytest.Item) -> dict[str, Any]:
    """What the markers of a test say; nearer ones are asked first, and their profile and variables win."""
    from hc_sim.playing.stage import collect

    parts: list[Any] = []
    profile, env, programs = None, dict[str, str](), False
    for mark in node.iter_markers("hc_script"):
        unknown = set(mark.kwargs) - {"profile", "env", "programs"}
        if unknown:
            raise TypeError(f"there is no argument {', '.join(sorted(unknown))}; it is {MARKER}")
        parts += [node.path.parent / part if isinstance(part, (str, Path)) else part for part in mark.args]
        profile = profile or mark.kwargs.get("profile")
        env = {**mark.kwargs.get("env", {}), **env}
        programs = programs or bool(mark.kwargs.get("programs"))
    agents, faults = collect(*parts)
    return {"agents": agents, "faults": faults, "profile": profile, "env": env, "programs": programs}
