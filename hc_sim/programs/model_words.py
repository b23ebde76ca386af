"""What the loopback model does, decided by a word in the prompt: pure, one function."""

from dataclasses import dataclass
from typing import Literal

SLOW_WORDS = 40
SLOW_GAP_MS = 150
TOOL_COMMAND = "sleep 0.3; echo hi"
LONG_COMMAND = "sleep 30"


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the model.

    `status` is that of HTTP; `words` come one after the other, `gap_ms` apart; `command` is a call of the tool `bash`
    in place of words; `ends`: the answer is whole, breaks off with the connection, or nothing ever comes.
    """

    status: int = 200
    words: tuple[str, ...] = ()
    gap_ms: int = 0
    command: str | None = None
    ends: Literal["whole", "cut", "never"] = "whole"


_PLAIN = Reply(words=("Hello ", "from ", "the ", "model."), gap_ms=2)
_AFTER_TOOL = Reply(words=("tool ", "said ", "ok."), gap_ms=2)
_WORDS = {
    "PLAIN": _PLAIN,
    "SLOW": Reply(words=tuple(f"w{number} " for number in range(SLOW_WORDS)), gap_ms=SLOW_GAP_MS),
    "TOOL": Reply(command=TOOL_COMMAND),
    "LONGTOOL": Reply(command=LONG_COMMAND),
    "HANG": Reply(ends="never"),
    "CUT": Reply(words=("half ", "an "), ends="cut"),
    "E400": Reply(status=400),
    "E429": Reply(status=429),
    "E500": Reply(status=500),
    "E429ONCE": Reply(status=429),
    "E500ONCE": Reply(status=500),
}
HELP = """\
The last message of the user decides, by the first of these words in it (nothing else: PLAIN):

  PLAIN       a greeting                      E400  E429  E500      an error of HTTP, each time
  SAY ...     everything after it, as it is   E429ONCE  E500ONCE    the same once, then a greeting
  SLOW        40 words, 150 ms apart          TOOL      calls bash (sleep 0.3; echo hi), then says a word about it
  HANG        no answer at all                LONGTOOL  calls bash (sleep 30)
  CUT         two words, then the connection breaks off"""


def reply_to(text: str, *, after_tool: bool = False, asked_before: int = 0) -> Reply:
    """What the model says to the user's words. `asked_before`: how often it was asked with the same words already."""
    for word in text.split():
        if word == "SAY":
            return Reply(words=(text.partition("SAY")[2].strip(),))
        if word not in _WORDS:
            continue
        if word.endswith("ONCE") and asked_before:
            return _PLAIN
        if _WORDS[word].command is not None and after_tool:
            return _AFTER_TOOL
        return _WORDS[word]
    return _PLAIN
