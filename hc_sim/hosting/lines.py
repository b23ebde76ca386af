"""Lines of text out of what a program prints: no screen, but enough to read what it said."""

import codecs

MAX_LINE = 4_096
"""Characters of one line; what is longer is cut into several."""


class Lines:
    """Puts lines together. A carriage return begins the line anew; what moves the cursor elsewhere is passed over."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._returned = False
        self.unfinished = ""
        """The line that has not ended yet."""

    def feed(self, data: bytes) -> list[str]:
        """The lines that end in these bytes."""
        lines: list[str] = []
        for part in self._decoder.decode(data).splitlines(keepends=True):
            text = part.rstrip("\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")
            if text:
                self._print(text, lines)
            self._move(part[len(text) :], lines)
        return lines

    def finish(self) -> list[str]:
        """What stands there at the end of the program."""
        rest, self.unfinished = self.unfinished, ""
        return [rest] if rest else []

    def _print(self, text: str, lines: list[str]) -> None:
        if self._returned:
            self._returned, self.unfinished = False, ""
        for letter in text if "\b" in text else (text,):
            if letter == "\b":
                self.unfinished = self.unfinished[:-1]
            else:
                self.unfinished += letter if letter.isprintable() else _visible(letter)
        while len(self.unfinished) > MAX_LINE:
            lines.append(self.unfinished[:MAX_LINE])
            self.unfinished = self.unfinished[MAX_LINE:]

    def _move(self, end: str, lines: list[str]) -> None:
        if end == "\r":
            self._returned = True
        elif end:
            self._returned = False
            lines.append(self.unfinished)
            self.unfinished = ""


def _visible(text: str) -> str:
    return "".join(letter for letter in text if letter.isprintable() or letter == "\t")
