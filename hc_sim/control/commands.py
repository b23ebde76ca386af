"""The words that move a running fake core by hand: typed on stdin, into the console, or sent by `hc-sim ctl`."""

import re
import shlex
import tomllib
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, get_args

import msgspec

from hc_sim.faults import Fault, LinkFault, Restart
from hc_sim.model import METHODS, REFUSED, Terminal
from hc_sim.picture import WIDTH, draw_trace
from hc_sim.playing.stage import Blocked, Stage
from hc_sim.redact import redact_struct
from hc_sim.script.format import FileWrite, Finish, Step
from hc_sim.script.toml import nearest
from hc_sim.show import plain, show_event
from hc_sim.trace import Event, weight

RECENT_EVENTS = 5_000
"""Events that are kept for `trace` and `picture`."""
RECENT_BYTES = 32 * 1024 * 1024
"""About how many bytes of them; older ones are forgotten."""
TRACE_LINES = 20
"""Lines that `trace` shows if nothing else is said."""
MAX_WORDS = 64
"""Words of one command."""

S = TypeVar("S", bound=msgspec.Struct)

_KEY = re.compile(r"[a-z_]+(\.[a-z_]+)?")


class ControlError(Exception):
    """A command that cannot be carried out; the message says why, in one line."""


class Feed:
    """The newest events of a core, and those who want to see each one as it comes."""

    def __init__(self) -> None:
        self.recent: deque[Event] = deque()
        self._weights: deque[int] = deque()
        self._bytes = 0
        self._watchers: list[Callable[[Event], None]] = []

    def add(self, event: Event) -> None:
        """One more event has happened."""
        self.recent.append(event)
        self._weights.append(weight(event))
        self._bytes += self._weights[-1]
        while len(self.recent) > RECENT_EVENTS or self._bytes > RECENT_BYTES:
            self.recent.popleft()
            self._bytes -= self._weights.popleft()
        for watcher in list(self._watchers):
            watcher(event)

    def watch(self, watcher: Callable[[Event], None]) -> Callable[[], None]:
        """Show every event from now on; returns how to stop that, which may be called twice."""
        self._watchers.append(watcher)

        def stop() -> None:
            if watcher in self._watchers:
                self._watchers.remove(watcher)

        return stop


Show = Callable[[Event], str | None]
"""How an event is shown to a person, in one line or not at all."""


class Control:
    """Carries out commands on a core. A command is a list of words; its answer is a list of lines.

    `show` says how an event is shown; what looks like a secret in the terminals is hidden unless `secrets`.
    """

    def __init__(self, stage: Stage, feed: Feed, show: Show = show_event, *, secrets: bool = False) -> None:
        self.stage = stage
        self.feed = feed
        self.show = show
        self.secrets = secrets

    def table(self, target: str = "") -> list[str]:
        """The terminals as lines of columns, or only the one with this address or name."""
        found = [one for one in self.stage.terminals() if not target or target in (one.address, one.name)]
        return table(found if self.secrets else [redact_struct(one) for one in found])

    def do(self, words: Sequence[str]) -> list[str]:
        """Carry out one command. Raises `ControlError` for what is no command, or cannot be done."""
        if not words or len(words) > MAX_WORDS:
            raise ControlError(f"a command has 1 to {MAX_WORDS} words; see help")
        command = _COMMANDS.get(words[0])
        if command is None:
            raise ControlError(f"no command {plain(words[0])!r}; {nearest(words[0], list(_COMMANDS))}")
        try:
            return command(self, list(words[1:]))
        except LookupError as error:
            raise ControlError(plain_line(error.args[0] if error.args else error)) from None
        except ValueError as error:
            raise ControlError(plain_line(error)) from None


def is_command(word: str) -> bool:
    """Whether a line that begins with this word is a command."""
    return word in _COMMANDS


def split(line: str) -> list[str]:
    """The words of a line, quoted as for a shell. Raises `ControlError` for a quote that is not closed."""
    try:
        return shlex.split(line)
    except ValueError as error:
        raise ControlError(f"{error}: {plain(line)}") from None


