"""SVG elements as text, with everything escaped that comes from outside."""

import math
import re
from html import escape
from typing import Final

CHAR: Final = 7.3
"""The width in pixels of one character of the drawing's type (12 px, fixed width), rounded up."""
_UNSHOWABLE: Final = re.compile(
    "[^\t\n\u0020-\u007e\u00a0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u202a-\u202e\u2066-\u2069]"
)


def clean(words: str) -> str:
    """Text without what a page cannot hold (control characters, halves of characters) or would be turned around by."""
    return _UNSHOWABLE.sub("\ufffd", words)


def tag(name: str, inner: str = "", **attributes: str | int) -> str:
    """One element. `inner` is markup already; an attribute named `class_` or `text_anchor` is written without `_`."""
    said = "".join(f' {_attribute(key)}="{escape(clean(str(value)))}"' for key, value in attributes.items())
    return f"<{name}{said}>{inner}</{name}>" if inner else f"<{name}{said}/>"


def text(words: str, x: int, y: int, css: str = "") -> str:
    """A line of text whose baseline is at (x, y)."""
    return tag("text", escape(clean(words)), x=x, y=y, **({"class_": css} if css else {}))


def glyph(name: str, x: int, y: int, css: str) -> str:
    """One of the shapes that the page defines, around (x, y)."""
    return tag("use", href=f"#g-{name}", x=x, y=y, class_=css)


def line(x1: int, y1: int, x2: int, y2: int, css: str) -> str:
    """A straight line."""
    return tag("path", d=f"M{x1} {y1}L{x2} {y2}", class_=css)


def columns(chars: int) -> int:
    """The pixels that so many characters take."""
    return math.ceil(chars * CHAR)


def _attribute(key: str) -> str:
    return key.rstrip("_").replace("_", "-")
