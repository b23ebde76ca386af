"""A tiny agent for a real terminal: it reports what it does by OSC 7501, and does what the words of a prompt say.

Stand-alone (copy it, or run it with `python -IS`); it starts in a few milliseconds and needs no model. Each line that
is typed, and the task that ends its argv, is a prompt: working, and done after `--work-ms` (default 200). Words in it:

    wait     works until Esc, which ends in idle        blocked  asks for permission; the next line or Esc answers
    idle     ends in idle instead of done               error    ends in error
    slow     works for a second more                    crash    kills itself while it works
    exit N   leaves with this code                      none     reports nothing about this prompt

Other options are passed over, so that it can be started as `pi` would be. With `--ask` it reports only after the
terminal has answered the question whether it understands reports. Ctrl-D at an empty line, SIGTERM and SIGHUP make it
say goodbye (`clear`) and leave with 0.
"""

import binascii
import os
import re
import select
import signal
import sys
import termios
import time
import tty

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

QUERY = b"\x1b]7501;?\x1b\\\x1b[c"
ANSWER = re.compile(rb"\x1b\]7501;\?[^\x07\x1b]*(?:\x07|\x1b\\)")
NOISE = re.compile(rb"\x1b\[\?[0-9;]*c|\x1b\[20[01]~|\x1b\]7501;\?[^\x07\x1b]*(?:\x07|\x1b\\)")
PASTED = re.compile(rb"\x1b\[200~(.*?)\x1b\[201~", re.DOTALL)
SLOW_S = 1.0
ESC_S = 0.01
"""How long bytes may follow an Esc before it is the key of that name."""
ASK_S = 2.0


def say(data: bytes) -> None:
    """Write all of these bytes to the terminal."""
    while data:
        data = data[os.write(1, data) :]


def report(state: str, text: str = "", kind: str = "") -> None:
    """Tell the terminal what we are at."""
    words = ["state=" + state]
    if state != "clear":
        words.append("app=reporting-agent")
    if kind:
        words.append("kind=" + kind)
    if text:
        line = text.splitlines()[0][:200]
        words.append("msg=" + binascii.b2a_base64(line.encode("utf-8", "replace"), newline=False).decode())
    say(b"\x1b]7501;" + ":".join(words).encode() + b"\x1b\\")


class Agent:
    """One conversation. `until` is when the present work is done, None while there is none or it has no end."""

    def __init__(self, work_s: float, *, reports: bool = True) -> None:
        self.work_s = work_s
        self.reports = reports
        self.state = "idle"
        self.until: float | None = None
        self.prompt = ""
        self.queue: list[str] = []

    def move(self, state: str, text: str = "", kind: str = "") -> None:
        """We are in this state now."""
        self.state = state
        if self.reports and "none" not in self.prompt.split():
            report(state, text, kind)

    def take(self, prompt: str) -> None:
        """A prompt, or the answer to a question."""
        say(("> " + prompt.replace("\n", "\r\n> ") + "\r\n").encode("utf-8", "replace"))
        if self.state == "blocked":
            self.go_on()
        elif self.state == "working":
            self.queue.append(prompt)
        else:
            self.begin(prompt)

    def begin(self, prompt: str) -> None:
        """Work on a prompt."""
        self.prompt = prompt
        words = prompt.split()
        if "exit" in words:
            number = words[words.index("exit") + 1 : words.index("exit") + 2]
            leave(int(number[0]) if number and number[0].isdigit() else 0, reports=self.reports)
        if "blocked" in words:
            self.move("working")
            self.move("blocked", prompt, "permission")
        else:
            self.go_on()

    def go_on(self) -> None:
        """Work, to the end if there is one."""
        words = self.prompt.split()
        self.move("working")
        if "crash" in words:
            os.kill(os.getpid(), signal.SIGKILL)
        ends = self.work_s + SLOW_S * ("slow" in words)
        self.until = None if "wait" in words else time.monotonic() + ends

    def finish(self) -> None:
        """The work is done."""
        self.until = None
        words = self.prompt.split()
        say(("answer to: " + self.prompt.replace("\n", " ") + "\r\n").encode("utf-8", "replace"))
        self.move("error" if "error" in words else "idle" if "idle" in words else "done", self.prompt)
        if self.queue:
            self.begin(self.queue.pop(0))

    def escape(self) -> None:
        """Stop, or decline what is asked."""
        if self.state == "blocked":
            self.go_on()
        elif self.state == "working":
            self.until = None
            self.queue.clear()
            self.move("idle")


