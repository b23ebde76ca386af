"""Parameters of a call as typed values, or what is wrong with them."""

import re
from typing import Any

import msgspec

from hc_sim.core.world import World
from hc_sim.model import METHODS
from hc_sim.profile import WireProfile

MAX_QUOTED = 200
"""At most so many characters of a name that a client sent are said back in an error."""


def decode_params(world: World, method: str, params: Any) -> Any:
    """Parameters as the typed value of their method. Raises `RefusalError` with what is wrong and where."""
    type_ = METHODS[method].params
    if params is None:
        params = {}
    if isinstance(params, list):
        params = _named(world, method, type_, params)
    elif not isinstance(params, dict):
        raise world.refusal("invalid_params", f"{method}: parameters are an object or an array")
    if method != "hello":
        params = _spelt(world, method, type_, params)
    try:
        return msgspec.convert(params, type_)
    except msgspec.ValidationError as error:
        raise world.refusal("invalid_params", f"{method}: {_wrong(world, str(error))}") from None


_WRONG = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<place>.*)`)?", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(?P<name>.*)`", re.DOTALL)
_TYPES = re.compile(r"Expected `(?P<wanted>.*)`, got `(?P<got>.*)`", re.DOTALL)


def _wrong(world: World, said: str) -> str:
    """What is wrong with parameters, in words and names of the wire, from what the decoder says about them."""
    found = _WRONG.fullmatch(said)
    what, place = (found["what"], found["place"]) if found is not None else ("", None)
    missing, types = _MISSING.fullmatch(what), _TYPES.fullmatch(what)
    if missing is not None and not place:
        return f'parameter "{world.parameter_names.get(missing["name"], missing["name"])}" is missing'
    name, inner = re.fullmatch(r"([^.\[]*)(.*)", place or "", re.DOTALL).groups()  # type: ignore[union-attr]
    subject = f'parameter "{world.parameter_names.get(name, name)}"' + (f" at {inner}" if inner else "")
    if types is not None:
        return f"{subject} must be {types['wanted'].replace(' | ', ' or ')}, not {types['got']}"
    return f"{subject} has no value that can be taken"


def asks_for_frames(profile: WireProfile, params: Any) -> bool:
    """Whether the parameters of a hello ask for the binary mode."""
    value = params.get(profile.frames_key) if isinstance(params, dict) else None
    return bool(value) if profile.frames_value is None else value == profile.frames_value


def _named(world: World, method: str, type_: type[msgspec.Struct], params: list[Any]) -> dict[str, Any]:
    """Parameters by position, in the order in which `rpc.discover` lists them."""
    if world.profile.positional == "refuse":
        raise world.refusal("invalid_params", f"{method}: parameters are given by name, in an object")
    fields = type_.__struct_fields__
    if len(params) > len(fields):
        raise world.refusal("invalid_params", f"{method}: {len(params)} parameters, and there are {len(fields)}")
    return {world.parameter_names.get(name, name): value for name, value in zip(fields, params, strict=False)}


def _spelt(world: World, method: str, type_: type[msgspec.Struct], params: dict[str, Any]) -> dict[str, Any]:
    names = {world.parameter_names.get(name, name): name for name in type_.__struct_fields__}
    if not names.keys() >= params.keys():
        if world.profile.unknown_params == "refuse":
            unknown = min(params.keys() - names.keys())[:MAX_QUOTED]
            known = ", ".join(sorted(names)) or "none"
            raise world.refusal("invalid_params", f'{method}: unknown parameter "{unknown}"', f"known: {known}")
        params = {name: value for name, value in params.items() if name in names}
    return {names[name]: value for name, value in params.items()} if world.parameter_names else params
