"""The Python supervisor as a system under test: `legion_terminal` behind the calls of `contracts.sut.base`."""

import asyncio
import dataclasses
import itertools
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

from contracts.sut.base import DEFAULT_WAIT_MS, METHODS, SPAWN_PARAMS, SutError, SutSetup
from legion_terminal.bridge import ProcessTransport
from legion_terminal.cards import load_card
from legion_terminal.client import HcClient
from legion_terminal.errors import SupervisorError
from legion_terminal.headless import HeadlessSupervisor
from legion_terminal.host import resolve_hc, terminal_host_available
from legion_terminal.inprocess import InProcessSupervisor
from legion_terminal.routing import RoutingSupervisor, arbitrate, check_spawn
from legion_terminal.rpc import DialogAnswer
from legion_terminal.settle import Observation, SettleResult
from legion_terminal.terminal import TerminalSupervisor
from legion_terminal.types import Child, SpawnMode, SpawnRequest, Supervisor, Verdict

_LISTS = ("tools", "extensions", "skills")
_FLAGS = {
    "worktree": "worktree",
    "allowNested": "allow_nested",
    "noExtensions": "no_extensions",
    "noSkills": "no_skills",
    "noContextFiles": "no_context_files",
}
_AS_GIVEN = {
    "branch": "worktree_branch",
    "model": "model",
    "provider": "provider",
    "systemPrompt": "system_prompt",
    "approve": "approve",
    "onBlocked": "on_blocked",
    "minFreeMb": "min_free_mb",
}
_KEPT_OF_A_CHILD = frozenset(
    (
        "id",
        "handle",
        "runId",
        "sessionFile",
        "address",
        "coreId",
        "createdMs",
        "argv",
        "spawnTurn",
        "promptId",
        "last",
        "retired",
    )
)
"""What the supervisor keeps of a child for itself, or was told by the caller."""


