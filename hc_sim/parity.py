"""What of a real core is here, row by row: made from the model and the profile, so that it cannot lag behind them.

Each row says how well the thing is known (measured on a real core, documented, inferred, unknown) and whether the fake
has it: implemented, partial (and what is missing), or refused. A live run can be laid over it: what it has confirmed
bears its date and the version of the core.
"""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, Literal, get_args

import msgspec

from hc_sim.model import METHODS, REFUSED, Certainty, Kind, Method
from hc_sim.profile import WireProfile, reasons

What = Literal["method", "parameter", "result", "error", "choice"]
Presence = Literal["implemented", "partial", "refused"]

_FIELDS: dict[Certainty, str] = {
    "measured": "Terminal.turn SendParams.text SendResult.started Target.terminal RunParams.env",
    "documented": """
        RunParams.argv RunParams.line RunParams.labels RunParams.cwd RunParams.name
        Hello.core_id Hello.generation Hello.version
        Terminal.address Terminal.name Terminal.argv Terminal.cwd Terminal.state Terminal.status Terminal.labels
        Terminal.parent Terminal.die_with_parent Terminal.created_ms Terminal.pid
        Status.state Status.app ListParams.all ListParams.labels WaitResult.ended WaitParams.children
        DocGetParams.name Document.version Document.value
        DocSetParams.name DocSetParams.value DocSetParams.version Opened.channel
    """,
    "inferred": """
        HelloParams.generation Hello.pid RunParams.caller RunParams.die_with_parent RunParams.keep RunParams.rm
        Terminal.exit_code Terminal.foreground Terminal.keep Foreground.pid Foreground.name
        Status.kind Status.msg Status.title Status.progress ListResult.terminals SendParams.force
        KeepParams.keep LabelParams.labels WaitParams.timeout_ms ReadParams.lines AttachParams.cols AttachParams.rows
        ServerStatus.core_id ServerStatus.generation ServerStatus.version ServerStatus.pid ServerStatus.uptime_ms
        ServerStatus.running ServerStatus.finished
    """,
    "unknown": """
        Terminal.signal InterruptResult.key InterruptResult.effect KillResult.killed RmResult.removed
        WaitResult.terminal WaitResult.children ReadResult.text Document.name DocSetResult.name DocSetResult.version
    """,
}
"""How well the name of each field is known; a field that is not listed here is unknown."""

_KINDS: dict[Certainty, str] = {
    "measured": "unknown_method",
    "documented": "name_taken",
    "inferred": "no_such_terminal blocked draft_present no_such_document version_conflict other_generation",
    "unknown": """
        parse_error invalid_request batch_refused line_too_long bad_frame not_faked invalid_params hello_required
        spawn_failed limit_reached not_live not_finished send_refused
    """,
}
_OURS = ("not_faked",)
"""Kinds that only a fake can have."""


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing. `confirmed` names the last live run that has seen it so: its date and the version of the core."""

    what: What
    name: str
    certainty: Certainty
    presence: Presence
    note: str = ""
    confirmed: str = ""


class LiveRun(msgspec.Struct, frozen=True, kw_only=True):
    """What a run against an installed core has confirmed: names of rows, as they stand in this table."""

    date: str
    version: str
    confirmed: list[str]


def parity(profile: WireProfile | None = None, live: LiveRun | None = None) -> list[Row]:
    """The whole table: methods with their parameters and results, errors, and the choices that a profile makes."""
    profile = profile or WireProfile()
    rows = [*_methods(), *_errors(profile), *_choices(profile)]
    if live is None:
        return rows
    words, seen = f"{live.date}, core {live.version}", frozenset(live.confirmed)
    return [msgspec.structs.replace(row, confirmed=words) if row.name in seen else row for row in rows]


def field_names() -> list[str]:
    """Every field of the wire, as `Struct.field` under the struct that defines it, in the order of the methods."""
    found: dict[str, None] = {}
    for method in METHODS.values():
        for type_ in (method.params, method.result):
            found.update(dict.fromkeys(_names(type_)))
    return list(found)


def listed_names() -> list[str]:
    """The fields and kinds that this module knows by name."""
    return [name for table in (_FIELDS, _KINDS) for names in table.values() for name in names.split()]


def _methods() -> Iterator[Row]:
    fields = _by_name(_FIELDS)
    shown: set[str] = set()
    for method in METHODS.values():
        yield Row(
            what="method",
            name=method.name,
            certainty=method.certainty,
            presence="partial" if method.missing else "implemented",
            note=f"without {method.missing}" if method.missing else "",
        )
        yield from _parameters(method, fields)
        for name in _names(method.result):
            if name not in shown:
                shown.add(name)
                yield Row(
                    what="result", name=name, certainty=fields.get(name, "unknown"), presence="implemented"
                )  # fmt: skip
    for name, certainty in REFUSED.items():
        yield Row(what="method", name=name, certainty=certainty, presence="refused", note="answered with not_faked")


def _parameters(method: Method, fields: Mapping[str, Certainty]) -> Iterator[Row]:
    for field in msgspec.structs.fields(method.params):
        certainty = fields.get(_defined(method.params, field.name), "unknown")
        yield Row(
            what="parameter", name=f"{method.name}({field.name})", certainty=certainty, presence="implemented"
        )  # fmt: skip


def _errors(profile: WireProfile) -> Iterator[Row]:
    kinds = _by_name(_KINDS)
    for kind in get_args(Kind):
        error = profile.error(kind, "", "")
        yield Row(
            what="error",
            name=error.kind,
            certainty=kinds.get(kind, "unknown"),
            presence="implemented",
            note=f"code {error.code}" + (", of this fake alone" if kind in _OURS else ""),
        )


def _choices(profile: WireProfile) -> Iterator[Row]:
    for name, reason in reasons().items():
        value = msgspec.json.encode(getattr(profile, name)).decode()
        note = f"{value}: {reason.text}"
        yield Row(what="choice", name=name, certainty=reason.certainty, presence="implemented", note=note)


def _by_name(table: Mapping[Certainty, str]) -> dict[str, Certainty]:
    return {name: certainty for certainty, names in table.items() for name in names.split()}


def _names(type_: Any) -> Iterator[str]:
    """The fields of a struct and of all structs in them."""
    for inner in get_args(type_):
        yield from _names(inner)
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        for field in msgspec.structs.fields(type_):
            yield _defined(type_, field.name)
            yield from _names(field.type)


def _defined(type_: type, field: str) -> str:
    owner = next(base for base in type_.__mro__ if field in inspect.get_annotations(base))
    return f"{owner.__name__}.{field}"
