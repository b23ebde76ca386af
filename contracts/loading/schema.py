"""The committed JSON Schemas: of the scenario file, the clause file, the wire and the SUT protocol."""

import json
from pathlib import Path
from typing import Any, Final

import msgspec

from contracts.clauses import ClauseFile
from contracts.scenario import Scenario
from contracts.sut.messages import CALLS, FEATURES, Request, Response
from hc_sim.model import METHODS
from hc_sim.notifications import EVENTS

FOLDER: Final = Path(__file__).parents[1] / "schemas"
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def schemas() -> dict[str, str]:
    """Every schema as the text of its file, by file name."""
    return {
        "scenario.schema.json": _text(_of(Scenario, "A scenario file")),
        "clauses.schema.json": _text(_of(ClauseFile, "A clause file")),
        "wire.schema.json": _text(_wire()),
        "sut.schema.json": _text(_sut()),
    }


def drift(folder: Path = FOLDER) -> list[str]:
    """The names of schema files that are missing, differ from what the types say now, or belong to nothing."""
    wanted = schemas()
    stale = [name for name, text in wanted.items() if not _equals(folder / name, text)]
    return stale + [path.name for path in sorted(folder.glob("*.json")) if path.name not in wanted]


def write(folder: Path = FOLDER) -> list[Path]:
    """Write every schema; the paths that changed."""
    changed = []
    for name, text in schemas().items():
        path = folder / name
        if not _equals(path, text):
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            changed.append(path)
    return changed


def _of(type_: Any, title: str) -> dict[str, Any]:
    return {"$schema": DIALECT, "title": title, **msgspec.json.schema(type_)}


def _wire() -> dict[str, Any]:
    """One schema for a request and one for a result of every method, by method name, over shared definitions."""
    types = [kind for method in METHODS.values() for kind in (method.params, method.result)]
    types += EVENTS.values()
    found, components = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    events, calls = found[-len(EVENTS) :], found[: -len(EVENTS)]
    pairs = zip(calls[::2], calls[1::2], strict=True)
    return {
        "$schema": DIALECT,
        "title": "Parameters and result of every method on the wire",
        "type": "object",
        "properties": {
            name: {
                "description": method.summary,
                "type": "object",
                "properties": {"params": params, "result": result},
            }
            for (name, method), (params, result) in zip(METHODS.items(), pairs, strict=True)
        },
        "x-notifications": dict(zip(EVENTS, events, strict=True)),
        "$defs": components,
    }


def _sut() -> dict[str, Any]:
    """Parameters and result of every call of the SUT protocol, by name; `x-request` and `x-response` are the lines."""
    types = [Request, Response, *(kind for pair in CALLS.values() for kind in pair)]
    found, components = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    request, response, *calls = found
    return {
        "$schema": DIALECT,
        "title": "Parameters and result of every call of the SUT protocol",
        "type": "object",
        "properties": {
            name: {"type": "object", "properties": {"params": params, "result": result}}
            for name, params, result in zip(CALLS, calls[::2], calls[1::2], strict=True)
        },
        "x-features": dict(FEATURES),
        "x-request": request,
        "x-response": response,
        "$defs": components,
    }


def _text(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def _equals(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text
