"""Documents: compare-and-set by version, and nothing else."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hc_sim.core import Answer, Core
from hc_sim.model import WireError
from hc_sim.profile import WireProfile


def ok(core: Core, method: str, /, **params: Any) -> Any:
    answer = core.call(method, params, 0)
    assert isinstance(answer, Answer)
    assert answer.error is None, answer.error
    return answer.result


def refused(core: Core, method: str, /, **params: Any) -> WireError:
    answer = core.call(method, params, 0)
    assert isinstance(answer, Answer)
    assert answer.error is not None, answer.result
    return answer.error


def test_a_document_is_made_without_a_version_and_replaced_with_the_one_it_has() -> None:
    core = Core()
    assert ok(core, "doc.set", name="d", value={"a": 1}) == {"name": "d", "version": 1}
    assert ok(core, "doc.get", name="d") == {"name": "d", "version": 1, "value": {"a": 1}}
    assert ok(core, "doc.set", name="d", value=[2], version=1)["version"] == 2
    assert ok(core, "doc.get", name="d")["value"] == [2]


def test_a_missing_document_says_so() -> None:
    assert refused(Core(), "doc.get", name="d").kind == "no_such_document"


@pytest.mark.parametrize("version", [None, 0, 2, "1", 1.0, True, [1]])
def test_any_other_version_is_a_conflict_that_names_the_current_one_and_writes_nothing(version: Any) -> None:
    core = Core()
    ok(core, "doc.set", name="d", value="first")
    error = refused(core, "doc.set", name="d", value="second", version=version)
    assert (error.kind, dict(error.extra)) == ("version_conflict", {"version": 1})
    assert ok(core, "doc.get", name="d") == {"name": "d", "version": 1, "value": "first"}


def test_a_version_for_a_document_that_is_not_there_is_a_conflict() -> None:
    assert refused(Core(), "doc.set", name="d", value=1, version=1).kind == "version_conflict"


def test_odd_values_come_back_as_they_were() -> None:
    value = {"": None, "z": [1.0, 10**30, {"deep": ["é"]}], "a": ""}
    core = Core()
    ok(core, "doc.set", name="d", value=value)
    found = ok(core, "doc.get", name="d")["value"]
    assert found == value
    assert list(found) == ["", "z", "a"]


def test_versions_can_be_texts_and_start_anywhere() -> None:
    core = Core(WireProfile(doc_version="string", doc_first=7))
    assert ok(core, "doc.set", name="d", value=0)["version"] == "7"
    assert refused(core, "doc.set", name="d", value=1, version=7).kind == "version_conflict"
    assert ok(core, "doc.set", name="d", value=1, version="7")["version"] == "8"


def test_creation_can_be_forbidden() -> None:
    assert refused(Core(WireProfile(doc_create=False)), "doc.set", name="d", value=0).kind == "no_such_document"


def test_number_and_size_of_documents_are_limited() -> None:
    core = Core(WireProfile(max_documents=1, max_document_bytes=5))
    assert refused(core, "doc.set", name="d", value="1234").kind == "limit_reached"
    ok(core, "doc.set", name="d", value="123")
    assert refused(core, "doc.set", name="e", value=0).kind == "limit_reached"
    assert ok(core, "doc.set", name="d", value=0, version=1)["version"] == 2


@pytest.mark.parametrize("name", ["", "x" * 257])
def test_a_name_is_neither_empty_nor_endless(name: str) -> None:
    assert refused(Core(), "doc.set", name=name, value=0).kind == "invalid_params"


def test_a_name_may_have_256_bytes() -> None:
    assert ok(Core(), "doc.set", name="x" * 256, value=0)["version"] == 1


@given(st.lists(st.tuples(st.integers(0, 6), st.integers()), max_size=20))
def test_a_write_succeeds_exactly_when_it_names_the_current_version(writes: list[tuple[int, int]]) -> None:
    core, version, value = Core(), 1, -1
    ok(core, "doc.set", name="d", value=value)
    for guess, new in writes:
        answer = core.call("doc.set", {"name": "d", "value": new, "version": guess}, 0)
        assert isinstance(answer, Answer)
        assert (answer.error is None) == (guess == version)
        if guess == version:
            version, value = version + 1, new
        assert ok(core, "doc.get", name="d") == {"name": "d", "version": version, "value": value}
