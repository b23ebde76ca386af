"""Subtle breaks of D8 to D12 and A4, each planted into our supervisor: its own scenario turns its own clause red."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from contracts import loading
from contracts.judging.judge import judge
from contracts.loading import load_all
from contracts.running.one_run import run_scenario
from contracts.scenario import Scenario
from legion_terminal import client, retiring, routing, settle, sight, spawning, steering, terminal, transcript
from legion_terminal.errors import SupervisorError
from legion_terminal.session_lines import Lost, Record
from legion_terminal.types import AbortResult, Capabilities

LAYERS = ("settle", "session", "lifecycle", "spawn")
SCENARIOS = {s.id: s for s in load_all([loading.SCENARIOS / layer for layer in LAYERS]).scenarios}

Patch = pytest.MonkeyPatch
Break = Callable[[Patch], None]


def red(scenario: Scenario) -> set[str]:
    result = judge(scenario, run_scenario(scenario, "memory"))
    assert result.errored is None
    return {finding.clause for finding in result.findings if not finding.ok}


# D8: settle


def long_timeout_kills(patch: Patch) -> None:
    original = terminal.TerminalSupervisor.wait_settled

    async def impatient(self: terminal.TerminalSupervisor, child: Any, timeout_ms: float, cancelled: Any = None) -> Any:
        result = await original(self, child, timeout_ms, cancelled)
        if result.reason == "timeout" and timeout_ms > 60_000:
            await self._client.ask("terminal.kill", {"terminal": child.name})
        return result

    patch.setattr(terminal.TerminalSupervisor, "wait_settled", impatient)


def first_turn_is_zero(patch: Patch) -> None:
    original = terminal.TerminalSupervisor._child

    def zero(self: terminal.TerminalSupervisor, *values: Any) -> Any:
        child = original(self, *values)
        child.prompt_turn = 0
        return child

    patch.setattr(terminal.TerminalSupervisor, "_child", zero)


def turn_remembered_after_the_send(patch: Patch) -> None:
    check, change = steering._check_promptable, steering._change
    before: dict[str, int] = {}

    def remember(child: Any, seen: sight.Sight) -> None:
        before[child.id] = child.prompt_turn
        check(child, seen)

    async def late(asked: client.HcClient, method: Any, child: Any, *rest: Any) -> Any:
        if method != "terminal.send":
            return await change(asked, method, child, *rest)
        raised, child.prompt_turn = child.prompt_turn, before[child.id]
        try:
            return await change(asked, method, child, *rest)
        finally:
            child.prompt_turn = raised

    patch.setattr(steering, "_check_promptable", remember)
    patch.setattr(steering, "_change", late)


def turn_stays_after_a_refusal(patch: Patch) -> None:
    async def raised(asked: client.HcClient, child: Any, text: str) -> Any:
        try:
            return await steering.prompt(asked, child, text)
        except SupervisorError:
            child.prompt_turn = child.last.turn
            raise

    patch.setattr(terminal, "prompt", raised)


def steer_does_not_move_a_wait(patch: Patch) -> None:
    patch.setattr(settle.Wait, "prompted", lambda self, prompt_turn: None)


def steer_ends_a_wait(patch: Patch) -> None:
    def called_off(self: settle.Wait, prompt_turn: int) -> None:
        if prompt_turn != self._prompt_turn:
            self.step(settle.Cancelled(), 0)

    patch.setattr(settle.Wait, "prompted", called_off)


# D9: verdict


def believes(words: str) -> Break:
    """A reader to whom this reason for no verdict is none."""

    def plant(patch: Patch) -> None:
        original = transcript._Branch._no_answer

        def credulous(self: transcript._Branch, newest: Record) -> str | None:
            reason = original(self, newest)
            return None if reason is not None and words in reason else reason

        patch.setattr(transcript._Branch, "_no_answer", credulous)

    plant.__name__ = f"believes_{words.replace(' ', '_')}"
    return plant


def taking(name: str, change: Callable[[Any], Any]) -> Break:
    """A reader that takes every entry for something else."""

    def plant(patch: Patch) -> None:
        original = transcript._Branch.take
        patch.setattr(transcript._Branch, "take", lambda self, item: original(self, change(item)))

    plant.__name__ = name
    return plant


def _not_withdrawn(item: Any) -> Any:
    return replace(item, removes=None) if isinstance(item, Record) else item


def _no_prompt(item: Any) -> Any:
    return Lost(maybe_prompt=False) if isinstance(item, Lost) else item


def code_counts(patch: Patch) -> None:
    patch.setattr(transcript, "_prose", lambda text: text.split("\n"))


# D10: steer and abort


def abort_moves_the_turn(patch: Patch) -> None:
    async def moving(asked: client.HcClient, child: Any, newest: Any) -> Any:
        esc = await steering.interrupt(asked, child, newest)
        child.prompt_turn = child.last.turn
        return esc

    patch.setattr(terminal, "interrupt", moving)


def text_is_stripped(patch: Patch) -> None:
    patch.setattr(terminal, "_sendable", lambda text: text.strip())


def router_claims_disposition(patch: Patch) -> None:
    claimed = property(lambda self: Capabilities(prompt_disposition=True))
    patch.setattr(routing.RoutingSupervisor, "capabilities", claimed)


def abort_tells_of_a_queue(patch: Patch) -> None:
    @dataclass(frozen=True)
    class Told(AbortResult):
        cleared_queued: int = 0

    patch.setattr(terminal, "AbortResult", Told)


# D11: retire


def skipping_the_kill(name: str, when: Callable[[sight.Sight], bool]) -> Break:
    def plant(patch: Patch) -> None:
        original = retiring.Retirement._kill

        async def kill(self: retiring.Retirement, seen: sight.Sight) -> None:
            if not when(seen):
                await original(self, seen)

        patch.setattr(retiring.Retirement, "_kill", kill)

    plant.__name__ = name
    return plant


def router_raises_for_a_stranger(patch: Patch) -> None:
    async def retire(self: routing.RoutingSupervisor, child: Any) -> Any:
        return await self.backend_for(child).retire(child)

    patch.setattr(routing.RoutingSupervisor, "retire", retire)


def retire_deletes_the_session(patch: Patch) -> None:
    original = retiring.Retirement.run

    async def thorough(self: retiring.Retirement) -> Any:
        result = await original(self)
        Path(self._child.session_file).unlink(missing_ok=True)  # noqa: ASYNC240
        return result

    patch.setattr(retiring.Retirement, "run", thorough)


# D12: no events


def settle_tells_of_an_event(patch: Patch) -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Told(settle.SettleResult):
        last_event_at: int = 0

    patch.setattr(settle, "SettleResult", Told)


def status_tells_of_a_tool(patch: Patch) -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Told(settle.Observation):
        in_flight_tool: str = "bash"

    patch.setattr(sight, "Observation", Told)


# A4: a name that is taken


def three_tries(patch: Patch) -> None:
    original = spawning.start

    async def stubborn(*values: Any) -> Any:
        try:
            return await original(*values)
        except SupervisorError as error:
            if error.code != "name-taken":
                raise
            return await original(*values)

    patch.setattr(terminal, "start", stubborn)


def removing(name: str, act: Callable[[Any, str, dict[str, Any]], Any]) -> Break:
    """Put `act(ask, name, params)` in the place of the removal of a holder, which is by its address."""

    def plant(patch: Patch) -> None:
        original = client.HcClient.ask
        wanted: list[str] = []

        async def acting(self: client.HcClient, method: Any, params: Any, **rest: Any) -> Any:
            async def ask(params: Any) -> Any:
                return await original(self, method, params, **rest)

            if method == "terminal.run":
                wanted.append(params["name"])
            if method == "terminal.rm" and params["terminal"] not in wanted:
                return await act(ask, wanted[-1], params)
            return await ask(params)

        patch.setattr(client.HcClient, "ask", acting)

    plant.__name__ = name
    return plant


async def _whatever(ask: Any, name: str, params: dict[str, Any]) -> Any:
    try:
        return await ask(params)
    except SupervisorError:
        return {}


async def _by_name(ask: Any, name: str, params: dict[str, Any]) -> Any:
    return await ask({"terminal": name})


BREAKS: list[tuple[Break, str, str]] = [
    (long_timeout_kills, "settle-long-timeout-leaves-the-child", "D8"),
    (first_turn_is_zero, "settle-counter-does-not-begin-at-zero", "D8"),
    (turn_remembered_after_the_send, "settle-turn-remembered-before-a-send", "D8"),
    (turn_stays_after_a_refusal, "settle-refused-send-changes-nothing", "D8"),
    (steer_does_not_move_a_wait, "settle-steer-during-a-wait", "D8"),
    (steer_ends_a_wait, "settle-steer-during-a-wait", "D8"),
    (believes("ended with error"), "session-error-with-verdict", "D9"),
    (believes("ended with aborted"), "session-aborted-with-verdict", "D9"),
    (believes("has no end"), "session-no-end-with-verdict", "D9"),
    (believes("forked"), "session-fork", "D9"),
    (believes("not on the branch"), "session-last-elsewhere", "D9"),
    (taking("edits_ignored", _not_withdrawn), "session-withdrawn", "D9"),
    (taking("lost_prompts_ignored", _no_prompt), "session-torn-prompt", "D9"),
    (taking("lost_prompts_ignored", _no_prompt), "session-lost-prompt", "D9"),
    (code_counts, "session-verdict-in-code", "D9"),
    (abort_moves_the_turn, "abort-is-no-prompt", "D10"),
    (text_is_stripped, "steer-text-exact", "D10"),
    (router_claims_disposition, "abort-claims-no-queue", "D10"),
    (abort_tells_of_a_queue, "abort-claims-no-queue", "D10"),
    (
        skipping_the_kill("done_is_not_killed", lambda seen: seen.observation.status == "done"),
        "retire-after-done",
        "D11",
    ),
    (skipping_the_kill("ended_is_not_killed", lambda seen: seen.finished), "retire-kills-what-has-ended", "D11"),
    (router_raises_for_a_stranger, "retire-of-a-stranger", "D11"),
    (retire_deletes_the_session, "retire-keeps-the-session", "D11"),
    (retire_deletes_the_session, "collect-after-retire", "D11"),
    (settle_tells_of_an_event, "no-event-facts", "D12"),
    (settle_tells_of_an_event, "settle-no-event-facts", "D12"),
    (status_tells_of_a_tool, "no-event-facts", "D12"),
    (three_tries, "name-taken-finished-again", "A4"),
    (removing("failed_removal_is_ignored", _whatever), "name-not-cleared-not-tried", "A4"),
    (removing("holder_removed_by_name", _by_name), "name-moves-on-before-the-removal", "A4"),
]


@pytest.mark.parametrize(
    ("plant", "name", "clause"), BREAKS, ids=[f"{plant.__name__}-{name}" for plant, name, _ in BREAKS]
)
def test_break_turns_its_clause_red(monkeypatch: Patch, plant: Break, name: str, clause: str) -> None:
    plant(monkeypatch)
    assert red(SCENARIOS[name]) == {clause}


@pytest.mark.parametrize("name", sorted({name for _, name, _ in BREAKS}))
def test_without_a_break_the_scenario_holds(name: str) -> None:
    assert SCENARIOS[name].level == "must"
    assert red(SCENARIOS[name]) == set()


def test_a_quick_poll_does_not_change_how_patient_a_retire_is() -> None:
    slow, quick = SCENARIOS["retire-never-ends"], SCENARIOS["retire-never-ends-quick-polls"]
    assert (slow.world, slow.drive, slow.expect) == (quick.world, quick.drive, quick.expect)
    assert quick.poll_ms < slow.poll_ms
    assert red(quick) == set()
