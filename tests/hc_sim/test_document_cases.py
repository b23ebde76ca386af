"""The cases of the field log about documents, each played from its first to its last move by a plain client."""

from typing import Any

import pytest

from hc_sim.faults import DocumentFault, Fault, FaultPlan, Rival
from hc_sim.playing.fake import CallError, FakeCore, FakeLink

NAME = "sidebar"
OLD = {"order": ["p1", "p2"], "tabs": 5}
NEW = {"order": ["p2", "p1"], "tabs": 5}


def core_with(*documents: DocumentFault, fault: list[Fault] | None = None) -> FakeCore:
    return FakeCore(faults=FaultPlan(document=list(documents), fault=fault or []))


def look(link: FakeLink) -> tuple[Any, Any]:
    found: Any = link.call("doc.get", {"name": NAME})
    return found["version"], found["value"]


def put(link: FakeLink, value: Any, version: Any, **more: Any) -> Any:
    return link.call("doc.set", {"name": NAME, "value": value, "version": version}, **more)


@pytest.mark.parametrize("applied", [True, False])
def test_bc_117_a_lost_acknowledgement_leaves_the_document_written_or_not_and_a_blind_retry_is_refused_as_a_conflict(
    applied: bool,
) -> None:
    lost = Fault(method="doc.set", close="instead", apply=applied)
    core = core_with(DocumentFault(name=NAME, value=OLD, version=7), fault=[lost])
    with pytest.raises(EOFError):
        put(core.connect(), NEW, 7)
    again = core.connect()
    assert look(again) == ((8, NEW) if applied else (7, OLD))
    assert core.trace.count("doc.set") == 1
    if applied:
        with pytest.raises(CallError) as refused:
            put(again, NEW, 7)
        assert refused.value.kind == "version_conflict"
        assert look(again) == (8, NEW)


def test_bc_118_a_conflict_names_the_version_and_keeps_the_change_of_the_other_writer() -> None:
    other = {**OLD, "tabs": 6}
    core = core_with(
        DocumentFault(name=NAME, value=OLD, version=7), fault=[Fault(method="doc.set", rival=Rival(value=other))]
    )
    link = core.connect()
    assert look(link) == (7, OLD)
    with pytest.raises(CallError) as refused:
        put(link, NEW, 7)
    assert (refused.value.kind, refused.value.data["version"]) == ("version_conflict", 8)
    assert look(link) == (8, other)
    assert core.trace.count("doc.set") == 1


@pytest.mark.parametrize(
    ("mirror", "seen"),
    [("late", [7, 7, 7, 8, 8]), ("flaps", [8, 7, 8, 8, 8]), ("never", [7, 7, 7, 7, 7])],
)
def test_bc_119_readers_of_a_copy_see_a_write_late_or_once_and_again_or_never(mirror: Any, seen: list[int]) -> None:
    core = core_with(DocumentFault(name=NAME, value=OLD, version=7, mirror=mirror, mirror_ms=1_200))
    link = core.connect()
    assert put(link, NEW, 7)["version"] == 8
    versions = []
    for _ in range(5):
        versions.append(look(link)[0])
        core.advance(400)
    assert versions == seen


def test_bc_120_a_write_whose_client_gave_up_lands_later_and_its_late_reply_still_comes() -> None:
    late = Fault(method="doc.set", apply_ms=12_000, delay_ms=100)
    core = core_with(DocumentFault(name=NAME, value=OLD, version=7), fault=[late])
    link, reader = core.connect(), core.connect()
    with pytest.raises(TimeoutError):
        put(link, NEW, 7, timeout_ms=10_000)
    core.advance(1_000)
    assert look(reader) == (7, OLD)  # no proof that the write failed
    core.advance(1_000)
    assert look(reader) == (8, NEW)
    core.advance(100)
    assert b'"version":8' in link.read()
    assert core.trace.count("doc.set") == 1


def test_bc_121_a_document_that_is_missing_says_so() -> None:
    core = core_with()
    with pytest.raises(CallError) as refused:
        look(core.connect())
    assert refused.value.kind == "no_such_document"


@pytest.mark.parametrize("version", [0, "7", 9_007_199_254_740_993])
def test_bc_121_a_version_goes_out_as_it_is_with_its_type_and_to_the_last_digit(version: Any) -> None:
    link = core_with(DocumentFault(name=NAME, value=OLD, version=version)).connect()
    found = look(link)[0]
    assert (found, type(found)) == (version, type(version))
    assert put(link, NEW, version)["version"] != version


def test_bc_121_a_version_of_null_cannot_be_written_over() -> None:
    link = core_with(DocumentFault(name=NAME, value=OLD, null_version=True)).connect()
    assert look(link) == (None, OLD)
    with pytest.raises(CallError):
        put(link, NEW, None)


def test_bc_122_a_reply_is_one_byte_over_a_ceiling_of_one_mebibyte() -> None:
    ceiling = 1024 * 1024
    asked = b'{"jsonrpc":"2.0","id":1,"method":"doc.get","params":{"name":"sidebar"}}\n'

    def size(text: str) -> int:
        link = core_with(DocumentFault(name=NAME, value=text, version=1)).connect()
        link.write(asked)
        return len(link.read_line())

    assert size("x" * (ceiling + 1 - size(""))) == ceiling + 1


def test_bc_122_a_write_back_changes_nothing_but_the_two_that_changed_places() -> None:
    siblings = [{"id": "p1", "": {"odd": [1.0, 1e2]}, "z": None}, {"id": "p2", "unknown": {"a": {"b": []}}}]
    value = {"z": 1, "rows": siblings, "a": {"": ""}}
    link = core_with(DocumentFault(name=NAME, value=value, version=3)).connect()
    version, found = look(link)
    found["rows"].reverse()
    put(link, found, version)
    assert look(link) == (4, {**value, "rows": siblings[::-1]})
