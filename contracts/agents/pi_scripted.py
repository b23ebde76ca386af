"""Live part: the same exchanges with the real and with the scripted `pi`, and where they part."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contracts.agents.alike import first_difference
from contracts.agents.raw import RawPi, Record
from contracts.agents.stage import MODEL_ID, PROVIDER, Stage
from hc_sim.programs import install_pi
from hc_sim.programs.model_words import SLOW_WORDS, TOOL_COMMAND

ASKING = """\
export default function (pi) {
  pi.on("tool_call", async (event, ctx) => {
    const ui = ctx.ui, how = process.env.LEGION_ASKS;
    const ok = how === "select" ? (await ui.select("Pick", ["yes", "no"])) === "yes"
      : how === "input" ? (await ui.input("Name?", "a name")) !== undefined
      : how === "editor" ? (await ui.editor("Edit", "text")) !== undefined
      : await ui.confirm("Allow?", "the command", how === "timeout" ? { timeout: 200 } : undefined);
    if (!ok) return { block: true, reason: "refused by the person" };
  });
}
"""
Talk = Callable[[RawPi], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One talk, and the script with which the scripted program says what the real one says to the model's words."""

    name: str
    talk: Talk
    reply: list[dict[str, Any]] = field(default_factory=list)
    asks: str = ""
    speed: float = 1.0


PLAIN = {"do": "answer", "words": ["Hello ", "from ", "the ", "model."], "gap_ms": 2}
TOOL = {"do": "tool", "args": {"command": TOOL_COMMAND}, "ms": 300}
AFTER = {"do": "answer", "words": ["tool ", "said ", "ok."], "gap_ms": 2}
LONG = {"do": "tool", "args": {"command": "sleep 30"}, "ms": 30_000}
SLOW = {"do": "answer", "words": [f"w{number} " for number in range(SLOW_WORDS)], "gap_ms": 150}
CUT = {
    "do": "error",
    "message": "terminated: other side closed (UND_ERR_SOCKET)",
    "words": ["half ", "an "],
    "retry": True,
}
FAILED = {"do": "error", "message": '500: {"message":"fake failure 500","type":"fake"}', "retry": True}


def _prompt(pi: RawPi, text: str, **more: Any) -> None:
    pi.send({"id": "p", "type": "prompt", "message": text, **more})


def _settled(pi: RawPi) -> None:
    pi.until("agent_settled")


def _simple(text: str) -> Talk:
    def talk(pi: RawPi) -> None:
        _prompt(pi, text)
        _settled(pi)

    return talk


def _in_tool(*records: Record, text: str = "LONGTOOL x", end: str = "agent_settled") -> Talk:
    def talk(pi: RawPi) -> None:
        _prompt(pi, text)
        pi.until("tool_execution_update")
        for record in records:
            pi.send(record)
            if record["type"] != "abort":
                pi.answer(record["type"])
        pi.until(end) if end == "agent_settled" else pi.answer(end)

    return talk


def _answered(**answer: Any) -> Talk:
    def talk(pi: RawPi) -> None:
        _prompt(pi, "TOOL x")
        request = pi.until("extension_ui_request")
        if answer:
            pi.send({"type": "extension_ui_response", "id": request["id"], **answer})
        _settled(pi)

    return talk


def _abort_in_question(pi: RawPi) -> None:
    _prompt(pi, "TOOL x")
    request = pi.until("extension_ui_request")
    pi.send({"id": "ab", "type": "abort"}, {"id": "s", "type": "get_state"})
    pi.answer("get_state")
    pi.send({"type": "extension_ui_response", "id": request["id"], "cancelled": True})
    pi.answer("abort")


def _parked(pi: RawPi) -> None:
    pi.send({"id": "s", "type": "steer", "message": "PLAIN parked"})
    pi.answer("steer")
    _prompt(pi, "PLAIN x")
    _settled(pi)


def _hang_abort(pi: RawPi) -> None:
    _prompt(pi, "HANG x")
    pi.until(lambda one: one.get("type") == "message_end" and one["message"]["role"] == "user")
    pi.send({"id": "ab", "type": "abort"})
    pi.answer("abort")


def _retry_abort(pi: RawPi) -> None:
    _prompt(pi, "E500 x")
    pi.until("entry_appended")
    pi.send({"id": "ab", "type": "abort"})
    pi.answer("abort")


def _cut(pi: RawPi) -> None:
    _prompt(pi, "CUT x")
    pi.until("entry_appended")
    pi.send({"id": "ab", "type": "abort"})
    pi.answer("abort")


def _wrong(pi: RawPi) -> None:
    for line in (b"[1]", b"{}", b"nul", b"", b'{"type":"frob"}', b'{"id":3,"type":"prompt"}'):
        pi.write(line + b"\n")
        pi.until("response")
    pi.send({"id": [1], "type": "get_state"})
    pi.answer("get_state")


def _small(pi: RawPi) -> None:
    for command in ("set_session_name", "set_auto_retry", "get_messages", "get_last_assistant_text", "abort"):
        pi.send({"id": command, "type": command, "name": "n", "enabled": True})
        pi.answer(command)
    pi.send({"id": 1, "type": "clear_queue"})
    pi.answer("clear_queue")


