"""One headless child that runs: its process, what is known of its life, the commands under way, its open questions."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from legion_terminal.errors import Known, SupervisorError
from legion_terminal.messages import printable
from legion_terminal.rpc.dialogs import CANCEL, MAX_OPEN, DialogAnswer, reply, treat
from legion_terminal.rpc.exit_table import Exit
from legion_terminal.rpc.framing import LineSplitter
from legion_terminal.rpc.life import Life, Prompt
from legion_terminal.rpc.messages import Dialog, Noise, Response, decode, encode
from legion_terminal.rpc.process import ChildProcess
from legion_terminal.rpc.words import telling
from legion_terminal.types import OnBlocked

MAX_PENDING: Final = 64
"""How many commands of one child may be without an answer."""
MAX_COMMAND_BYTES: Final = 16 * 2**20
"""The longest line that is written to a child."""
MAX_NOISE: Final = 20
"""After so many lines that are no message, and none that is, a program does not speak this protocol."""
CLOSED_OUTPUT: Final = "it has closed its output, so no answer can come"

Ask = Callable[[Dialog], Awaitable[DialogAnswer | None]]


@dataclass(slots=True, eq=False)
class _Pending:
    command: str
    answer: "asyncio.Future[Response]"
    apply: Callable[[Response], None]


class Running:
    """A child's process and everything that is said over its pipes. Made for one event loop.

    `policy` and `ask`: what becomes of its questions, and who is told of them. `dialog_ms`: after this a question that
    nobody answered is cancelled.
    """

    def __init__(self, *, policy: OnBlocked, ask: Ask | None, drain_ms: int, dialog_ms: int) -> None:
        self.life = Life()
        self.process = ChildProcess(self._take, self._ended, drain_ms=drain_ms)
        self.turns = asyncio.Lock()
        self.spoke = False
        self.noise: list[str] = []
        self._policy = policy
        self._ask = ask
        self._dialog_ms = dialog_ms
        self._lines = LineSplitter()
        self._numbers = 0
        self._pending: dict[str, _Pending] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._waiting: set[asyncio.Future[None]] = set()
        self._drain_ms = drain_ms
        self._deaf: asyncio.TimerHandle | None = None

    @property
    def foreign(self) -> bool:
        """Whether it has shown that it does not speak this protocol."""
        return not self.spoke and len(self.noise) >= MAX_NOISE

    async def start(self, argv: Sequence[str], env: Mapping[str, str], cwd: str) -> None:
        """Start the program. Raises SupervisorError."""
        await self.process.start(argv, env, cwd)

    def news(self) -> "asyncio.Future[None]":
        """Done as soon as anything happens. Cancel it when it is not wanted any more."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        future.add_done_callback(self._waiting.discard)
        return future

    def prompt(self, text: str, behaviour: str | None, done: Callable[[], None]) -> "asyncio.Future[Response]":
        """Write a prompt; the answer to come. What it says is taken in even when nobody waits for it any more.

        `done` is called when the prompt was accepted. Raises SupervisorError as `command`.
        """
        fields = {"message": text} | ({"streamingBehavior": behaviour} if behaviour else {})
        line = self._line("prompt", fields)
        prompt = self.life.asked()
        try:
            return self._send("prompt", line, lambda answer: self._answered(prompt, answer, text, done))
        except SupervisorError:
            self.life.refused(prompt)
            raise

    def command(self, command: str, apply: Callable[[Response], None] | None = None) -> "asyncio.Future[Response]":
        """Write a command; the answer to come. Raises SupervisorError when nothing was written."""
        return self._send(command, self._line(command, {}), apply or _nothing)

    def answer(self, dialog_id: str | None, answer: DialogAnswer) -> bool:
        """Answer an open question, the oldest one for None; False when there is none such."""
        if dialog_id is None:
            dialog_id = next(iter(self.life.dialogs), None)
        dialog = self._closed(dialog_id) if dialog_id is not None else None
        if dialog is None:
            return False
        self._reply(dialog, answer)
        self._tell()
        return True

    def cancel_dialogs(self) -> None:
        """Cancel every open question: an open one holds back both an abort and a polite end."""
        while self.answer(None, CANCEL):
            pass

    # -- what it says --------------------------------------------------------------------------------------------------

    def _take(self, data: bytes) -> None:
        if not data and not self.process.exited:  # its end mostly follows at once, and says more
            error = SupervisorError("protocol", CLOSED_OUTPUT, known="unknown")
            self._deaf = asyncio.get_running_loop().call_later(self._drain_ms / 1000, self._fail, error)
        for line in self._lines.feed(data):
            self._hear(line)
        self._tell()

    def _hear(self, line: bytes) -> None:
        event = decode(line)
        if isinstance(event, Noise):
            if len(self.noise) < MAX_NOISE:
                self.noise.append(event.text)
        elif isinstance(event, Response):
            self.spoke = True
            self._respond(event)
        elif isinstance(event, Dialog):
            self.spoke = True
            self._asked(event)
        elif event is not None:
            self.spoke = True
            self.life.take(event)

    def _respond(self, response: Response) -> None:
        key = response.id or self._only(response)
        pending = self._pending.pop(key, None) if key is not None else None
        if pending is None:
            return
        pending.apply(response)
        if not pending.answer.done():
            pending.answer.set_result(response)

    def _only(self, response: Response) -> str | None:
        """The command that an answer without an id can belong to: a refusal, and one command that it fits."""
        if response.success:
            return None
        fitting = [key for key, one in self._pending.items() if one.command == response.command]
        if not fitting:
            fitting = list(self._pending)
        return fitting[0] if len(fitting) == 1 else None

    def _ended(self, exit_: Exit) -> None:
        rest = self._lines.end()
        if rest:
            self._hear(rest)
        for name in {*self.life.dialogs, *self._asking}:
            self._closed(name)
        if self._deaf is not None:
            self._deaf.cancel()
        self.life.ended(exit_, telling(self.process.tail()))
        self._fail(gone(self.life, "unknown"))
        self._ask = None

    def _fail(self, error: SupervisorError) -> None:
        for pending in self._pending.values():
            if not pending.answer.done():
                pending.answer.set_exception(error)
                pending.answer.exception()  # nobody may be waiting for it
        self._pending.clear()
        self._tell()

    def _tell(self) -> None:
        for future in list(self._waiting):
            if not future.done():
                future.set_result(None)

    # -- what is said to it --------------------------------------------------------------------------------------------

    def _line(self, command: str, fields: dict[str, Any]) -> bytes:
        if self.life.exit is not None or self.process.exited:
            raise gone(self.life)
        self._numbers += 1
        line = encode({"id": str(self._numbers), "type": command, **fields})
        if len(line) > MAX_COMMAND_BYTES:
            raise SupervisorError(
                "bad-request", f"the {command} makes a line of {len(line)} bytes; {MAX_COMMAND_BYTES} can be sent"
            )
        return line

    def _send(self, command: str, line: bytes, apply: Callable[[Response], None]) -> "asyncio.Future[Response]":
        if self.process.output_ended:
            raise SupervisorError("protocol", CLOSED_OUTPUT)
        if self.process.unread() > MAX_COMMAND_BYTES:
            raise SupervisorError(
                "call-failed", f"{self.process.unread()} bytes wait for it, and it reads none of them"
            )
        if len(self._pending) >= MAX_PENDING:
            raise SupervisorError("call-failed", f"{MAX_PENDING} commands are without an answer already")
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        try:
            self.process.put(line)
        except BrokenPipeError as error:
            raise SupervisorError("gone", f"it takes no more commands: {error}") from error
        self._pending[str(self._numbers)] = _Pending(command, answer, apply)
        return answer

    def _answered(self, prompt: Prompt, response: Response, text: str, done: Callable[[], None]) -> None:
        if response.success:
            self.life.accepted(prompt, response.disposition, text)
            done()
        else:
            self.life.refused(prompt)

    # -- its questions -------------------------------------------------------------------------------------------------

    def _asked(self, dialog: Dialog) -> None:
        move = treat(self._policy, dialog)
        if move == "nothing" or dialog.id in self.life.dialogs or dialog.id in self._asking:
            return
        if move == "approve":
            self._reply(dialog, DialogAnswer(confirmed=True))
        elif move == "forward" and len(self.life.dialogs) < MAX_OPEN and not self.life.retiring:
            self._open(dialog)
        else:
            if move == "tell-and-cancel" and self._ask is not None and len(self._asking) < MAX_OPEN:
                self._asking[dialog.id] = asyncio.create_task(self._told(dialog, self._ask))
            self._reply(dialog, CANCEL)

    def _open(self, dialog: Dialog) -> None:
        self.life.dialogs[dialog.id] = dialog
        loop = asyncio.get_running_loop()
        own = dialog.timeout_ms
        if own is not None and own <= self._dialog_ms:
            self._timers[dialog.id] = loop.call_later(own / 1000, self._expired, dialog.id)
        else:
            self._timers[dialog.id] = loop.call_later(self._dialog_ms / 1000, self.answer, dialog.id, CANCEL)
        if self._ask is not None:
            self._asking[dialog.id] = asyncio.create_task(self._forwarded(dialog, self._ask))

    async def _forwarded(self, dialog: Dialog, ask: Ask) -> None:
        try:
            answer = await ask(dialog)
        except Exception:  # whatever the parent's answer broke with, the child must not wait for it
            answer = CANCEL
        self._asking.pop(dialog.id, None)
        if answer is not None:
            self.answer(dialog.id, answer)

    async def _told(self, dialog: Dialog, ask: Ask) -> None:
        try:
            await ask(dialog)
        except Exception:  # a parent that fails to listen changes nothing
            return
        finally:
            self._asking.pop(dialog.id, None)

    def _expired(self, dialog_id: str) -> None:
        self._closed(dialog_id)
        self._tell()

    def _closed(self, dialog_id: str) -> Dialog | None:
        """Take a question off the list of the open ones; from here on it gets no answer, or the caller's."""
        timer = self._timers.pop(dialog_id, None)
        if timer is not None:
            timer.cancel()
        asking = self._asking.pop(dialog_id, None)
        if asking is not None:
            asking.cancel()
        return self.life.dialogs.pop(dialog_id, None)

    def _reply(self, dialog: Dialog, answer: DialogAnswer) -> None:
        if self.process.unread() > MAX_COMMAND_BYTES:
            return  # it asks and asks, and reads no answer
        try:
            self.process.put(encode(reply(dialog, answer)))
        except BrokenPipeError:
            return  # it does not listen any more


def gone(life: Life, known: Known = "not-sent") -> SupervisorError:
    """What a call on a child that has ended is told; `known`: of a command that was under way then."""
    how = f" with {life.exit}" if life.exit is not None else ""
    said = f": {life.why}" if life.why else ""
    return SupervisorError("gone", printable(f"its process has ended{how}{said}", 400), known=known)


def _nothing(_: Response) -> None:
    return None
