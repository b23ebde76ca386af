"""The page: one self-contained HTML file. It loads nothing, and its policy forbids the browser to load anything."""

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Final

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from contracts.report.content import Content, summary
from contracts.report.html.svg import clean
from contracts.report.html.views import Entry, clauses, entries
from contracts.report.html.words import OUTCOMES, WORDS
from contracts.report.known import stale_line
from contracts.report.places import LineOf

MAX_OPEN: Final = 5
"""Of more entries that fail, only the first ones are open at first."""


def as_html(content: Content, line_of: LineOf) -> str:
    """The whole report as one HTML document. The same content gives the same text."""
    shown = entries(content, line_of)
    style, script = _part("page.css"), _part("page.js")
    failing = [entry.anchor for entry in shown if entry.word.css == "bad"]
    page = (
        _environment()
        .get_template("page.html")
        .render(
            content=content,
            outcome=OUTCOMES[content.outcome],
            summary=summary(content),
            facts=list(_facts(content)),
            beside=list(_beside(content)),
            clauses=clauses(content, shown),
            entries=shown,
            failing=[entry for entry in shown if entry.word.css == "bad"],
            open=set(failing[:MAX_OPEN]),
            filters=_filters(shown),
            words=list(WORDS.values()),
            shapes=Markup(_part("shapes.svg")),  # noqa: S704 - a file of this package
            style=Markup(style),  # noqa: S704 - likewise
            script=Markup(script),  # noqa: S704 - likewise
            policy=policy(style, script),
            drawn=Markup,
        )
    )
    return clean(page)


def policy(style: str, script: str) -> str:
    """The content security policy of a page with this style and this script, and nothing else."""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def _part(name: str) -> str:
    return files("contracts.report.html").joinpath("templates", name).read_text(encoding="utf-8").rstrip("\n")


@cache
def _environment() -> Environment:
    return Environment(
        loader=FunctionLoader(_part),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
    )


def _facts(content: Content) -> Iterable[tuple[str, str]]:
    sut, host = content.sut, content.host
    version = f" {sut['version']}" if sut.get("version") else ""
    package = f", {sut['package']}{version}" if sut.get("package") else version
    known = content.baseline
    hosts = ", ".join(str(one) for one in host.get("hosts", ()))
    told = [
        ("asked for", content.command),
        ("began", content.began),
        ("took", f"{content.seconds:.1f} s"),
        ("system under test", f"{sut.get('name', '')}{package}"),
        ("its driver", str(sut.get("command", ""))),
        ("declares", ", ".join(str(one) for one in sut.get("features", ()))),
        ("core", f"{host.get('core', '')}{f' ({hosts})' if hosts else ''}"),
        ("machine", f"Python {host.get('python', '')}, {host.get('system', '')}" if host else ""),
        ("baseline", "" if known is None else f"{known.path}: {known.failures} known, {known.unseen} not looked at"),
        ("left out", "everything that the filters do not name" if content.filtered else ""),
        ("strict", "a should counts like a must" if content.strict else ""),
    ]
    return ((name, value) for name, value in told if value)


def _beside(content: Content) -> Iterator[tuple[str, str]]:
    """What fails the gate and is no run: entries of a baseline that have to go, clauses without evidence."""
    if (known := content.baseline) is not None:
        for line, one in known.stale:
            yield "baseline", stale_line(known, line, one.scenario, one.host, one.clause)
    for row in content.rows:
        if row.verdict == "unproven" and content.complete and content.gates(row.level):
            yield "unproven", f"{row.id} {row.title}: no scenario or check gave evidence"


def _filters(shown: Sequence[Entry]) -> list[tuple[str, list[tuple[str, str, int]]]]:
    """Groups of buttons: the value, what stands before it, and how many entries have it."""
    levels = _counted(shown, lambda entry: [entry.level], ["must", "should", "hazard"])
    words = _counted(shown, lambda entry: [run.word.word for run in entry.runs], list(WORDS))
    hosts = _counted(shown, lambda entry: [run.host for run in entry.runs], ["memory", "socket", "check"])
    layers = _counted(shown, lambda entry: [entry.layer], sorted({entry.layer for entry in shown}))
    return [
        ("verdict", [(word, WORDS[word].symbol, count) for word, count in words]),
        ("level", [(level, "", count) for level, count in levels]),
        ("host", [(host, "", count) for host, count in hosts]),
        ("layer", [(layer, "", count) for layer, count in layers]),
    ]


def _counted(
    shown: Sequence[Entry], of: Callable[[Entry], Sequence[str]], order: Sequence[str]
) -> list[tuple[str, int]]:
    counts = [(value, sum(value in of(entry) for entry in shown)) for value in order]
    return [(value, count) for value, count in counts if count]
