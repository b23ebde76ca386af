"""What is known of one headless child, and when a wait for it is over. Pure: messages and exits go in.

The theory. A *run* begins with the first agent_start after the last one has ended and ends with agent_settled; what
lies between (agent_end, retries, compactions, queued texts) is inside it. Runs are counted: `turn` is the number of
runs begun. A prompt remembers the count from the moment before it was written (`after_turn`) and is answered by the end
of a later run. So the end of an older run never settles it, and events that overtake the answer to it do no harm.

A prompt that was queued belongs to the run under way and is answered with it. One that was refused is as if it had
never been. One that was accepted and starts no run is never answered: an acknowledgement is no result.

    run under way   the prompt's run has ended   since this wait began   settled
    no              yes                          any                     yes
    yes             yes                          yes                     yes     (its end and a new start in one read)
    yes             yes                          no                      not yet (a later run is at work)
    any             no                           any                     not yet, unless the process has ended
"""

from dataclasses import dataclass, field
from typing import Final

from legion_terminal.rpc.exit_table import Ending, Exit, exit_ending, settle_result
from legion_terminal.rpc.messages import AnswerEnded, Dialog, Event, RunSettled, RunStarted, UserText
from legion_terminal.settle import Observation, SettleResult

MAX_QUEUED: Final = 256
"""How many queued texts are remembered; of further ones only the run's end is known."""


@dataclass(slots=True, eq=False)
class Prompt:
    """One prompt: answered by the end of a run above `after_turn`. `before` is the one before it, while undecided.

    `taken`: it was accepted. Until then an end without a beginning is that of an older run, told twice.
    """

    after_turn: int
    before: "Prompt | None" = None
    taken: bool = False


@dataclass(slots=True, eq=False)
class Life:
    """The state of one child. `exit` is set once, when the exit is judged; `retiring` when a retire was asked for."""

    turn: int = 0
    running: bool = False
    ends: int = 0
    settled_turn: int = 0
    aborted: bool | None = None
    stop: str | None = None
    unconfirmed: int = 0
    prompt: Prompt | None = None
    queued: list[str] = field(default_factory=list)
    heard: set[str] = field(default_factory=set)
    dialogs: dict[str, Dialog] = field(default_factory=dict)
    exit: Exit | None = None
    retiring: bool = False
    retired_first: bool = False
    why: str | None = None

    def take(self, event: Event) -> None:
        """Take in what the child said. Answers and questions are not decided here."""
        match event:
            case RunStarted():
                self._start()
            case RunSettled(aborted):
                self._settle(aborted)
            case UserText(text):
                if text in self.queued:
                    self.queued.remove(text)
                elif len(self.heard) < MAX_QUEUED:
                    self.heard.add(text)
            case AnswerEnded(stop):
                self.stop = stop
            case _:
                pass

    def asked(self) -> Prompt:
        """A prompt is about to be written: it is the newest from here on."""
        self.prompt = Prompt(self.turn, self.prompt)
        self.heard.clear()
        return self.prompt

    def accepted(self, prompt: Prompt, disposition: str | None, text: str) -> None:
        """The child took the prompt: it starts a run, or joins the one under way (`queued`)."""
        if disposition == "queued":
            if prompt.before is not None:
                prompt.after_turn = prompt.before.after_turn
            if len(self.queued) < MAX_QUEUED and text not in self.heard:  # else it was taken up before it was answered
                self.queued.append(text)
        prompt.taken = True
        prompt.before = None

    def refused(self, prompt: Prompt) -> None:
        """The child did not take the prompt: the one before it is the newest again."""
        if prompt.before is not None:
            prompt.after_turn = prompt.before.after_turn
            if self.prompt is prompt:
                self.prompt = prompt.before
        prompt.before = None

    def cleared(self) -> None:
        """The queue was emptied."""
        self.queued.clear()

    def ended(self, exit_: Exit, why: str | None) -> None:
        """The process has ended and everything it said was taken in. `why`: the end of its error output."""
        self.exit = exit_
        self.why = why
        self.retired_first = self.retiring

    def settled(self, prompt: Prompt | None, since: int) -> bool:
        """Whether the run of this prompt has ended. `since`: `ends` when the wait began."""
        if prompt is None or self.settled_turn <= prompt.after_turn:
            return False
        return not self.running or self.ends > since or self.exit is not None

    def ending(self, prompt: Prompt | None, since: int) -> Ending | None:
        """Whether a wait is over by what the child did, and in which row of the exit table; None: not yet."""
        if self.settled(prompt, since):
            return "agent-settled"
        if self.exit is not None:
            return exit_ending(self.exit, retiring=self.retired_first)
        return None

    def result(self, ending: Ending) -> SettleResult:
        """The result of a wait that ended so, now."""
        seen = self.observation()
        return settle_result(
            ending,
            exit_=self.exit,
            aborted=self.aborted,
            unconfirmed=self.unconfirmed,
            last_turn=seen.turn,
            last_status=seen.status,
            detail=self._detail(ending),
        )

    def observation(self) -> Observation:
        """The child as it is now. An aborted run leaves it idle, one that the model failed leaves it in error."""
        exit_ = self.exit or Exit()
        return Observation(
            turn=self.turn,
            status=self._status(),
            state="running" if self.exit is None else "finished",
            exit_code=exit_.code,
            signal=exit_.signal,
        )

    def _status(self) -> str:
        if self.dialogs and self.exit is None:
            return "blocked"
        if self.running:
            return "working"
        if not self.settled_turn or self.aborted:
            return "idle"
        return "error" if self.stop == "error" else "done"

    def _start(self) -> None:
        if not self.running:
            self.turn += 1
            self.running = True
            self.stop = None

    def _settle(self, aborted: bool | None) -> None:
        if not self.running:
            if self.prompt is None or not self.prompt.taken or self.turn > self.prompt.after_turn:
                return
            self.turn += 1  # a pi that does not say when a run begins
        self.running = False
        self.ends += 1
        self.settled_turn = self.turn
        self.aborted = aborted
        self.unconfirmed = len(self.queued)
        self.queued.clear()

    def _detail(self, ending: Ending) -> str | None:
        if self.exit is None or not ending.startswith("exit"):
            return None
        said = f": {self.why}" if self.why else ""
        return f"it ended with {self.exit}{said}"