RUNS = (
    Exchange(name="a prompt", talk=_simple("PLAIN x"), reply=[PLAIN]),
    Exchange(name="a tool", talk=_simple("TOOL x"), reply=[TOOL, AFTER]),
    Exchange(name="a retry that helps", talk=_simple("E500ONCE x"), reply=[FAILED, PLAIN], speed=0.1),
    Exchange(name="an abort in the wait for a retry", talk=_retry_abort, reply=[FAILED]),
    Exchange(name="a stream that breaks off", talk=_cut, reply=[CUT]),
    Exchange(name="wrong input", talk=_wrong),
    Exchange(name="small commands", talk=_small),
)
QUEUES = (
    Exchange(
        name="a steer and a follow-up in a tool",
        talk=_in_tool(
            {"id": 1, "type": "steer", "message": "PLAIN s"},
            {"id": 2, "type": "follow_up", "message": "PLAIN f"},
            text="TOOL x",
        ),
        reply=[TOOL, PLAIN, PLAIN],
    ),
    Exchange(
        name="two steers in a tool",
        talk=_in_tool(
            {"id": 1, "type": "steer", "message": "PLAIN a"},
            {"id": 2, "type": "prompt", "message": "PLAIN b", "streamingBehavior": "steer"},
            text="TOOL x",
        ),
        reply=[TOOL, PLAIN, PLAIN],
    ),
    Exchange(name="a parked steer", talk=_parked, reply=[PLAIN]),
    Exchange(name="an abort before the first word", talk=_hang_abort, reply=[{"do": "hang"}]),
    Exchange(name="an abort in a tool", talk=_in_tool({"id": "ab", "type": "abort"}, end="abort"), reply=[LONG]),
    Exchange(
        name="an abort with a queued steer",
        talk=_in_tool({"id": 1, "type": "steer", "message": "s"}, {"id": "ab", "type": "abort"}, end="abort"),
        reply=[LONG],
    ),
)
QUESTIONS = (
    Exchange(name="a yes", talk=_answered(confirmed=True), asks="confirm", reply=[TOOL, AFTER]),
    Exchange(name="a no", talk=_answered(confirmed=False), asks="confirm", reply=[TOOL, AFTER]),
    Exchange(name="a choice", talk=_answered(value="yes"), asks="select", reply=[TOOL, AFTER]),
    Exchange(name="a text that is not given", talk=_answered(cancelled=True), asks="input", reply=[TOOL, AFTER]),
    Exchange(name="a text from an editor", talk=_answered(value="t"), asks="editor", reply=[TOOL, AFTER]),
    Exchange(name="a question that nobody answers", talk=_answered(), asks="timeout", reply=[TOOL, AFTER]),
    Exchange(name="an abort with a question open", talk=_abort_in_question, asks="confirm", reply=[TOOL]),
)
_ASKS: dict[str, dict[str, Any]] = {
    "confirm": {"title": "Allow?", "message": "the command"},
    "timeout": {"title": "Allow?", "message": "the command", "timeout_ms": 200},
    "select": {"method": "select", "title": "Pick", "options": ["yes", "no"]},
    "input": {"method": "input", "title": "Name?", "placeholder": "a name"},
    "editor": {"method": "editor", "title": "Edit", "prefill": "text"},
}


async def scripted_runs(stage: Stage) -> None:
    """Prompts, tools, retries and wrong input, with both."""
    await _compared(stage, RUNS)


async def scripted_queues(stage: Stage) -> None:
    """Steering, follow-ups and aborts, with both."""
    await _compared(stage, QUEUES)


async def scripted_questions(stage: Stage) -> None:
    """Questions of an extension, with both."""
    await _compared(stage, QUESTIONS)


async def _compared(stage: Stage, exchanges: tuple[Exchange, ...]) -> None:
    extension = stage.extension(ASKING)
    for place, exchange in enumerate(exchanges):
        argv = ["--mode", "rpc", "--no-session", "--no-extensions", "--provider", PROVIDER, "--model", MODEL_ID]
        argv += ["-e", extension] if exchange.asks else []
        ours = [str(_installed(stage.folder / f"scripted-{place}", exchange)), *argv]
        said = [await _said(stage, exchange, words) for words in ([str(stage.pi.program), *argv], ours)]
        saw = first_difference(*said) or "alike"
        stage.fact(f"{exchange.name}, real / scripted", saw, "the scripted program is made to say the same")


async def _said(stage: Stage, exchange: Exchange, argv: list[str]) -> list[Record]:
    env = {**stage.env, "LEGION_ASKS": exchange.asks}

    def play() -> list[Record]:
        with RawPi(argv, cwd=stage.work, env=env) as pi:
            stage.end_with(pi.kill)
            exchange.talk(pi)
            pi.end_input()
            pi.wait()
        return pi.records

    return await stage.by_hand(play)


def _installed(folder: Path, exchange: Exchange) -> Path:
    reply = [
        {**one, "ask": _ASKS[exchange.asks]} if exchange.asks and one["do"] == "tool" else one for one in exchange.reply
    ]
    return install_pi(folder, {"reply": reply, "speed": exchange.speed})
