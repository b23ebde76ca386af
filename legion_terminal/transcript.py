"""D9: from a session file to the last turn's output, and from that to a verdict.

**Which answer counts.** A session file is a tree: every entry names its parent. A resumed agent, a jump back or a
second process makes a new branch, and the physically last line can belong to one that was left. Two witnesses must
agree before anything is believed:

- the *newest prompt*, the user message that comes last in the file: only what descends from it can answer it;
- the *last record*, the one the agent itself would go on from: it must lie on that same branch.

If the last record lies elsewhere, or the newest prompt's own branch is forked, no verdict is given. A prompt that was
lost (torn, mangled, too long a line) still counts as the newest one, with no answer. So an answer to an earlier prompt
is never taken for the current one. Of the answers to the newest prompt the newest alone counts, and only when it ended
of its own accord (`stop`), asks for no tool and was not withdrawn by a later edit. User text, tool output, compaction
summaries, custom entries and notices are no answers, whatever they say.

A second header with another id begins another session: everything before it is forgotten. Where the header stands, or
whether there is one, does not matter otherwise.

**What a verdict is.** One line of the answer, on its own:

    line     = [up to 3 spaces] mark "verdict" mark [blanks] ":" mark [blanks] mark word mark ["." | "!"] mark [blanks]
    word     = "accept" | "reject" | "unknown"
    mark     = up to 3 of "*" and "_" (Markdown emphasis)

in capitals or not. Nothing else may stand on the line: not a second word, a quotation mark, a list bullet or code
quotes. Lines inside a fenced code block do not count. Several such lines must say the same, or the verdict is unknown.
"""

import io
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, cast

from legion_terminal.session_lines import Item, Lost, Record, read_line, read_lines
from legion_terminal.types import Outcome, Verdict

MAX_FILE_BYTES: Final = 4 * 2**30
"""The largest session file that is read."""
MAX_BRANCH: Final = 1_000_000
"""How many entries behind one prompt are followed."""
_BUFFER_BYTES: Final = 2**20

