"""The console of `hc-sim serve --console`: the terminals, what happens, and keys to play with (prompt_toolkit).

`Board` is what the console knows and does, without a screen; `run_console` puts it on one.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.filters import has_focus
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import Dimension, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.output import Output
from prompt_toolkit.widgets import TextArea

from hc_sim.control.commands import HELP, Control, ControlError, is_command, split
from hc_sim.trace import Event

LOG_LINES = 500
"""Lines of the log that are kept."""
LIST_LINES = 12
"""Lines that the list of terminals takes at most."""
MOVES = {"w": "working", "d": "done", "b": "blocked", "i": "idle", "e": "error", "x": "finish", "n": "none"}
"""Keys that move the terminal that is chosen."""
KEYS = "up down w d b i e n: move | x: finish | f: fault | v: watch | ?: help | :: command | q: quit"


class Board:
    """The state of a console: which terminal is chosen, whether calls are shown, and the newest lines of the log."""

    def __init__(self, control: Control) -> None:
        self.control = control
        self.log: deque[str] = deque(maxlen=LOG_LINES)
        self.watching = True
        self._chosen = ""

    def event(self, event: Event) -> None:
        """Something happened in the core."""
        line = self.control.show(event) if self.watching else None
        if line is not None:
            self.log.append(line)

    def rows(self) -> list[tuple[bool, str]]:
        """The terminals, a line each, and whether it is the chosen one."""
        chosen, terminals = self.chosen, self.control.stage.terminals()
        return [(one.address == chosen, line) for one, line in zip(terminals, self.control.table(), strict=True)]

    @property
    def chosen(self) -> str:
        """The address of the chosen terminal: the newest one until somebody chooses; "" if there is none."""
        addresses = [one.address for one in self.control.stage.terminals()]
        if self._chosen in addresses:
            return self._chosen
        return addresses[-1] if addresses else ""

    def choose(self, step: int) -> None:
        """Choose the terminal so many lines further down, staying inside the list."""
        addresses = [one.address for one in self.control.stage.terminals()]
        if addresses:
            at = addresses.index(self.chosen) + step
            self._chosen = addresses[min(max(at, 0), len(addresses) - 1)]

    def move(self, key: str) -> None:
        """Move the chosen terminal by one of the keys in `MOVES`."""
        self.carry_out(["move", self.chosen, MOVES[key]])

    def watch(self) -> None:
        """Show what happens, or stop showing it."""
        self.watching = not self.watching
        self.log.append(f"watching is {'on' if self.watching else 'off'}")

    def type(self, line: str) -> None:
        """Carry out a typed line: a command, or a word for the steps that wait for it."""
        try:
            words = split(line)
        except ControlError as error:
            self.log.append(f"! {error}")
            return
        if words:
            self.carry_out(words if is_command(words[0]) else ["fire", line.strip()])

    def carry_out(self, words: Sequence[str]) -> None:
        """Carry out one command; its answer, or why not, goes to the log."""
        try:
            self.log.extend(self.control.do(words))
        except ControlError as error:
            self.log.append(f"! {error}")


async def run_console(
    control: Control, ending: asyncio.Event, title: str, *, keys: Input | None = None, screen: Output | None = None
) -> None:
    """Show the console until `q`, Ctrl-C, or `ending` is set. `keys` and `screen` default to the terminal's own."""
    board = Board(control)
    board.log.extend([*HELP.splitlines(), "keys: " + ", ".join(f"{key} {state}" for key, state in MOVES.items())])
    app = _application(board, title, keys, screen)

    def refresh(event: Event) -> None:
        board.event(event)
        app.invalidate()

    stop = control.feed.watch(refresh)
    running = asyncio.ensure_future(app.run_async(handle_sigint=False))
    told = asyncio.ensure_future(ending.wait())
    try:
        await asyncio.wait((running, told), return_when=asyncio.FIRST_COMPLETED)
    finally:
        stop()
        told.cancel()
        if app.is_running and not running.done():
            app.exit()
        await running
        ending.set()


def _application(board: Board, title: str, keys: Input | None, screen: Output | None) -> Application[None]:
    def typed(buffer: Buffer) -> bool:
        if not buffer.text.strip():
            app.layout.focus(listing)
        board.type(buffer.text)
        return False  # the line is done with and leaves the input

    command = TextArea(
        height=1,
        prompt="> ",
        multiline=False,
        history=InMemoryHistory(),
        completer=WordCompleter(lambda: _completions(board)),
        accept_handler=typed,
    )
    listing = Window(
        FormattedTextControl(lambda: _list_text(board), focusable=True, show_cursor=False),
        height=lambda: Dimension(min=1, max=LIST_LINES, preferred=len(board.rows())),
    )
    log = Window(FormattedTextControl(lambda: "\n".join(list(board.log)[-_room(log) :])), wrap_lines=False)
    body = HSplit(
        [
            Window(FormattedTextControl(title), height=1, style="reverse"),
            listing,
            Window(height=1, char="-"),
            log,
            Window(FormattedTextControl(KEYS), height=1, style="reverse"),
            command,
        ]
    )
    app: Application[None] = Application(
        layout=Layout(body, focused_element=listing),
        key_bindings=_keys(board, listing, command),
        full_screen=True,
        input=keys,
        output=screen,
    )
    return app


def _room(window: Window) -> int:
    return window.render_info.window_height if window.render_info is not None else LIST_LINES


def _list_text(board: Board) -> StyleAndTextTuples:
    text: StyleAndTextTuples = []
    for chosen, line in board.rows():
        if chosen:
            text.append(("[SetCursorPosition]", ""))
        text.append(("bold" if chosen else "", f"{'>' if chosen else ' '} {line}\n"))
    return text


def _completions(board: Board) -> list[str]:
    names = [name for one in board.control.stage.terminals() for name in (one.address, one.name) if name]
    return [*(line.split()[0] for line in HELP.splitlines()), *MOVES.values(), *names]


def _keys(board: Board, listing: Window, command: TextArea) -> KeyBindings:
    keys = KeyBindings()
    at_list = has_focus(listing)

    def at(name: str, act: Callable[[KeyPressEvent], None]) -> None:
        keys.add(name, filter=at_list)(act)

    def prefill(event: KeyPressEvent, text: str) -> None:
        event.app.layout.focus(command)
        command.text = text
        command.buffer.cursor_position = len(text)

    for key in MOVES:
        at(key, lambda event: board.move(event.data))
    at("up", lambda _: board.choose(-1))
    at("down", lambda _: board.choose(1))
    at("v", lambda _: board.watch())
    at("?", lambda _: board.carry_out(["help"]))
    at("f", lambda event: prefill(event, "fault "))
    at(":", lambda event: prefill(event, ""))
    at("q", lambda event: event.app.exit())
    keys.add("c-c")(lambda event: event.app.exit())
    keys.add("escape", filter=has_focus(command), eager=True)(lambda event: event.app.layout.focus(listing))
    return keys
