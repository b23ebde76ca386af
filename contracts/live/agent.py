"""The program that live checks start in terminals: a small agent that does what its text says, and reports by OSC 7501.

Standard library only, one file, started as `python -IS agent.py ...` or, as a copy with a first line, under the name
`pi`. It never lives longer than `LIFE_S`, and writes what happens to it into a log of literals, one a line.

    agent.py acts LOG WORDS...     carries out the words, then waits for prompts
    agent.py home LOG PID START    stands there for as long as that process lives, then ends
    pi ... --session FILE ... TASK a task whose last line may be `acts: WORDS`; its log is FILE + ".log"

Words: working idle done error clear blocked[:KIND] only:STATE (a report of nothing but its state) full:STATE (one of
everything that can be said) sleep:MS say:TEXT prompt:TEXT (what is printed without an end of line)
accept reject (an answer for the session file) deaf (Esc does nothing) tough (hangup and termination do nothing)
sub:STATE (a report of a part of the program) plain (as the first word: pasted text need not be bracketed) exit:CODE
signal:NAME.
"""

# ruff: noqa: SIM105 - a run starts dozens of these: each import that they do without is felt

import binascii
import os
import select
import signal
import sys
import termios
import time
import tty

LIFE_S = 900
"""No program of a live run lives longer, whatever becomes of those who started it."""
ESC_MS = 25
"""An escape that nothing follows for so long is the key."""
OWNER_S = 0.5
"""How often a home looks for its owner."""
KEPT_ENV = ("PATH", "HOME", "TERM", "HC_TERMINAL_ID", "HC_TERMINAL_SOCKET")
"""Variables that are written down, beside those of a run (`LGV_`): what else there is may be secret."""
TITLE, MESSAGE, PROGRESS = "“title” one", "ünïcode: is it?", 40
"""What a full report says."""
DEFAULT = "working sleep:40 accept done"
MAX_TEXT = 1_048_576


class Stopped(Exception):  # noqa: N818 - Esc was pressed; not an error
    """Esc was pressed while something was being done."""


