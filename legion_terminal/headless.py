"""The rpc backend: agents as child processes `pi --mode rpc`, from their start to their retirement.

A child settles on agent_settled; the end of its process is judged by the exit table (`rpc.exit_table`). Its questions
are treated by policy (`rpc.dialogs`), which has nothing to do with pi's own tool approval. Nothing of a child outlives
its supervisor. All time is the event loop's.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Literal
from weakref import WeakKeyDictionary

from legion_terminal.errors import SupervisorError
from legion_terminal.messages import printable
from legion_terminal.rpc.dialogs import DialogAnswer
from legion_terminal.rpc.launch import (
    check_folder,
    child_env,
    forget_session,
    prepare_session,
    rpc_argv,
)
from legion_terminal.rpc.memory import MemoryShortage, available_mb, check_memory_gate
from legion_terminal.rpc.messages import Dialog, Response, sendable
from legion_terminal.rpc.retiring import end
from legion_terminal.rpc.running import Running, gone
from legion_terminal.rpc.settings import HeadlessSettings as HeadlessSettings
from legion_terminal.rpc.starting import first_prompt
from legion_terminal.rpc.waiting import until_settled
from legion_terminal.settle import Observation, SettleResult
from legion_terminal.spawn import format_child_task
from legion_terminal.transcript import read_transcript, verdict
from legion_terminal.types import (
    AbortResult,
    Cancel,
    Capabilities,
    Child,
    QueueResult,
    RetireResult,
    SpawnRequest,
    SteerResult,
    Verdict,
)

COLLECT_MS: Final = 500
COLLECT_PAUSE_MS: Final = 50

AskParent = Callable[[Child, Dialog], Awaitable[DialogAnswer | None]]
Behaviour = Literal["steer", "followUp"]


class HeadlessSupervisor:
    """A `Supervisor` whose children are processes of its own.

    `env` is the supervisor's environment, which its children inherit; `memory_env` is what the memory feature adds.
    `ask` is told of the questions that its policy gives to the parent, and may answer them (None: later, by `answer`).
    `on_shortage` is told of a start that the memory gate refused; `memory` says how much is available, in MiB.
    """

    def __init__(
        self,
        env: Mapping[str, str],
        settings: HeadlessSettings | None = None,
        *,
        memory_env: Mapping[str, str | None] | None = None,
        ask: AskParent | None = None,
        on_shortage: Callable[[MemoryShortage], None] | None = None,
        memory: Callable[[], int | None] = available_mb,
    ) -> None:
        self.settings = settings or HeadlessSettings()
        self._env = dict(env)
        self._memory_env = dict(memory_env or {})
        self._ask = ask
        self._on_shortage = on_shortage
        self._memory = memory
        self._numbers = itertools.count(1)
        self._running: WeakKeyDictionary[Child, Running] = WeakKeyDictionary()
        self._alive: dict[tuple[str, str], Child] = {}
        self._starting: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._retiring: WeakKeyDictionary[Child, asyncio.Task[RetireResult]] = WeakKeyDictionary()
        self._burials: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def capabilities(self) -> Capabilities:
        """Prompts come back with a disposition; events are not fed to the parent."""
        return Capabilities(prompt_disposition=True, events=False)

    async def spawn(self, request: SpawnRequest) -> Child:
        """Start a child on its task, and return when it has taken it.

        One that ends before that, without a word, is returned too: the wait then gives its row of the exit table.
        Raises SupervisorError; then no process is left, nor a session file that was made for it. So too when the caller
        is cancelled.
        """
        key = (request.run_id, request.handle)
        try:
            self._check_open()
            self._check_free(key)
            text = _task(request)
            approve = self.settings.approve if request.approve is None else request.approve
            argv = rpc_argv(self.settings.program, request, approve=approve)
            env = child_env(self._env, self._memory_env, request.env)
            check_folder(request.cwd)
            self._check_memory(request)
            child = self._child(request, tuple(argv))
            starting = self._starting[key] = asyncio.create_task(self._start(child, request, env, text))
            starting.add_done_callback(lambda task: self._forget(key, task))
        except SupervisorError as error:
            raise error.about(request.handle) from error
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            if starting.cancelled() and not _called_off():
                raise SupervisorError("closed", "the supervisor was closed", child=request.handle) from None
            starting.cancel()
            starting.add_done_callback(lambda task: self._undo(child, task))
            raise
        except SupervisorError as error:
            raise error.about(request.handle) from error
        return child

    async def prompt(self, child: Child, text: str) -> SteerResult:
        """Give the child its next prompt. A child that is at work refuses it (`call-failed`)."""
        return await self._prompt(child, text, None)

    async def steer(self, child: Child, text: str) -> SteerResult:
        """Send text into the run under way, or begin a run with it when there is none: it is never parked.

        Raises SupervisorError: `gone`, `call-failed` when it was refused; `outcome-unknown` when no answer came (the
        text may have been taken, and is not sent again).
        """
        return await self._prompt(child, text, "steer")

    async def follow_up(self, child: Child, text: str) -> SteerResult:
        """As `steer`, but a run under way takes it up only when it would end."""
        return await self._prompt(child, text, "followUp")

    async def abort(self, child: Child) -> AbortResult:
        """Abort the run, keeping process and context. Open questions are cancelled and queued text is taken back first.

        Raises SupervisorError `gone`, or `outcome-unknown` when no answer came within `abort_ms`.
        """
        running = self._live(child)
        cleared: list[str] = []

        def took_back(answer: Response) -> None:
            if answer.success:
                running.life.cleared()
                cleared.extend((*answer.steering, *answer.follow_up))

        with _about(child):
            running.cancel_dialogs()
            queued = running.command("clear_queue", took_back) if running.life.queued else None
            answers = {running.command("abort")} | ({queued} if queued is not None else set())
            await asyncio.wait(answers, timeout=self.settings.abort_ms / 1000)
            _read((answers - {queued}).pop(), "abort", self.settings.abort_ms)
        return AbortResult(cleared=None if queued is None else tuple(cleared))

    async def clear_queue(self, child: Child) -> QueueResult:
        """Take back what is queued. Raises SupervisorError as `steer`."""
        running = self._live(child)
        with _about(child):
            asked = running.command("clear_queue")
            await asyncio.wait({asked}, timeout=self.settings.call_ms / 1000)
            answer = _read(asked, "clear_queue", self.settings.call_ms)
        running.life.cleared()
        return QueueResult(steering=answer.steering, follow_up=answer.follow_up)

    async def answer(self, child: Child, answer: DialogAnswer, dialog: str | None = None) -> bool:
        """Answer a question that is open, the oldest one for None; whether there was one."""
        return self._live(child).answer(dialog, answer)

    def dialogs(self, child: Child) -> tuple[Dialog, ...]:
        """The questions of the child that are open, oldest first."""
        return tuple(self._of(child).life.dialogs.values())

    def pid(self, child: Child) -> int | None:
        """Process id of the child, also the number of its process group; None once it has ended."""
        process = self._of(child).process
        return None if process.over else process.pid

    async def wait_settled(self, child: Child, timeout_ms: float, cancelled: Cancel | None = None) -> SettleResult:
        """Wait until the newest prompt has settled, or the process has ended; by the exit table. Ends nothing."""
        running = self._of(child)
        result = await until_settled(running, timeout_ms, cancelled)
        child.last = running.life.observation()
        return result

    async def status(self, child: Child) -> Observation:
        """What is known of the child now; nothing is asked of it."""
        child.last = self._of(child).life.observation()
        return child.last

    async def collect(self, child: Child) -> Verdict:
        """Read the verdict from the session file (D9), again for at most 500 ms while a prompt is the newest there."""
        loop = asyncio.get_running_loop()
        until = loop.time() + COLLECT_MS / 1000
        transcript = read_transcript(child.session_file)
        for _ in range(COLLECT_MS // COLLECT_PAUSE_MS):
            if transcript.newest_role != "user" or loop.time() >= until:
                break
            await asyncio.sleep(COLLECT_PAUSE_MS / 1000)
            transcript = read_transcript(child.session_file)
        return verdict(transcript, since=child.prompt_id)

    async def retire(self, child: Child) -> RetireResult:
        """End the child and its process group: SIGTERM, a grace, SIGKILL. Never raises; several at once are one."""
        running = self._running.get(child)
        if running is None:
            return RetireResult(ended=False, removed=False, note="it was not started by this supervisor")
        running.life.retiring |= not running.process.exited  # an end that was seen before was no retirement
        child.retired = True
        retiring = self._retiring.get(child)
        if retiring is None or (retiring.done() and not running.process.over):
            retiring = self._retiring[child] = asyncio.create_task(end(running, self.settings))
        return await asyncio.shield(retiring)

    async def close(self) -> None:
        """Retire every child: nothing of them goes on without their supervisor. Bounded by grace and kill."""
        self._closed = True
        for starting in self._starting.values():
            starting.cancel()
        await asyncio.gather(*self._starting.values(), return_exceptions=True)
        await asyncio.gather(*self._burials, return_exceptions=True)
        await asyncio.gather(*(self.retire(child) for child in list(self._running)))
        self._alive.clear()

    # -- starting ------------------------------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._closed:
            raise SupervisorError("closed", "the supervisor was closed")

    def _check_free(self, key: tuple[str, str]) -> None:
        self._alive = {one: child for one, child in self._alive.items() if not self._of(child).process.over}
        starting = self._starting.get(key)
        if key in self._alive or (starting is not None and not starting.done()):
            raise SupervisorError(
                "name-taken",
                f"child {key[1]!r} of run {key[0]!r} is alive",
                hint="retire that child first, or use another handle",
            )

    def _check_memory(self, request: SpawnRequest) -> None:
        limit = self.settings.min_free_mb if request.min_free_mb is None else request.min_free_mb
        shortage = check_memory_gate(limit, self._memory() if limit > 0 else None)
        if shortage is None:
            return
        if self._on_shortage is not None:
            self._on_shortage(shortage)
        raise SupervisorError(
            "memory-gate",
            f"{shortage.available_mb} MiB of memory are available, and a start needs {shortage.limit_mb} MiB",
            hint="retire another child first, or lower the limit",
        )

    def _child(self, request: SpawnRequest, argv: tuple[str, ...]) -> Child:
        return Child(
            id=f"rpc/{next(self._numbers)}",
            mode="rpc",
            handle=request.handle,
            run_id=request.run_id,
            session_file=request.session_file,
            argv=argv,
        )

    async def _start(self, child: Child, request: SpawnRequest, env: Mapping[str, str], text: str) -> None:
        made = prepare_session(request.session_file)
        child.prompt_id = read_transcript(request.session_file).prompt_id
        ask = self._ask
        running = Running(
            policy=request.on_blocked or self.settings.on_blocked,
            ask=None if ask is None else lambda dialog: ask(child, dialog),
            drain_ms=self.settings.drain_ms,
            dialog_ms=self.settings.dialog_ms,
        )
        self._running[child] = running
        self._alive[child.run_id, child.handle] = child
        try:
            await running.start(child.argv, env, request.cwd)
            await first_prompt(running, text, self.settings.start_ms)
        except BaseException:
            await asyncio.shield(self._bury(self._buried(child, running, request.session_file if made else None)))
            raise
        _note_turn(child, running)

    async def _buried(self, child: Child, running: Running, made: str | None) -> None:
        """The end of a start that failed: no process, no file of ours."""
        child.retired = True
        if running.process.pid is not None:
            await end(running, self.settings)
        self._running.pop(child, None)
        self._alive.pop((child.run_id, child.handle), None)
        if made is not None:
            forget_session(made)

    def _undo(self, child: Child, starting: "asyncio.Task[None]") -> None:
        """A start that was called off too late to notice: nobody has the child, so it is retired again."""
        running = self._running.get(child)
        if running is not None and not starting.cancelled() and starting.exception() is None:
            self._bury(self._buried(child, running, None))

    def _bury(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        burial = asyncio.create_task(work)
        self._burials.add(burial)
        burial.add_done_callback(self._burials.discard)
        return burial

    def _forget(self, key: tuple[str, str], task: "asyncio.Task[None]") -> None:
        if self._starting.get(key) is task:
            del self._starting[key]
        if not task.cancelled():
            task.exception()  # the caller may be gone

    # -- commands ------------------------------------------------------------------------------------------------------

    def _of(self, child: Child) -> Running:
        running = self._running.get(child)
        if running is None:
            raise SupervisorError("bad-request", "it was not started by this supervisor", child=child.handle)
        return running

    def _live(self, child: Child) -> Running:
        running = self._of(child)
        if child.retired and running.life.exit is None:
            raise SupervisorError("gone", "it was retired", child=child.handle)
        if running.life.exit is not None:
            raise gone(running.life).about(child.handle)
        return running

    async def _prompt(self, child: Child, text: str, behaviour: Behaviour | None) -> SteerResult:
        running = self._live(child)
        async with running.turns:
            newest = read_transcript(child.session_file).prompt_id

            def taken() -> None:
                child.prompt_id = newest
                _note_turn(child, running)

            with _about(child):
                answer = running.prompt(sendable(text), behaviour, taken)
                await asyncio.wait({answer}, timeout=self.settings.call_ms / 1000)
                try:
                    told = _read(answer, "prompt", self.settings.call_ms)
                except SupervisorError as error:
                    if error.known == "unknown":
                        taken()
                    raise
        started = None if told.disposition is None else told.disposition == "started"
        return SteerResult(started=started, prompt_turn=child.prompt_turn, disposition=told.disposition)


def _task(request: SpawnRequest) -> str:
    return sendable(
        format_child_task(request.task, allow_nested=request.allow_nested, worktree_branch=request.worktree_branch)
    )


def _called_off() -> bool:
    """Whether somebody cancelled the task that runs this, rather than something that it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _note_turn(child: Child, running: Running) -> None:
    if running.life.prompt is not None:
        child.prompt_turn = running.life.prompt.after_turn


def _read(answer: "asyncio.Future[Response]", command: str, ms: int) -> Response:
    """The answer to a command that was waited for. Raises SupervisorError; a late one is taken in all the same."""
    if not answer.done():
        raise SupervisorError(
            "outcome-unknown", f"no answer to {command} within {ms} ms; it may have been taken", known="unknown"
        )
    response = answer.result()
    if not response.success:
        raise SupervisorError(
            "call-failed", printable(f"{command} was refused: {response.error}", 400), known="not-applied"
        )
    return response


@contextmanager
def _about(child: Child) -> Iterator[None]:
    try:
        yield
    except SupervisorError as error:
        raise error.about(child.handle) from error
