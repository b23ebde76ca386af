"""The terminal backend: agents in terminals of the core, from their start to their retirement (D1 to D12).

Each child has one terminal, known by one name. Before anything that changes a terminal, the supervisor looks at it and
makes sure that it is still the incarnation it started (core, address, creation time, program). Changing calls on one
child go one at a time. All time is the event loop's.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from legion_terminal.client import HcClient
from legion_terminal.errors import SupervisorError
from legion_terminal.host import ID_VAR
from legion_terminal.parent import Parent
from legion_terminal.retiring import RETIRE_MS, Retirement
from legion_terminal.settle import (
    POLL_MS,
    Cancelled,
    Event,
    Failed,
    Missing,
    Observation,
    Replaced,
    Seen,
    SettleResult,
)
from legion_terminal.sight import Sight, difference, is_missing
from legion_terminal.spawn import child_labels, overlay, terminal_argv, terminal_name
from legion_terminal.spawning import Start, Started, start
from legion_terminal.steering import Esc, identified, interrupt, look, prompt
from legion_terminal.transcript import read_transcript, verdict
from legion_terminal.types import (
    AbortResult,
    Cancel,
    Capabilities,
    Child,
    RetireResult,
    SpawnRequest,
    SteerResult,
    Verdict,
)
from legion_terminal.waiting import until_settled

ROLE = "centurion"
LABEL_READ_MS = 3_000
COLLECT_MS = 500
COLLECT_PAUSE_MS = 50
TURN_AT_CHANGES_MS = 500


@dataclass(slots=True)
class _Keeping:
    """What the supervisor keeps about a child besides the child itself."""

    changes: asyncio.Lock = field(default_factory=asyncio.Lock)
    esc: Esc | None = None
    retiring: "asyncio.Task[RetireResult] | None" = None


class TerminalSupervisor:
    """A `Supervisor` whose children live in terminals.

    `env` is the supervisor's own environment. `memory_env` is what the memory feature adds to a child (D5). `poll_ms`:
    rest between two looks. `retire_ms` bounds a retire, `label_ms` the reading of the parent's labels.
    """

    def __init__(
        self,
        client: HcClient,
        env: Mapping[str, str],
        *,
        memory_env: Mapping[str, str | None] | None = None,
        poll_ms: int = POLL_MS,
        retire_ms: int = RETIRE_MS,
        label_ms: int = LABEL_READ_MS,
    ) -> None:
        self._client = client
        self._env = dict(env)
        self._memory_env = dict(memory_env or {})
        self._poll_ms = poll_ms
        self._retire_ms = retire_ms
        self._parent = Parent(client, self._env.get(ID_VAR) or None, label_ms)
        self._numbers = itertools.count(1)
        self._starting: dict[str, asyncio.Task[Child]] = {}
        self._called_off: set[asyncio.Task[Child]] = set()
        self._owned: dict[str, Child] = {}
        self._keeping: WeakKeyDictionary[Child, _Keeping] = WeakKeyDictionary()
        self._closed = False

    @property
    def capabilities(self) -> Capabilities:
        """Neither a disposition of prompts nor events (D10, D12)."""
        return Capabilities(prompt_disposition=False, events=False)

    async def spawn(self, request: SpawnRequest) -> Child:
        """Start a centurion on its task (D4 to D7). Raises SupervisorError; then no child is left behind unsaid.

        When the caller is cancelled meanwhile, whatever this start still brings up is retired again.
        """
        self._check_open(request.handle)
        if request.agent != ROLE:
            raise SupervisorError(
                "bad-request", f"the terminal backend is for a {ROLE}, not for {request.agent!r}", child=request.handle
            )
        name = terminal_name(request.run_id, request.handle)
        argv = tuple(terminal_argv(request))
        env = overlay(self._env, self._memory_env, request.env)
        self._check_free(name, request.handle)
        starting = self._starting[name] = asyncio.create_task(self._start(request, name, argv, env))
        try:
            return await asyncio.shield(starting)
        except SupervisorError as error:
            raise error.about(error.child or name) from error
        except asyncio.CancelledError:
            self._called_off.add(starting)
            starting.add_done_callback(self._undo)
            raise

    async def steer(self, child: Child, text: str) -> SteerResult:
        """Send text (D10). A half surrogate pair, which no terminal can take, is sent as U+FFFD.

        Raises SupervisorError: `blocked`, `not-started`, `gone` and others when nothing was sent; `outcome-unknown`
        when the reply was lost (the text may have arrived, and is not sent again).
        """
        async with self._changing(child):
            newest = read_transcript(child.session_file).prompt_id
            try:
                result = await prompt(self._client, child, _sendable(text))
            except SupervisorError as error:
                if error.known == "unknown":
                    child.prompt_id = newest
                raise
            child.prompt_id = newest
            return result

    async def abort(self, child: Child) -> AbortResult:
        """Interrupt the running turn (D10). A second abort of the same turn within 500 ms presses no second key."""
        async with self._changing(child) as kept:
            kept.esc = await interrupt(self._client, child, kept.esc)
            if kept.esc.error is not None:
                raise kept.esc.error
            return AbortResult()

    async def wait_settled(self, child: Child, timeout_ms: float, cancelled: Cancel | None = None) -> SettleResult:
        """Wait for the answer to the newest prompt (D8). Looks and nothing else; raises nothing for a timeout."""
        if child.retired:
            return _gone(child)
        return await until_settled(
            child, lambda: self._observe(child), timeout_ms, poll_ms=self._poll_ms, cancelled=cancelled
        )

    async def status(self, child: Child) -> Observation:
        """One look, now. Raises SupervisorError, `gone` when the child's terminal is not there any more."""
        self._check_open(child.name)
        return (await identified(self._client, child)).observation

    async def collect(self, child: Child) -> Verdict:
        """Read the verdict (D9), again for at most 500 ms while the newest entry is a prompt without an answer.

        Unknown while the newest prompt in the file is older than the newest steer: that answer answers something else.
        """
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
        """End the child and remove its terminal (D11). Never raises; several at once share one attempt."""
        if not child.name:
            child.retired = True
            return RetireResult(ended=True, removed=True)
        kept = self._kept(child)
        if kept.retiring is None or _may_go_on(kept.retiring):
            kept.retiring = asyncio.create_task(self._retire(child))
        return await asyncio.shield(kept.retiring)

    async def close(self) -> None:
        """End the bridge; children go on. Retirements under way are finished first."""
        self._closed = True
        await asyncio.gather(*self._called_off, return_exceptions=True)
        retiring = [kept.retiring for kept in self._keeping.values() if kept.retiring is not None]
        await asyncio.gather(*retiring, return_exceptions=True)
        await self._client.close()

    def _check_open(self, child: str) -> None:
        if self._closed:
            raise SupervisorError("closed", "the supervisor was closed", child=child)

    def _kept(self, child: Child) -> _Keeping:
        return self._keeping.setdefault(child, _Keeping())

    def _check_free(self, name: str, handle: str) -> None:
        owner = self._owned.get(name)
        if name in self._starting or (owner is not None and not owner.retired):
            raise SupervisorError(
                "name-taken",
                f"the name {name} is taken by {_who(owner, handle)} of this supervisor",
                child=name,
                hint="retire that child first, or use another handle",
            )

    async def _start(self, request: SpawnRequest, name: str, argv: tuple[str, ...], env: Mapping[str, str]) -> Child:
        try:
            await self._client.hello()
            labels = child_labels(await self._parent.labels())
            wanted = Start(name=name, argv=argv, env=env, labels=labels, cwd=request.cwd, caller=self._parent.address)
            child = self._child(request, wanted, await start(self._client, wanted, self._owns))
            self._owned[name] = child
            return child
        finally:
            del self._starting[name]

    def _undo(self, starting: "asyncio.Task[Child]") -> None:
        self._called_off.discard(starting)
        if not starting.cancelled() and starting.exception() is None:
            child = starting.result()
            self._kept(child).retiring = asyncio.create_task(self._retire(child))

    def _child(self, request: SpawnRequest, wanted: Start, started: Started) -> Child:
        sight = started.sight
        return Child(
            id=f"terminal/{next(self._numbers)}",
            mode="terminal",
            handle=request.handle,
            run_id=request.run_id,
            session_file=request.session_file,
            name=wanted.name,
            address=sight.address,
            core_id=sight.core_id,
            created_ms=sight.created_ms,
            argv=sight.argv or wanted.argv,
            prompt_turn=started.prompt_turn,
            spawn_turn=started.prompt_turn,
            last=sight.observation,
        )

    def _owns(self, sight: Sight) -> bool:
        return any(
            child.address == sight.address and child.core_id == sight.core_id and not child.retired
            for child in self._owned.values()
        )

    @asynccontextmanager
    async def _changing(self, child: Child) -> AsyncIterator[_Keeping]:
        """One changing call on a child at a time."""
        self._check_open(child.name)
        kept = self._kept(child)
        async with kept.changes:
            if child.retired:
                raise SupervisorError("gone", "it was retired", child=child.name)
            yield kept

    async def _observe(self, child: Child) -> Event:
        try:
            sight = await look(self._client, child)
        except SupervisorError as error:
            if error.code == "closed":
                return Cancelled()
            return Missing() if is_missing(error) else Failed()
        if difference(child, sight):
            return Replaced()
        child.last = sight.observation
        return Seen(sight.observation)

    async def _retire(self, child: Child) -> RetireResult:
        lock = self._kept(child).changes
        held = False
        try:
            async with asyncio.timeout(TURN_AT_CHANGES_MS / 1000):
                held = await lock.acquire()
        except TimeoutError:
            pass
        try:
            return await Retirement(self._client, child, poll_ms=self._poll_ms, limit_ms=self._retire_ms).run()
        except Exception as error:
            return RetireResult(ended=False, removed=False, note=f"{type(error).__name__}: {error}")
        finally:
            child.retired = True
            if self._owned.get(child.name) is child:
                del self._owned[child.name]
            if held:
                lock.release()


def _may_go_on(retiring: "asyncio.Task[RetireResult]") -> bool:
    """Whether an earlier attempt has ended without having removed the terminal."""
    return retiring.done() and (retiring.cancelled() or not retiring.result().removed)


def _sendable(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _who(owner: Child | None, handle: str) -> str:
    return f"child {owner.handle!r}" if owner is not None and not owner.retired else f"a start of {handle!r} under way"


def _gone(child: Child) -> SettleResult:
    last = child.last
    return SettleResult(
        settled=False,
        abnormal=True,
        reason="gone",
        last_turn=last.turn if last else None,
        last_status=last.status if last else None,
    )
