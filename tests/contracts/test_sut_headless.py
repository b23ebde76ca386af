"""The Python supervisor as a system under test, with headless children: a scripted pi, real processes, real time."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from contracts.sut.base import METHODS, RESULTS, SutError, SutSetup
from contracts.sut.python import PythonSut
from hc_sim.programs import install_pi

TOOL_WITH_QUESTION = {"do": "tool", "ask": {"method": "confirm", "title": "Allow bash?"}}


def played(folder: Path, script: dict[str, Any], main: Callable[[PythonSut], Awaitable[None]]) -> None:
    install_pi(folder / "bin", script)

    async def go() -> None:
        sut = PythonSut(SutSetup(env={"PATH": f"{folder / 'bin'}:/usr/bin:/bin", "HOME": str(folder)}))
        try:
            async with asyncio.timeout(20):
                await main(sut)
        finally:
            await sut.close()

    asyncio.run(go())


def spawn(folder: Path, **rest: Any) -> dict[str, Any]:
    return {
        "handle": "alpha",
        "runId": "run00001",
        "agent": "centurion",
        "worktree": True,
        "task": "do the work",
        "cwd": str(folder),
        "sessionFile": str(folder / "s.jsonl"),
        "mode": "rpc",
        "minFreeMb": 0,
        **rest,
    }


def test_a_headless_life_goes_through_the_calls_of_the_protocol(tmp_path: Path) -> None:
    async def main(sut: PythonSut) -> None:
        told: dict[str, dict[str, Any]] = {}

        async def call(method: str, **params: Any) -> dict[str, Any]:
            told[method] = await sut.call(method, {"child": "child-1", **params})
            return told[method]

        told["spawn"] = await sut.call("spawn", spawn(tmp_path))
        assert told["spawn"] == {"mode": "rpc", "name": "", "promptTurn": 0, "child": "child-1"}
        assert (await call("wait"))["node"] == "settled"
        assert (await call("steer", text="more"))["disposition"] == "started"
        assert (await call("wait"))["lastTurn"] == 2
        assert (await call("prompt", text="again"))["started"] is True
        await call("wait")
        assert (await call("follow_up", text="then"))["promptTurn"] == 3
        await call("wait")
        assert await call("clear_queue") == {"steering": [], "followUp": []}
        assert await call("dialogs") == {"open": []}
        assert await call("answer") == {"answered": False}
        assert await call("abort") == {"status": "interrupted"}
        assert await call("capabilities") == {"promptDisposition": True, "events": False}
        assert (await call("status"))["state"] == "running"
        assert (await call("collect"))["text"] == "Hello from fake."
        assert (await call("retire"))["ended"] is True
        assert (await call("status"))["exitCode"] == 143
        for method, result in told.items():
            assert set(result) <= RESULTS[method]

    played(tmp_path, {}, main)


def test_a_question_is_shown_and_answered(tmp_path: Path) -> None:
    async def main(sut: PythonSut) -> None:
        await sut.call("spawn", spawn(tmp_path, onBlocked="forward"))
        blocked = await sut.call("wait", {"child": "child-1", "timeoutMs": 400})
        assert (blocked["reason"], blocked["lastStatus"]) == ("timeout", "blocked")
        ((shown,),) = (await sut.call("dialogs", {"child": "child-1"})).values()
        assert (shown["method"], shown["title"]) == ("confirm", "Allow bash?")
        answered = await sut.call("answer", {"child": "child-1", "dialog": shown["id"], "confirmed": True})
        assert answered == {"answered": True}
        assert (await sut.call("wait", {"child": "child-1"}))["settled"] is True

    played(tmp_path, {"reply": [TOOL_WITH_QUESTION]}, main)


@pytest.mark.parametrize("policy", ["auto-approve", "notify"])
def test_the_other_policies_let_the_run_go_on_by_themselves(tmp_path: Path, policy: str) -> None:
    async def main(sut: PythonSut) -> None:
        await sut.call("spawn", spawn(tmp_path, onBlocked=policy))
        assert (await sut.call("wait", {"child": "child-1"}))["settled"] is True

    played(tmp_path, {"reply": [TOOL_WITH_QUESTION]}, main)


def test_a_queued_steer_is_taken_back_by_an_abort(tmp_path: Path) -> None:
    async def main(sut: PythonSut) -> None:
        await sut.call("spawn", spawn(tmp_path))
        steered = await sut.call("steer", {"child": "child-1", "text": "S"})
        assert (steered["started"], steered["disposition"]) == (False, "queued")
        assert (await sut.call("abort", {"child": "child-1"}))["cleared"] == ["S"]
        waited = await sut.call("wait", {"child": "child-1"})
        assert (waited["settled"], waited["aborted"]) == (True, True)

    played(tmp_path, {"reply": [{"do": "hang"}]}, main)


@pytest.mark.parametrize(
    ("script", "params", "code"),
    [
        ({"model": False}, {}, "call-failed"),
        ({}, {"minFreeMb": 1_000_000_000}, "memory-gate"),
        ({}, {"cwd": "/no/such/folder"}, "bad-request"),
        ({}, {"env": {"PATH": "/nowhere"}}, "program-missing"),
    ],
)
def test_a_start_that_fails_is_an_error_of_the_protocol(
    tmp_path: Path, script: dict[str, Any], params: dict[str, Any], code: str
) -> None:
    async def main(sut: PythonSut) -> None:
        with pytest.raises(SutError) as caught:
            await sut.call("spawn", spawn(tmp_path, **params))
        assert caught.value.error["code"] == code

    played(tmp_path, script, main)


@pytest.mark.parametrize("method", ["prompt", "follow_up", "clear_queue", "dialogs", "answer"])
def test_a_child_in_process_takes_no_call_of_a_headless_one(tmp_path: Path, method: str) -> None:
    async def main(sut: PythonSut) -> None:
        await sut.call("spawn", spawn(tmp_path, mode="inprocess", worktree=False))
        params = {"child": "child-1"} | ({"text": "x"} if "text" in METHODS[method] else {})
        with pytest.raises(SutError) as caught:
            await sut.call(method, params)
        assert caught.value.error["code"] == "bad-request"

    played(tmp_path, {}, main)
