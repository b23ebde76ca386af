"""What a live run leaves in files: the fact sheet, the differences, a profile for the fake, the report."""

import os
from pathlib import Path
from typing import Any, Final

import msgspec
import tomli_w

from contracts.live.difference import Difference
from contracts.live.problem import UsageError
from contracts.live.shapes import OBJECTS, models, words
from contracts.live.sheet import Learned, Sheet
from hc_sim.model import METHODS
from hc_sim.profile import WireProfile, reasons
from hc_sim.redact import redact_text, redact_value

SCHEMA: Final = 1
OF_THE_CORE: Final = frozenset({"hello_extra"})
"""Fields whose inner names are a core's own, and may say that a value is secret."""
FILES: Final = ("facts.json", "diff.txt", "profile.toml", "report.json")


def facts(sheet: Sheet, *, date: str) -> dict[str, Any]:
    """The fact sheet as plain values, without what looks like a secret.

    `date`, `version` and `confirmed` are what `hc-sim parity --live` takes.
    """
    whole = {
        "schema": SCHEMA,
        "date": date,
        "version": str(sheet.core.get("version") or "unknown"),
        "core": sheet.core,
        "methods": dict(sorted(sheet.methods.items())),
        "objects": {
            name: {
                "seen": seen.count,
                "in": sorted(seen.methods),
                "fields": {key: words(types) for key, types in sorted(seen.fields.items())},
            }
            for name, seen in sorted(sheet.objects.items())
        },
        "errors": [msgspec.to_builtins(one) for one in sheet.errors.values()],
        "facts": [msgspec.to_builtins(fact) for fact in sheet.facts],
        "profile": profile_rows(sheet),
        "refused": sheet.refused,
        "skipped": sheet.skipped,
        "confirmed": confirmed(sheet),
    }
    cleaned: dict[str, Any] = redact_value(whole)
    return cleaned


def profile_rows(sheet: Sheet) -> list[dict[str, Any]]:
    """Every field of `WireProfile`: what was learned, or why not, and the fake's default beside it."""
    usual = WireProfile()
    rows = []
    for name in reasons():
        one = sheet.learned.get(name, Learned(field=name, learned=False, why="it was not asked for"))
        known = {"value": one.value} if one.learned else {"why": one.why}
        rows.append({"field": name, "learned": one.learned, **known, "fake": getattr(usual, name)})
    return rows


def confirmed(sheet: Sheet) -> list[str]:
    """What this run has seen to be as the fake has it, under the names of the parity table."""
    found = [name for name, there in sheet.methods.items() if there and name not in sheet.refused]
    if sheet.value("unknown_params") == "refuse":
        found += sorted(sheet.parameters)
    owners = {name: struct.__name__ for struct, name in OBJECTS.items()}
    for name, model in models().items():
        owner = owners.get(name) or (METHODS[name].result.__name__ if name in METHODS else "")
        seen = sheet.objects[name].fields if name in sheet.objects else {}
        found += [f"{owner}.{key}" for key, one in model.items() if seen.get(key, {""}) <= one.types]
    usual = WireProfile()
    for one in sheet.errors.values():
        fake = usual.error(one.ours, "", "")  # type: ignore[arg-type]
        found += [fake.kind] if (one.kind, one.code) == (fake.kind, fake.code) else []
    found += [name for name, one in sheet.learned.items() if one.learned and one.value == getattr(usual, name)]
    return list(dict.fromkeys(found))


def profile_toml(sheet: Sheet) -> str:
    """The learned fields as a file that `hc-sim serve --profile` takes; what was not learned stands in comments."""
    lines = ["# What a live run has learned of a core; take it with: hc-sim serve --profile FILE", ""]
    tables: list[str] = []
    for name in reasons():
        one = sheet.learned.get(name)
        if one is None or not one.learned:
            lines.append(f"# {name}: not learned: {one.why if one is not None else 'it was not asked for'}")
        elif why := _not_taken(name, one.value):
            lines.append(f"# {name}: learned, but the fake cannot be told so: {why}")
        elif isinstance(one.value, dict):
            cleaned = redact_value(one.value) if name in OF_THE_CORE else one.value
            tables.append(tomli_w.dumps({name: _cleaned(cleaned)}).strip())
        else:
            lines.append(tomli_w.dumps({name: _cleaned(one.value)}).strip())
    return "\n".join([*lines, "", *tables]) + "\n"


def _not_taken(name: str, value: Any) -> str:
    """Why a value cannot stand in a profile, "" if it can."""
    try:
        msgspec.convert({name: value}, WireProfile)
    except (msgspec.ValidationError, ValueError) as error:
        return " ".join(str(error).split())
    return ""


def _cleaned(value: Any) -> Any:
    """A value without secrets in its texts; the names of a profile are no secrets, whatever they sound like."""
    if isinstance(value, dict):
        return {key: _cleaned(one) for key, one in value.items() if one is not None}
    return redact_text(value) if isinstance(value, str) else value


def diff_text(found: list[Difference], core: str) -> str:
    """The differences, a line each: the name and the sentence."""
    if not found:
        return f"{core} and the fake do not differ in anything that was asked\n"
    width = max(len(one.name) for one in found)
    return "".join(redact_text(f"{one.name:<{width}}  {one.text}") + "\n" for one in found)


def make_folder(path: Path) -> None:
    """Make the folder of `--out`, private if it is new. Raises `UsageError` when files cannot be written into it."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out: {path}: {error.strerror}") from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise UsageError(f"--out: {path}: nothing can be written there")


def write_file(path: Path, text: str) -> None:
    """Write a private file (0600), whatever stood there. Raises `UsageError`."""
    draft = path.with_name(f".{path.name}.new")
    try:
        number = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(number, "w", encoding="utf-8") as stream:
            stream.write(text)
        draft.replace(path)
    except OSError as error:
        raise UsageError(f"--out: {path}: {error.strerror}") from error
