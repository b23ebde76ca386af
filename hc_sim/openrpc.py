"""The core's description of itself: an OpenRPC document made from the typed model."""

import functools
from typing import Any, get_args, get_origin

import msgspec

from hc_sim.model import METHODS, REFUSED, Method
from hc_sim.notifications import EVENTS
from hc_sim.profile import WireProfile

OPENRPC_VERSION = "1.3.2"


def openrpc(profile: WireProfile) -> dict[str, Any]:
    """What `rpc.discover` answers: every method with parameters, result and errors, as this profile spells them."""
    schemas, components = _schemas()
    return {
        "openrpc": OPENRPC_VERSION,
        "info": {
            "title": "hc, as faked",
            "version": profile.version,
            "description": f"Generation {profile.generation}. Also known, but refused: {', '.join(sorted(REFUSED))}.",
        },
        "methods": [_method(method, schemas, components, profile) for method in METHODS.values()],
        "x-notifications": [
            {"name": profile.event(name), "params": schemas[type_], "x-certainty": "unknown"}
            for name, type_ in EVENTS.items()
        ],
        "components": {"schemas": components},
    }


def _method(
    method: Method, schemas: dict[Any, Any], components: dict[str, Any], profile: WireProfile
) -> dict[str, Any]:
    params = components[schemas[method.params]["$ref"].rsplit("/", 1)[1]]
    required = set(params.get("required", ()))
    names = profile.parameter_names()
    shown: dict[str, Any] = {
        "name": method.name,
        "summary": method.summary,
        "paramStructure": "either" if profile.positional == "accept" else "by-name",
        "params": [
            {
                "name": names.get(name, name),
                "required": name in required,
                "schema": schema,
            }
            for name, schema in params.get("properties", {}).items()
        ],
        "result": {"name": "result", "schema": _result_schema(method.result, schemas)},
        "errors": [_error(profile, kind) for kind in ("invalid_params", *method.errors)],
        "x-certainty": method.certainty,
    }
    if method.missing:
        shown["x-missing"] = method.missing
    return shown


def _error(profile: WireProfile, kind: Any) -> dict[str, Any]:
    error = profile.error(kind, kind.replace("_", " "), "")
    return {"code": error.code, "message": error.message, "data": {"kind": error.kind}}


def _result_schema(result: Any, schemas: dict[Any, Any]) -> dict[str, Any]:
    if get_origin(result) is dict or get_args(result):
        return {"type": "object"}
    schema: dict[str, Any] = schemas[result]
    return schema


@functools.cache
def _schemas() -> tuple[dict[Any, Any], dict[str, Any]]:
    types: list[Any] = []
    for method in METHODS.values():
        types += [type_ for type_ in (method.params, method.result) if get_origin(type_) is None]
    unique = list(dict.fromkeys([*types, *EVENTS.values()]))
    schemas, components = msgspec.json.schema_components(unique, ref_template="#/components/schemas/{name}")
    return dict(zip(unique, schemas, strict=True)), components