class Agent:
    """One program: its terminal, its log, its session file."""

    def __init__(self, log: str, session: str = "") -> None:
        self.log_path = log
        self.session = session
        self.buffer = b""
        self.paste: bytes | None = None
        self.typed = b""
        self.texts: list[str] = []
        self.working = False
        self.deaf = False
        self.tough = False
        self.pasted = False
        self.entry = 0

    def log(self, what: str, **values: object) -> None:
        """One line of the log, written at once: a literal, for which nothing has to be imported."""
        line = ascii({"what": what, **values}) + "\n"
        number = os.open(self.log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(number, line.encode())
        os.close(number)

    def out(self, text: str) -> None:
        """To the terminal."""
        try:
            os.write(1, text.encode())
        except OSError:
            pass

    def report(self, state: str, kind: str = "", *, bare: bool = False, part: str = "", full: bool = False) -> None:
        """One report of the program's status, or of a part of it."""
        self.working = self.working if part else state == "working"
        pairs = [f"state={state}"]
        if not bare and state != "clear":
            pairs.append("app=lglive")
            pairs.append("msg=" + _coded(MESSAGE if full else f"is {state}"))
        if full:
            pairs += ["title=" + _coded(TITLE), f"progress={PROGRESS}"]
        if part:
            pairs.append(f"id={part}")
        if kind:
            pairs.append(f"kind={kind}")
        self.out("\x1b]7501;" + ":".join(pairs) + "\x1b\\")

    def act(self, word: str) -> None:
        """Carry out one word."""
        name, _, value = word.partition(":")
        if name in ("working", "idle", "done", "error", "clear"):
            self.report(name)
        elif name == "blocked":
            self.report("blocked", value or "permission")
        elif name in ("only", "full"):
            self.report(value, bare=name == "only", full=name == "full")
        elif name == "sleep":
            self.rest(int(value))
        elif name in ("say", "prompt"):
            self.out(value + ("\r\n" if name == "say" else ""))
        elif name in ("accept", "reject"):
            self.answer(f"VERDICT: {name}")
        elif name == "deaf":
            self.deaf = True
        elif name == "tough":
            self.tough = True
            self.log("tough")
        elif name == "sub":
            self.report(value, part="part")
        elif name == "exit":
            self.log("exit", code=int(value))
            sys.exit(int(value))
        elif name == "signal":
            number = getattr(signal, value)
            try:
                signal.signal(number, signal.SIG_DFL)
            except (OSError, ValueError):
                pass
            os.kill(os.getpid(), number)

    def carry_out(self, text: str, words: str) -> None:
        """Carry out words; Esc ends that in idle."""
        if self.session:
            self.entry_of("user", text)
        try:
            for word in words.split():
                self.act(word)
        except Stopped:
            self.report("idle")

    def entry_of(self, role: str, text: str) -> None:
        """A message in the session file."""
        before = f"m{self.entry}" if self.entry else None
        self.entry += 1
        message: dict[str, object] = {"role": role, "content": [{"type": "text", "text": text}]}
        if role == "assistant":
            message["stopReason"] = "stop"
        self.append({"type": "message", "id": f"m{self.entry}", "parentId": before, "message": message})

    def append(self, value: object) -> None:
        """A line of the session file."""
        import json

        number = os.open(self.session, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(number, (json.dumps(value) + "\n").encode())
        os.close(number)

    def answer(self, text: str) -> None:
        """The answer to the newest prompt."""
        if self.session:
            self.entry_of("assistant", text)

    def rest(self, ms: int) -> None:
        """Let time go by and listen meanwhile. Raises `Stopped` for Esc while working."""
        until = time.monotonic() + ms / 1000
        while (left := until - time.monotonic()) > 0:
            self.listen(left)

    def listen(self, seconds: float) -> None:
        """Take in what is typed, for at most so long."""
        ready, _, _ = select.select([0], [], [], seconds)
        if not ready:
            return
        try:
            data = os.read(0, 65536)
        except OSError:
            data = b""
        if not data:
            self.log("hangup")
            sys.exit(0)
        self.buffer += data
        while self.buffer:
            if not self.take():
                break

    def take(self) -> bool:
        """Take one key or piece of text off the buffer; false when more has to come."""
        data = self.buffer
        if self.paste is not None:
            end = data.find(b"\x1b[201~")
            if end < 0:
                return False
            self.typed += data[:end]
            self.paste, self.buffer = None, data[end + 6 :]
            return True
        if data.startswith(b"\x1b[200~"):
            self.paste, self.buffer, self.pasted = b"", data[6:], True
            return True
        if data[0] == 0x1B:
            return self.escape()
        self.buffer = data[1:]
        if data[0] == 0x0D:
            self.submit()
        elif data[0] == 0x03:
            self.log("key", key="ctrl-c")
            sys.exit(130)
        elif len(self.typed) < MAX_TEXT:
            self.typed += data[:1]
        return True

    def escape(self) -> bool:
        """An escape: the key if nothing follows, else a sequence that means nothing here."""
        if len(self.buffer) == 1:
            ready, _, _ = select.select([0], [], [], ESC_MS / 1000)
            if ready:
                self.buffer += os.read(0, 65536)
                return True
            self.buffer = b""
            self.log("key", key="esc")
            if self.working and not self.deaf:
                raise Stopped
            return True
        length = 2
        if self.buffer[1:2] == b"[":
            while length < len(self.buffer) and not 0x40 <= self.buffer[length] <= 0x7E:
                length += 1
            length += 1
        elif self.buffer[1:2] == b"]":
            ends = [place for end in (b"\x07", b"\x1b\\") if (place := self.buffer.find(end, 2)) > 0]
            length = min(ends) + 2 if ends else len(self.buffer)
        self.buffer = self.buffer[length:]
        return True

    def submit(self) -> None:
        """Enter was pressed."""
        text, self.typed = self.typed.decode("utf-8", "replace"), b""
        if text.strip():
            self.log("text", text=text, pasted=self.pasted)
            self.pasted = False
            self.texts.append(text)

    def serve(self, first: str, words: str) -> None:
        """Carry out the first text, then every prompt, for ever."""
        if not words.startswith("plain"):
            self.out("\x1b[?2004h")
        if first:
            self.carry_out(first, words)
        while True:
            while self.texts:
                text = self.texts.pop(0)
                self.carry_out(text, words_in(text))
            try:
                self.listen(3600)
            except Stopped:
                pass


def _coded(text: str) -> str:
    return binascii.b2a_base64(text.encode(), newline=False).decode()


def words_in(text: str) -> str:
    """What a prompt asks for: the words behind `acts:`, else one plain turn."""
    _, mark, words = text.rpartition("acts:")
    return words.split("\n")[0] if mark else DEFAULT


def home(log: str, pid: int, start: str) -> None:
    """Stand there while the owner lives."""
    agent = Agent(log)
    begin(agent)
    while alive(pid, start):
        try:
            agent.listen(OWNER_S)
        except Stopped:
            pass


def alive(pid: int, start: str) -> bool:
    """Whether this process is there and is the one that it was."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:  # noqa: PTH123 - standard library only, and quick to start
            fields = stream.read().rpartition(b")")[2].decode().split()
        return fields[0] not in ("Z", "X") and (not start or fields[19] == start)
    except (OSError, IndexError):
        return True


def begin(agent: Agent) -> None:
    """Raw mode, a bounded life, and the first line of the log."""
    signal.alarm(LIFE_S)
    for name in ("SIGHUP", "SIGTERM"):
        signal.signal(getattr(signal, name), lambda number, _: fall(agent, number))
    try:
        tty.setraw(0)
        terminal = True
    except (termios.error, OSError):
        terminal = False
    env = {name: value for name, value in os.environ.items() if name in KEPT_ENV or name.startswith("LGV_")}
    agent.log("start", argv=sys.argv, env=env, cwd=os.getcwd(), tty=terminal)  # noqa: PTH109


def fall(agent: Agent, number: int) -> None:
    """A signal came: it is written down, and ends the program as it would have."""
    agent.log("signal", name=signal.Signals(number).name, at=round(time.monotonic() * 1000))
    if agent.tough:
        return
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def main(argv: list[str]) -> None:
    """Run one command line."""
    if argv[1:2] == ["acts"]:
        agent = Agent(argv[2])
        begin(agent)
        agent.serve("acts", " ".join(argv[3:]))
    elif argv[1:2] == ["home"]:
        home(argv[2], int(argv[3]), argv[4] if len(argv) > 4 else "")
    else:
        session = argv[argv.index("--session") + 1]
        agent = Agent(session + ".log", session)
        begin(agent)
        agent.append({"type": "session", "version": 3, "id": "live", "cwd": os.getcwd()})  # noqa: PTH109
        agent.report("idle")
        agent.serve(argv[-1], words_in(argv[-1]))


if __name__ == "__main__":
    main(sys.argv)