def plain_line(text: object) -> str:
    """A message that cannot move a cursor, whatever it quotes."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in str(text)[:1_000])


# ---------------------------------------------------------------- the commands


def table(terminals: Sequence[Terminal]) -> list[str]:
    """Terminals as lines of columns: address, name, state, turn, status, program."""
    rows = [_row(terminal) for terminal in terminals]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _row(terminal: Terminal) -> tuple[str, ...]:
    status = terminal.status
    words = ["-"] if status is None else [status.state, status.kind or "", status.msg or ""]
    end = terminal.signal or (f"exit {terminal.exit_code}" if terminal.state == "finished" else "")
    return (
        terminal.address,
        plain(terminal.name or "-"),
        f"{terminal.state} {end}".strip(),
        f"turn {terminal.turn}",
        plain(" ".join(word for word in words if word)),
        plain(terminal.argv[0]),
    )


def _ls(control: Control, words: list[str]) -> list[str]:
    _no_more(words)
    return control.table()


def _move(control: Control, words: list[str]) -> list[str]:
    if len(words) < 2:
        raise ControlError(f"move TERMINAL STATE; a state is one of {', '.join(_MOVES)}")
    target, state, *rest = words
    if state not in _MOVES:
        raise ControlError(f"no state {plain(state)!r}; {nearest(state, _MOVES)}")
    agent = control.stage.agent(target)
    if state == "working":
        agent.working(_message(rest))
    else:
        agent.act(_step(state, rest))
    return control.table(target) or [f"{plain(target)} is gone"]


_MOVES = ("working", "done", "blocked", "idle", "error", "none", "finish", "vanish", "write")


def _step(state: str, rest: list[str]) -> Step:
    match state:
        case "blocked":
            kind = rest.pop(0) if rest and rest[0] in get_args(Blocked) else "permission"
            return Step(status="blocked", kind=kind, msg=_message(rest))  # type: ignore[arg-type]
        case "finish":
            end, *more = rest or ["0"]
            _no_more(more)
            if end.isascii() and end.isdigit() and len(end) <= 3:
                return Step(finish=Finish(code=int(end)))
            if re.fullmatch(r"SIG[A-Z0-9]{2,8}", end):
                return Step(finish=Finish(signal=end))
            raise ControlError(f"finish takes an exit code or a signal such as SIGKILL, not {plain(end)!r}")
        case "vanish":
            _no_more(rest)
            return Step(vanish=True)
        case "write":
            if not rest:
                raise ControlError("write takes the text that goes into the agent's session file")
            return Step(file=FileWrite(append=" ".join(rest)))
        case _:
            return Step(status=state, msg=_message(rest))  # type: ignore[arg-type]


def _fault(control: Control, words: list[str]) -> list[str]:
    if len(words) < 2:
        raise ControlError("fault METHOD KEY=VALUE ...; for example: fault terminal.send reply=false")
    method, *settings = words
    known = [*METHODS, *REFUSED]
    if method != "*" and method not in known:
        raise ControlError(f"no method {plain(method)!r}; {nearest(method, known)}")
    control.stage.inject(_settings(Fault, settings, method=method))
    return [f"planned: {plain(' '.join(words))}"]


def _link(control: Control, words: list[str]) -> list[str]:
    if not words:
        raise ControlError("link KEY=VALUE ...; for example: link close_after=2")
    control.stage.inject(_settings(LinkFault, words))
    return [f"planned: {plain(' '.join(words))}"]


def _restart(control: Control, words: list[str]) -> list[str]:
    control.stage.restart(_settings(Restart, words))
    return [f"restarted; {len(control.stage.terminals())} terminals are there"]


def _settings(kind: type[S], settings: list[str], **plan: Any) -> S:
    """A fault of this kind from its words. Raises `ControlError` for what it does not have."""
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not _KEY.fullmatch(key):
            raise ControlError(f"{plain(setting)!r} is not KEY=VALUE")
        place, dot, inner = key.partition(".")
        if place not in kind.__struct_fields__:
            raise ControlError(f"there is no {place!r} here; {nearest(place, kind.__struct_fields__)}")
        if dot:
            plan.setdefault(place, {})[inner] = _value(text)
        else:
            plan[place] = _value(text)
    try:
        return msgspec.convert(plan, kind)
    except msgspec.ValidationError as error:
        raise ControlError(f"that is no fault: {error}") from None


def _value(text: str) -> Any:
    """What the text says in TOML, or the text itself: `false`, `3`, `[1, 2]`, `after`."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return parsed["value"] if parsed.keys() == {"value"} else text


def _fire(control: Control, words: list[str]) -> list[str]:
    if len(words) != 1:
        raise ControlError("fire NAME")
    known = control.stage.hand_names()
    if words[0] not in known:
        there = nearest(words[0], known) if known else "no step of the script waits for any (by_hand)"
        raise ControlError(f"no step by hand has the name {plain(words[0])!r}; {plain_line(there)}")
    fired = control.stage.fire(words[0])
    return [f"{fired} step{'' if fired == 1 else 's'} by hand: {plain(words[0])}"]


def _trace(control: Control, words: list[str]) -> list[str]:
    count = _number(words, TRACE_LINES)
    lines = [line for event in control.feed.recent if (line := control.show(event)) is not None]
    return lines[-count:]


def _picture(control: Control, words: list[str]) -> list[str]:
    return draw_trace(tuple(control.feed.recent), _number(words, WIDTH), secrets=control.secrets)


def _help(_: Control, words: list[str]) -> list[str]:
    _no_more(words)
    return HELP.splitlines()


HELP = """\
ls                           the terminals
move TERMINAL working|done|idle|error [MESSAGE]
move TERMINAL blocked [permission|question|auth] [MESSAGE]
move TERMINAL none           it reports nothing any more
move TERMINAL finish [CODE|SIGNAL]
move TERMINAL vanish
move TERMINAL write TEXT     a line for its session file
fault METHOD KEY=VALUE ...   what goes wrong at the next such call: reply=false, delay_ms=500, error.kind=busy
link KEY=VALUE ...           what goes wrong with the next connection: close_after=2, chunk_bytes=1
restart [KEY=VALUE ...]      the core ends and comes back: terminals=lost, down_ms=2000, new_core_id=true
fire NAME                    fire the steps that wait for this name (by_hand)
trace [N]                    the last lines of what happened
picture [WIDTH]              what happened as a picture
help                         this"""

_COMMANDS: dict[str, Callable[[Control, list[str]], list[str]]] = {
    "ls": _ls,
    "move": _move,
    "fault": _fault,
    "link": _link,
    "restart": _restart,
    "fire": _fire,
    "trace": _trace,
    "picture": _picture,
    "help": _help,
}


def _message(rest: list[str]) -> str | None:
    return " ".join(rest) or None


def _no_more(words: list[str]) -> None:
    if words:
        raise ControlError(f"nothing is to follow here, but {plain(words[0])!r} does")


def _number(words: list[str], default: int) -> int:
    if not words:
        return default
    first, *more = words
    _no_more(more)
    if not (first.isascii() and first.isdigit() and 0 < int(first[:9]) <= RECENT_EVENTS):
        raise ControlError(f"{plain(first)!r} is no number from 1 to {RECENT_EVENTS}")
    return int(first)
