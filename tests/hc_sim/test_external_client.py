"""Somebody else's client, with nothing but the standard library, gets through the whole of it in both modes."""

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from hc_sim.core import Core
from hc_sim.hub.connection import Hub
from hc_sim.profile import WireProfile
from hc_sim.script.format import Agent, Step
from hc_sim.server import Driver, UnixServer

CLIENT = Path(__file__).with_name("external_client.py")
WAIT_S = 20
AGENT = Agent(
    status="idle",
    step=[
        Step(on_prompt=True, turn_add=1, status="working"),
        Step(after_ms=5, status="done", msg="42"),
        Step(on_prompt=True, turn_add=1, status="working", msg="48"),
    ],
)


def visit(mode: str, profile: WireProfile) -> tuple[int | None, str, str, Hub]:
    async def scene() -> tuple[int | None, str, str, Hub]:
        hub = Hub(Core(profile, agents=[AGENT]))
        driver = Driver(hub)
        with tempfile.TemporaryDirectory(prefix="hcx-", dir="/tmp") as folder:
            async with UnixServer(driver, Path(folder) / "hc.sock") as server:
                words = [sys.executable, "-I", "-S", str(CLIENT), str(server.path), mode]
                pipe = asyncio.subprocess.PIPE
                process = await asyncio.create_subprocess_exec(*words, stdout=pipe, stderr=pipe, env={})
                out, err = await asyncio.wait_for(process.communicate(), WAIT_S)
            driver.close()
        assert driver.problems == []
        return process.returncode, out.decode(), err.decode(), hub

    return asyncio.run(scene())


@pytest.mark.parametrize("mode", ["lines", "frames"])
@pytest.mark.parametrize(
    "profile", [WireProfile(), WireProfile(window_bytes=16, attach_facts=False)], ids=["default", "tiny-window"]
)
def test_a_client_of_the_standard_library_alone_sees_it_all(mode: str, profile: WireProfile) -> None:
    code, out, err, hub = visit(mode, profile)
    assert (code, err) == (0, "")
    seen: dict[str, Any] = json.loads(out)
    output = seen.pop("output")
    assert seen == {
        "core_id": "core-1",
        "created": "outsider",
        "started": True,
        "turn": 1,
        "state": "done",
        "closed": "finished",
        "left": [],
    }
    assert output.startswith("> what is 6 times 7?\r\n42\r\n")
    assert ("> and 6 times 8?\r\n48\r\n" in output) is (mode == "frames")
    assert hub.connections == ()


def test_the_client_imports_nothing_but_the_standard_library() -> None:
    lines = CLIENT.read_text().splitlines()
    names = [line.split()[1].partition(".")[0] for line in lines if line.startswith(("import ", "from "))]
    assert set(names) <= sys.stdlib_module_names
