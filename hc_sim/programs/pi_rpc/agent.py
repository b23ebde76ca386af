"""The agent behind the commands: its queues, its settings, its session, and the one run that may be going on."""

from __future__ import annotations

from . import messages
from .answers import Answers
from .run import Aborted, Run
from .script import DIALOGS, MODEL_CALLS, REPLY
from .session import Session, new_uuid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from .argv import Options
    from .process import Process, Timer
    from .run import Waiting
    from .tools import Worker


class Agent:
    """What the process tells of lines, answers and endings, and what it lets out again."""

    def __init__(self, process: Process, script: dict[str, Any], options: Options, session: Session) -> None:
        self.process, self.script, self.options, self.session = process, script, options, session
        self.model = (options.provider, options.model) if script["model"] else ("unknown", "unknown")
        self.tools = options.tools or messages.TOOLS
        self.steering: list[dict[str, Any]] = []
        self.follow_up: list[dict[str, Any]] = []
        self.settings = {"steering": "one-at-a-time", "follow_up": "one-at-a-time"}
        self.auto_retry = self.auto_compaction = True
        self.retrying = self.retry_cancelled = False
        self.abort_waits = False
        self.aborts: list[dict[str, Any]] = []
        self.workers: list[Worker] = []
        self.open_ask: tuple[str, dict[str, Any]] | None = None
        self._player: Generator[Any, Any, Any] | None = None
        self._timer: Timer | None = None
        self._replies = [[reply, reply["times"]] for reply in script["reply"]]
        self._calls = 0
        self._mark = 0
        self._answers = Answers(self)

    # what the process calls

    def line(self, line: bytes) -> None:
        """A line of stdin."""
        self._answers.line(line)

    def batch_end(self) -> None:
        """Everything that came in one read has been handed over."""
        self._answers.flush()

    def stop(self, how: str) -> bool:
        """TERM, HUP or the end of stdin: the run is aborted without another word. False: not while a dialog is open."""
        if self.open_ask is not None:
            return how != "SIGTERM"
        if self._player is not None:
            self.process.mute()
            self._advance(Aborted())
        self.end_workers()
        return True

    def begin(self, text: str) -> None:
        """A run that nobody asked for, unless one is going on."""
        if self._player is None:
            self.start(text)

    def end_workers(self) -> None:
        """End the tools that still run."""
        for worker in list(self.workers):
            worker.end()

    # what a run calls

    def emit(self, record: dict[str, Any]) -> None:
        """Say one record."""
        self.process.emit(record)

    def now_ms(self) -> int:
        """The time of the wall clock."""
        return self.process.wall_ms()

    def mark(self) -> None:
        """A model call begins here, if none has."""
        self._mark = self._mark or self.now_ms()

    def spent_ms(self) -> int:
        """How long the model call took; the next one begins anew."""
        spent, self._mark = (self.now_ms() - self._mark if self._mark else 0), 0
        return spent

    def next_call(self) -> int:
        """The number of the next tool call."""
        self._calls += 1
        return self._calls

    def next_reply(self) -> dict[str, Any]:
        """The first reply of the script that is not used up and fits the last words of the user."""
        said = ""
        for message in self.session.messages:
            said = messages.text_of(message) if message["role"] == "user" else said
        for entry in self._replies:
            reply, left = entry
            if reply["when"] not in said or left < 0:
                continue
            if left:
                entry[1] = left - 1 or -1
            if reply["do"] in MODEL_CALLS:
                self.mark()
            return dict(reply)
        return dict(REPLY)

    def blurt(self, reply: dict[str, Any]) -> None:
        """Say what the script has: records, bytes, words on stderr."""
        self.process.blurt(reply)

    def ask(self, asked: dict[str, Any]) -> Waiting:
        """Ask the person, and wait for the answer if the method has one."""
        request_id = new_uuid()
        self.open_ask = (request_id, asked) if asked["method"] in DIALOGS else None
        self.emit(messages.ask(request_id, asked))
        if self.open_ask is None:
            return {}
        answer = yield (request_id, asked["timeout_ms"])
        return answer or {"cancelled": True}

    def takes_all(self, queue: list[dict[str, Any]]) -> bool:
        """Whether everything in this queue is delivered at once."""
        return self.settings["steering" if queue is self.steering else "follow_up"] == "all"

    def queue_update(self) -> None:
        """Tell what waits."""
        steering, follow_up = ([messages.text_of(one) for one in queue] for queue in (self.steering, self.follow_up))
        self.emit({"type": "queue_update", "steering": steering, "followUp": follow_up})

    # what the commands call

    @property
    def busy(self) -> bool:
        """Whether a run is going on."""
        return self._player is not None

    def start(self, text: str) -> None:
        """Begin a run."""
        self.retry_cancelled = False
        self._player = Run(self).play(text)
        self._advance(None)

    def abort(self) -> bool:
        """Stop the run. False: there is none, or it cannot hear it yet, because a dialog is open."""
        if self._player is None:
            return False
        if self.open_ask is not None:
            self.abort_waits = True
            return False
        self._advance(Aborted())
        return True

    def answered(self, request_id: object, answer: dict[str, Any]) -> None:
        """The person answered; words about a request that is not open are nobody's."""
        if self.open_ask is None or self.open_ask[0] != request_id:
            return
        self.open_ask = None
        self._advance(answer)
        self.process.dialog_closed()

    def _advance(self, given: Aborted | dict[str, Any] | None) -> None:
        """Let the run go on until it waits again."""
        if self._timer is not None:
            self.process.cancel(self._timer)
            self._timer = None
        player = self._player
        if player is None:
            return
        try:
            waits = player.throw(given) if isinstance(given, Aborted) else player.send(given)
        except StopIteration:
            self._player = None
            self.open_ask = None
            self.abort_waits = False
            self._answers.run_over()
            return
        if isinstance(waits, tuple):
            if waits[1] is not None:
                request_id = waits[0]
                self._timer = self.process.after(waits[1], lambda: self.answered(request_id, {"cancelled": True}))
        elif waits is not None:
            self._timer = self.process.after(waits, lambda: self._advance(None))