class PythonSut:
    """One routing supervisor with its backends. Raises `SutError` for every failure it reports.

    Headless children are processes and need real time: they are there when the links to the core are processes too.
    """

    def __init__(self, setup: SutSetup) -> None:
        env = dict(setup.env)
        connect = setup.connect or (lambda: ProcessTransport(resolve_hc(env), env))
        self._env = env
        self._terminal = TerminalSupervisor(HcClient(connect), env, memory_env=setup.memory_env, poll_ms=setup.poll_ms)
        self._backends: dict[SpawnMode, Supervisor] = {
            "inprocess": InProcessSupervisor(_answer_in_process),
            "terminal": self._terminal,
        }
        if setup.connect is None:
            self._backends["rpc"] = HeadlessSupervisor(env, memory_env=setup.memory_env)
        self._router = RoutingSupervisor(self._backends, env)
        self._children: dict[str, Child] = {}
        self._waits: dict[str, asyncio.Event] = {}
        self._tokens = itertools.count(1)
        self._closed = False
        self._handlers: Mapping[str, Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]] = {
            "host.available": self._host_available,
            "arbitrate": self._arbitrate,
            "card.load": self._card_load,
            "spawn": self._spawn,
            "steer": self._steer,
            "prompt": self._prompt,
            "follow_up": self._follow_up,
            "clear_queue": self._clear_queue,
            "dialogs": self._dialogs,
            "answer": self._answer,
            "abort": self._abort,
            "wait": self._wait,
            "cancel": self._cancel,
            "status": self._status,
            "collect": self._collect,
            "capabilities": self._capabilities,
            "retire": self._retire,
            "shutdown": self._shutdown,
        }

    async def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """One call of `METHODS`. Raises `SutError`; ValueError for a call that the protocol does not have."""
        if method not in self._handlers:
            raise ValueError(f"there is no call {method!r}")
        if unknown := sorted(set(params) - METHODS[method]):
            raise ValueError(f"{method} takes no {unknown[0]!r}")
        try:
            return await self._handlers[method](params)
        except SupervisorError as error:
            raise SutError(spell_error(error)) from error

    async def close(self) -> None:
        """Release the supervisor; children go on."""
        if not self._closed:
            self._closed = True
            await self._router.close()

    async def _host_available(self, params: dict[str, Any]) -> dict[str, Any]:
        return {"available": terminal_host_available(params.get("env", self._env))}

    async def _arbitrate(self, params: dict[str, Any]) -> dict[str, Any]:
        agent, worktree = str(params.get("agent", "centurion")), bool(params.get("worktree", True))
        return {"mode": arbitrate(agent, worktree, params.get("env", self._env))}

    async def _card_load(self, params: dict[str, Any]) -> dict[str, Any]:
        card = load_card(str(params["text"]), str(params.get("source", "card.md")))
        return {"name": card.name, "source": card.source, "body": card.body}

    async def _spawn(self, params: dict[str, Any]) -> dict[str, Any]:
        request = spawn_request(params)
        mode = params.get("mode")
        child = await (self._router.spawn(request) if mode is None else self._forced(mode, request))
        token = f"child-{next(self._tokens)}"
        self._children[token] = child
        return spell_child(child) | {"child": token}

    async def _forced(self, mode: object, request: SpawnRequest) -> Child:
        for known, backend in self._backends.items():
            if known == mode:
                check_spawn(known, request)
                return await backend.spawn(request)
        raise SupervisorError("mode-unavailable", f"there is no backend for mode {mode!r}", child=request.handle)

    def _owner(self, child: Child) -> Supervisor:
        return self._router if self._router.owner(child) is not None else self._backends[child.mode]

    async def _steer(self, params: dict[str, Any]) -> dict[str, Any]:
        child = self._child(params)
        result = await self._owner(child).steer(child, str(params["text"]))
        return spell(result, always=("started",))

    async def _prompt(self, params: dict[str, Any]) -> dict[str, Any]:
        child = self._child(params)
        return spell(await self._headless(child).prompt(child, str(params["text"])), always=("started",))

    async def _follow_up(self, params: dict[str, Any]) -> dict[str, Any]:
        child = self._child(params)
        return spell(await self._headless(child).follow_up(child, str(params["text"])), always=("started",))

    async def _clear_queue(self, params: dict[str, Any]) -> dict[str, Any]:
        child = self._child(params)
        return spell(await self._headless(child).clear_queue(child))

    async def _dialogs(self, params: dict[str, Any]) -> dict[str, Any]:
        child = self._child(params)
        shown = ("id", "method", "title", "message", "options")
        return {
            "open": [
                {key: value for key, value in spell(one).items() if key in shown}
                for one in self._headless(child).dialogs(child)
            ]
        }

    async def _answer(self, params: dict[str, Any]) -> dict[str, Any]:
        child = self._child(params)
        answer = DialogAnswer(confirmed=params.get("confirmed"), value=params.get("value"))
        return {"answered": await self._headless(child).answer(child, answer, params.get("dialog"))}

    def _headless(self, child: Child) -> HeadlessSupervisor:
        backend = self._backends[child.mode]
        if not isinstance(backend, HeadlessSupervisor):
            raise SupervisorError("bad-request", "only a headless child takes that", child=child.name or child.handle)
        return backend

    async def _abort(self, params: dict[str, Any]) -> dict[str, Any]:
        child = self._child(params)
        return spell(await self._owner(child).abort(child))

    async def _wait(self, params: dict[str, Any]) -> dict[str, Any]:
        child = self._child(params)
        token = str(params.get("token", ""))
        cancelled = asyncio.Event()
        if token:
            self._waits[token] = cancelled
        try:
            timeout_ms = float(params.get("timeoutMs", DEFAULT_WAIT_MS))
            return spell_settle(await self._owner(child).wait_settled(child, timeout_ms, cancelled))
        finally:
            self._waits.pop(token, None)

    async def _cancel(self, params: dict[str, Any]) -> dict[str, Any]:
        wait = self._waits.get(str(params["token"]))
        if wait is not None:
            wait.set()
        return {"cancelled": wait is not None}

    async def _status(self, params: dict[str, Any]) -> dict[str, Any]:
        child = self._child(params)
        return spell_observation(await self._owner(child).status(child))

    async def _collect(self, params: dict[str, Any]) -> dict[str, Any]:
        child = self._child(params)
        return spell_verdict(await self._owner(child).collect(child))

    async def _capabilities(self, params: dict[str, Any]) -> dict[str, Any]:
        """What the backend claims or the router in front of it: a claim of either is a claim.

        Without a child, and for one in a terminal, the terminal backend is asked; for any other child, its own.
        """
        child = self._child(params) if params.get("child") else None
        if child is not None and child.mode != "terminal":
            return spell(self._backends[child.mode].capabilities)
        claims = [spell(self._terminal.capabilities), spell(self._router.capabilities)]
        return {key: any(claim.get(key) for claim in claims) for claim in claims for key in claim}

    async def _retire(self, params: dict[str, Any]) -> dict[str, Any]:
        """The router is always asked, for it must not raise either; it leaves alone what it did not start."""
        child = self._child(params)
        result = await self._router.retire(child)
        if self._router.owner(child) is None:
            result = await self._backends[child.mode].retire(child)
        return spell(result, always=("note",))

    async def _shutdown(self, params: dict[str, Any]) -> dict[str, Any]:
        await self.close()
        return {}

    def _child(self, params: dict[str, Any]) -> Child:
        token = str(params.get("child", ""))
        if token not in self._children:
            raise ValueError(f"there is no child {token!r}")
        return self._children[token]