Role = Literal["user", "assistant", "toolResult"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """What a session file says of its newest prompt.

    `reason` is None exactly when the prompt has a final answer; else it says why not. `last_turn_output` is the text of
    the newest answer on the prompt's branch, as far as it goes, and empty where the newest message asks for a tool, is
    a tool's result or was withdrawn. `newest_role` is who spoke last there ("user": no answer yet; so too for a prompt
    that cannot be read). `prompts` counts the user messages of the session; `prompt_id` and `answer_id` are the ids of
    the newest prompt and of its newest answer. `bad_lines` counts what could not be read.
    """

    last_turn_output: str = ""
    stop_reason: str | None = None
    newest_role: Role | None = None
    reason: str | None = None
    prompts: int = 0
    prompt_id: str | None = None
    answer_id: str | None = None
    bad_lines: int = 0


def read_transcript(path: str) -> Transcript:
    """Read the session file at `path`, whole and only now. It is opened by name, for reading, and left as it is.

    A file that is missing, not a regular file, not readable or larger than `MAX_FILE_BYTES` gives an empty transcript
    that says so; nothing is raised.
    """
    try:
        # Without O_NONBLOCK, opening a pipe that stands in the file's place would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return Transcript(reason="there is no session file")
    except (OSError, ValueError) as error:
        return Transcript(reason=f"the session file cannot be opened: {_why(error)}")
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            return Transcript(reason="the session file is not a regular file")
        if about.st_size > MAX_FILE_BYTES:
            return Transcript(reason=f"the session file has {about.st_size} bytes, more than {MAX_FILE_BYTES}")
        with open(descriptor, "rb", buffering=_BUFFER_BYTES, closefd=False) as stream:
            return _fold(read_lines(stream))
    except OSError as error:
        return Transcript(reason=f"the session file cannot be read: {_why(error)}")
    finally:
        os.close(descriptor)


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def parse(data: bytes | Iterable[bytes]) -> Transcript:
    """The transcript of a whole file, or of its lines. Pure; takes any bytes and never raises."""
    return _fold(read_lines(io.BytesIO(data)) if isinstance(data, bytes) else data)


def verdict(transcript: Transcript, *, since: str | None = None) -> Verdict:
    """The verdict in the final answer to the newest prompt (D9), `unknown` with a reason where there is none.

    `since`: the `prompt_id` that was the newest before the supervisor sent its own prompt. If it still is, the prompt
    has not reached this file, and what stands there answers an older one.
    """
    outcome: Outcome = "unknown"
    reason = transcript.reason
    if reason is None and since is not None and since == transcript.prompt_id:
        reason = "the prompt that was sent is not in the session file"
    if reason is None:
        outcome, reason = _outcome(transcript.last_turn_output)
    return Verdict(
        outcome=outcome,
        text=transcript.last_turn_output,
        stop_reason=transcript.stop_reason,
        reason=reason,
        bad_lines=transcript.bad_lines,
    )


# -- the answer --------------------------------------------------------------------------------------------------------

_MARK: Final = "[*_]{0,3}"
_VERDICT: Final = re.compile(
    rf" {{0,3}}{_MARK}verdict{_MARK}[ \t]*:{_MARK}[ \t]*{_MARK}(accept|reject|unknown){_MARK}[.!]?{_MARK}[ \t]*",
    re.IGNORECASE | re.ASCII,
)
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


def _outcome(text: str) -> tuple[Outcome, str | None]:
    said = {match[1].lower() for line in _prose(text) if (match := _VERDICT.fullmatch(line))}
    if not said:
        return "unknown", "the answer has no verdict line"
    if len(said) > 1:
        return "unknown", f"the verdict lines contradict each other: {', '.join(sorted(said))}"
    word = cast("Outcome", said.pop())
    return word, "the answer itself says unknown" if word == "unknown" else None


def _prose(text: str) -> Iterator[str]:
    """The lines that stand in no fenced code block. A fence that is never closed reaches to the end."""
    fence = ""
    for raw in text.split("\n"):
        line = raw.removesuffix("\r")
        mark = _FENCE.fullmatch(line)
        if not fence:
            if mark and not (mark[1][0] == "`" and "`" in mark[2]):
                fence = mark[1]
            else:
                yield line
        elif mark and mark[1].startswith(fence) and not mark[2].strip():
            fence = ""


# -- the branch --------------------------------------------------------------------------------------------------------

_PROMPT_LOST: Final = Record(kind="message", role="user")


def _fold(lines: Iterable[bytes | Lost]) -> Transcript:
    branch = _Branch()
    for number, line in enumerate(lines):
        if isinstance(line, Lost):
            branch.take(line)
            continue
        for item in read_line(line.removeprefix(b"\xef\xbb\xbf") if number == 0 else line):
            branch.take(item)
    return branch.transcript()


class _Branch:
    """The branch of the newest prompt, built in one pass: memory grows with one prompt's run, not with the file."""

    __slots__ = ("_bad", "_elsewhere", "_forked", "_header", "_newest", "_nodes", "_prompts", "_removed")

    def __init__(self) -> None:
        self._bad = 0
        self._header: Record | None = None
        self._begin()

    def _begin(self, prompt: Record | None = None, prompts: int = 0) -> None:
        self._prompts = prompts
        self._newest = prompt
        self._nodes: dict[str, Record] = {}  # id on the branch -> newest message on the way to it
        if prompt is not None and prompt.id is not None:
            self._nodes[prompt.id] = prompt
        self._removed: set[str] = set()
        self._elsewhere = False
        self._forked = False

    def take(self, item: Item) -> None:
        match item:
            case Lost(maybe_prompt):
                self._bad += 1
                if maybe_prompt:
                    self._begin(_PROMPT_LOST, self._prompts)
            case Record(kind="session"):
                self._take_header(item)
            case Record(kind="message", role="user"):
                self._begin(item, self._prompts + 1)
            case Record():
                self._take_entry(item)

    def _take_header(self, header: Record) -> None:
        if self._header is not None and header.id != self._header.id:
            self._begin()
        self._header = header

    def _take_entry(self, entry: Record) -> None:
        if entry.removes is not None:
            self._removed.add(entry.removes)
        if entry.id is None or self._newest is None:
            return
        before = self._nodes.get(entry.parent) if entry.parent is not None else None
        self._elsewhere = before is None
        if before is None:
            return
        self._forked = self._forked or before is not self._newest or len(self._nodes) >= MAX_BRANCH
        if entry.role in ("assistant", "toolResult"):
            before = self._newest = entry
        if len(self._nodes) < MAX_BRANCH:
            self._nodes[entry.id] = before

    def transcript(self) -> Transcript:
        newest = self._newest
        if newest is None:
            return Transcript(reason="there is no prompt in the session file", bad_lines=self._bad)
        answered = newest.role == "assistant"
        shown = answered and not newest.asks_tool and newest.stop != "toolUse" and newest.id not in self._removed
        return Transcript(
            last_turn_output=newest.text if shown else "",
            stop_reason=newest.stop,
            newest_role=cast("Role", newest.role),
            reason=self._no_answer(newest),
            prompts=self._prompts,
            prompt_id=self._prompt_id(),
            answer_id=newest.id if answered else None,
            bad_lines=self._bad,
        )

    def _prompt_id(self) -> str | None:
        return next(iter(self._nodes), None)

    def _no_answer(self, newest: Record) -> str | None:
        if newest is _PROMPT_LOST:
            return "the newest prompt cannot be read"
        if newest.role == "user":
            return "the newest prompt has no answer"
        if self._elsewhere:
            return "the last record is not on the branch of the newest prompt"
        if self._forked:
            return "the branch of the newest prompt is forked, or too long to follow"
        if newest.id in self._removed:
            return "the newest answer was withdrawn"
        if newest.role == "toolResult" or newest.asks_tool or newest.stop == "toolUse":
            return "the run ends in a tool call"
        if newest.stop != "stop":
            return f"the newest answer ended with {newest.stop}" if newest.stop else "the newest answer has no end"
        return None
