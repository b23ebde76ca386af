"""Where a core and the fake differ, each difference under a short name that stays the same from run to run."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from contracts.live.shapes import FieldModel, Seen, models, words
from contracts.live.sheet import Sheet
from contracts.records import Record
from hc_sim.profile import WireProfile, reasons
from hc_sim.redact import redact_value

SAID_ELSEWHERE: Final = frozenset({"kinds", "codes", "kind_style", "other_code", "hello_aliases", "hangup_signal"})
"""Fields that are learned from what is compared under another name."""
MACHINE: Final = frozenset({"program_watch_ms", "program_grace_ms"})
"""Fields that are durations: they differ when they are not near each other."""
NEAR_MS: Final = 500
MAX_SHOWN: Final = 160


class Difference(Record, frozen=True):
    """One difference: its name, what the core has, what the fake has, and both in a sentence."""

    name: str
    core: Any
    fake: Any
    text: str


def differences(sheet: Sheet) -> list[Difference]:
    """Everything in which the core and the fake differ, each name once: facts, fields of replies, errors, choices."""
    found: dict[str, Difference] = {}
    for one in (*_facts(sheet), *_refused(sheet), *_objects(sheet), *_errors(sheet), *_choices(sheet)):
        found.setdefault(one.name, one)
    return list(found.values())


def _facts(sheet: Sheet) -> Iterator[Difference]:
    for fact in sheet.facts:
        if not fact.ok:
            text = f"{fact.say}: core {_shown(fact.value)}, fake {_shown(fact.fake)}"
            yield Difference(name=fact.id, core=fact.value, fake=fact.fake, text=text)


def _refused(sheet: Sheet) -> Iterator[Difference]:
    for method, why in sheet.refused.items():
        yield Difference(
            name=f"{method}: refused", core=why, fake="answered", text=f"{method}: {why}; the fake answers it"
        )
    if sheet.core.get("starts_programs") is False:
        text = "no program that was started has written anything; the fake starts them with --programs"
        yield Difference(name="programs: not started", core=False, fake=True, text=text)


def _objects(sheet: Sheet) -> Iterator[Difference]:
    for name, model in models().items():
        if (seen := sheet.objects.get(name)) is not None:
            yield from _object(name, _spelt(sheet, name, model), seen)


def _spelt(sheet: Sheet, name: str, model: Mapping[str, FieldModel]) -> dict[str, FieldModel]:
    """The fields of an object as this core spells them, where that was learned and is compared as a choice."""
    names = {"exit_code": "exit_code_key", "signal": "signal_key", "ended": "ended_key"}
    spelt = {sheet.value(names[key]) if key in names else key: one for key, one in model.items()}
    if name == "terminal":
        spelt["status"] = FieldModel(spelt["status"].types, sheet.value("no_status") == "null", "status")
    if name == "status" and sheet.value("absent_keys") == "null":
        spelt = {key: FieldModel(one.types | {"null"}, True, one.inner) for key, one in spelt.items()}
    if name == "terminal.send" and sheet.value("send_turn"):
        spelt["turn"] = FieldModel(frozenset({"integer"}), False)
    return spelt


def _object(name: str, model: Mapping[str, FieldModel], seen: Seen) -> Iterator[Difference]:
    where = ", ".join(sorted(seen.methods))
    missing = [key for key, field in model.items() if field.always and key not in seen.fields]
    new = [key for key in seen.fields if key not in model]
    for key in missing:
        twin = next((other for other in new if seen.fields[other] & _loose(model[key])), None)
        if twin is not None and len(missing) == 1 and len(new) == 1:
            new.remove(twin)
            text = f"{where}: field {key} is missing; {twin} ({words(seen.fields[twin])}) may be its new name"
            yield Difference(name=f"{name}.{key}: renamed", core=twin, fake=key, text=text)
        else:
            text = f"{where}: field {key} ({words(model[key].types)}) is missing"
            yield Difference(name=f"{name}.{key}: missing", core=None, fake=words(model[key].types), text=text)
    for key in new:
        types = words(seen.fields[key])
        text = f"{where}: field {key} ({types}) is not in the fake's replies"
        yield Difference(name=f"{name}.{key}: new", core=types, fake=None, text=text)
    for key, field in model.items():
        other = {kind for kind in seen.fields.get(key, set()) if not _fits(kind, field)}
        if other:
            text = f"{where}: field {key} is {words(other)}, fake {words(field.types)}"
            yield Difference(name=f"{name}.{key}: type", core=words(other), fake=words(field.types), text=text)


def _loose(field: FieldModel) -> frozenset[str]:
    return field.types | {"object"} if field.inner else field.types


def _fits(kind: str, field: FieldModel) -> bool:
    if "any" in field.types or kind in field.types or (kind == "integer" and "number" in field.types):
        return True
    return kind.startswith("list") and any(one.startswith("list") for one in field.types) and kind == "list"


def _errors(sheet: Sheet) -> Iterator[Difference]:
    usual = WireProfile()
    for ours, seen in sheet.errors.items():
        fake = usual.error(ours, "", "")  # type: ignore[arg-type]
        if seen.kind != fake.kind:
            text = f"error kind of {_plain(ours)}: core {seen.kind or 'none'}, fake {fake.kind}"
            yield Difference(name=f"error.{ours}: kind", core=seen.kind, fake=fake.kind, text=text)
        if seen.code != fake.code:
            text = f"error code of {_plain(ours)}: core {seen.code}, fake {fake.code}"
            yield Difference(name=f"error.{ours}: code", core=seen.code, fake=fake.code, text=text)


def _choices(sheet: Sheet) -> Iterator[Difference]:
    usual = WireProfile()
    for name in reasons():
        one, fake = sheet.learned.get(name), getattr(usual, name)
        if one is None or not one.learned or name in SAID_ELSEWHERE:
            continue
        near = name in MACHINE and abs(one.value - fake) <= NEAR_MS
        if one.value != fake and not near:
            text = f"WireProfile.{name}: core {_shown(one.value)}, fake {_shown(fake)}"
            yield Difference(name=f"profile.{name}", core=one.value, fake=fake, text=text)


def _plain(ours: str) -> str:
    return ours.replace("_", " ")


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(redact_value(value)).decode()
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"