def spawn_request(params: Mapping[str, Any]) -> SpawnRequest:
    """The request that spawn parameters describe; what is left out has the default of `SpawnRequest`."""
    if unknown := sorted(set(params) - SPAWN_PARAMS):
        raise ValueError(f"spawn takes no {unknown[0]!r}")
    extra: dict[str, Any] = {key: tuple(params[key]) for key in _LISTS if key in params}
    extra |= {ours: bool(params[key]) for key, ours in _FLAGS.items() if key in params}
    extra |= {ours: params[key] for key, ours in _AS_GIVEN.items() if key in params}
    return SpawnRequest(
        agent=str(params.get("agent", "centurion")),
        run_id=str(params["runId"]),
        handle=str(params["handle"]),
        task=str(params["task"]),
        cwd=str(params["cwd"]),
        session_file=str(params["sessionFile"]),
        env=dict(params.get("env", {})),
        **extra,
    )


def spell_error(error: SupervisorError) -> dict[str, Any]:
    """A failure as the protocol spells it."""
    return {
        "code": error.code,
        "message": error.message,
        "child": error.child,
        "known": error.known,
        "kind": error.kind,
        "hint": error.hint,
    }


def spell(result: Any, *, always: Collection[str] = (), names: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Every field of a result in the contracts' spelling; None is left out (D12) but for the fields in `always`.

    No field is picked by name, so that one which a supervisor adds to its answers is seen. `names`: field to key, for
    a key that is not simply the field in camelCase.
    """
    told = {one.name: getattr(result, one.name) for one in dataclasses.fields(result)}
    renamed = names or {}
    return {
        renamed.get(name, _camel(name)): _plain(value)
        for name, value in told.items()
        if value is not None or name in always
    }


def spell_child(child: Child) -> dict[str, Any]:
    """What a start answers: what callers know of a child, and whatever is new in it."""
    return {key: value for key, value in spell(child).items() if key not in _KEPT_OF_A_CHILD}


def spell_settle(result: SettleResult) -> dict[str, Any]:
    """A settle result in the contracts' spelling; what is not known is left out (D12)."""
    return spell(result)


def spell_observation(seen: Observation) -> dict[str, Any]:
    """One observation in the contracts' spelling."""
    return spell(seen, always=("status",))


def spell_verdict(verdict: Verdict) -> dict[str, Any]:
    """A verdict in the contracts' spelling."""
    return spell(verdict, names={"outcome": "verdict"})


def _plain(value: Any) -> Any:
    """As JSON has it: lists, and no tuples."""
    return list(value) if isinstance(value, tuple) else value


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


async def _answer_in_process(request: SpawnRequest) -> str:
    return f"done in process: {request.task}"