def leave(code: int, *, reports: bool = True) -> "NoReturn":
    """Say goodbye and end."""
    if reports:
        report("clear")
    say(b"\x1b[?2004l")
    os._exit(code)


def typed(data: bytes) -> tuple[list[str], bytes]:
    """What was typed: texts, each submitted by Enter, `Esc`, `Ctrl-D`; and what has not ended yet."""
    data = PASTED.sub(lambda found: found[1].replace(b"\r", b"\n").replace(b"\n", b"\x00"), data)
    data = NOISE.sub(b"", data)
    found: list[str] = []
    while data:
        if data[:1] == b"\x1b":
            if len(data) > 1 and data[1:2] in b"[]O":
                return found, data
            found.append("Esc")
            data = data[1:]
            continue
        if data[:1] == b"\x04":
            found.append("Ctrl-D")
            data = data[1:]
            continue
        text, enter, rest = data.partition(b"\r")
        head, esc, _ = text.partition(b"\x1b")
        if esc:  # Esc is a key at once; what stands before it goes on waiting for its Enter
            found.append("Esc")
            data = head + data[len(head) + 1 :]
            continue
        if not enter:
            return found, data
        found.append(text.replace(b"\x00", b"\n").decode("utf-8", "replace"))
        data = rest
    return found, data


def answered() -> bool:
    """Whether the terminal understands reports; what else was typed meanwhile is dropped."""
    say(QUERY)
    got, until = b"", time.monotonic() + ASK_S
    while not ANSWER.search(got):
        ready, _, _ = select.select([0], [], [], max(0, until - time.monotonic()))
        if not ready or re.search(rb"\x1b\[\?[0-9;]*c", got):
            return False
        got += os.read(0, 4096)
    return True


def converse(agent: Agent) -> None:
    """Take what is typed, until the terminal is gone."""
    rest = b""
    while True:
        wait = None if agent.until is None else max(0, agent.until - time.monotonic())
        ready, _, _ = select.select([0], [], [], wait)
        if not ready:
            agent.finish()
            continue
        data = os.read(0, 65536)
        if not data:
            leave(0, reports=agent.reports)
        rest += data
        if rest.endswith(b"\x1b"):
            select.select([0], [], [], ESC_S)
        found, rest = typed(rest)
        for one in found:
            if one == "Esc":
                agent.escape()
            elif one == "Ctrl-D":
                leave(0, reports=agent.reports)
            elif one:
                agent.take(one)


def has_task(argv: list[str]) -> bool:
    """Whether the last word is a prompt, and no option or the value of one."""
    before = argv[-2] if len(argv) > 1 else "-"
    return not argv[-1].startswith("-") and (before in ("--", "--ask") or not before.startswith("-"))


def main(argv: list[str]) -> None:
    """Play an agent until told to leave."""
    work_ms = argv[argv.index("--work-ms") + 1] if "--work-ms" in argv[:-1] else "200"
    if os.isatty(0):
        tty.setraw(0, termios.TCSANOW)
        new = termios.tcgetattr(0)
        new[1] |= termios.OPOST
        termios.tcsetattr(0, termios.TCSANOW, new)
    say(b"\x1b[?2004h")
    agent = Agent(int(work_ms) / 1000, reports="--ask" not in argv or answered())
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: leave(0, reports=agent.reports))
    agent.move("idle")
    if has_task(argv):
        agent.take(argv[-1])
    converse(agent)


if __name__ == "__main__":
    try:
        main(sys.argv)
    except OSError:
        os._exit(1)
