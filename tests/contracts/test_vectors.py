"""JSON-RPC as data: every vector holds on the fake core, and a core that answers wrongly fails the right one."""

import asyncio
import json
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from contracts.cli import main
from contracts.vectors import Outcome, Vector, fake_wire, load_vectors, run_vector, run_vectors, socket_wire
from contracts.vectors.run import PROBE_ID
from hc_sim.core import Core
from hc_sim.hub.connection import Hub
from hc_sim.script.toml import FileError
from hc_sim.server import Driver, UnixServer

VECTORS = load_vectors()


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.id)
def test_the_fake_core_answers_to_the_letter(vector: Vector) -> None:
    assert run_vector(vector, fake_wire).differences == ()


def test_there_are_at_least_twenty_five_and_each_says_why() -> None:
    assert len(VECTORS) >= 25
    assert all(vector.why.endswith(".") for vector in VECTORS)


def test_most_can_be_asked_of_any_core() -> None:
    assert sum(not vector.profile for vector in VECTORS) >= 25


class Wrong:
    """A core that bends every line which the fake core answers with."""

    def __init__(self, profile: Mapping[str, Any], bend: Callable[[Any], Any]) -> None:
        self._wire = fake_wire(profile)
        self._bend = bend

    def exchange(self, data: bytes) -> tuple[list[bytes], bool]:
        lines, closed = self._wire.exchange(data)
        values = [json.loads(line) for line in lines]
        bent = [value if value == self._probe(value) else self._bend(value) for value in values]
        return [json.dumps(value).encode() for value in bent if value is not None], closed

    def _probe(self, value: Any) -> Any:
        return value if isinstance(value, dict) and value.get("id") == PROBE_ID else None


def failing(bend: Callable[[Any], Any]) -> set[str]:
    outcomes = run_vectors(VECTORS, lambda profile: Wrong(profile, bend))
    return {outcome.vector.id for outcome in outcomes if outcome.holds is False}


def bent(**members: Any) -> Callable[[Any], Any]:
    """Replaces members of every reply, those of a batch too, by what these functions make of it."""

    def bend(value: Any) -> Any:
        if isinstance(value, list):
            return [bend(item) for item in value]
        return {**value, **{name: change(value) for name, change in members.items() if name in value}}

    return bend


def test_a_core_that_answers_truly_fails_none() -> None:
    assert failing(lambda value: value) == set()


def test_ids_turned_into_texts_fail_where_the_id_was_a_number() -> None:
    failed = failing(bent(id=lambda value: str(value["id"])))
    assert {"id-number", "id-zero-and-empty", "id-null", "id-fraction", "batch-of-one"} <= failed
    assert not {"id-text", "method-unknown"} & failed


def test_a_core_that_loses_its_replies_fails_all_but_the_silent_ones() -> None:
    assert {vector.id for vector in VECTORS} - failing(lambda value: None) == {
        vector.id for vector in VECTORS if not vector.replies and vector.batch is None
    }


def test_another_error_code_fails_wherever_there_is_an_error() -> None:
    failed = failing(bent(error=lambda value: {**value["error"], "code": 0}))
    assert {"parse-broken", "method-unknown", "batch-refused", "error-says-what-and-what-to-do"} <= failed
    assert "id-text" not in failed


def test_a_missing_version_or_both_result_and_error_is_no_reply() -> None:
    assert "id-text" in failing(bent(jsonrpc=lambda _: "1.0"))
    assert "id-text" in failing(lambda value: {**value, "error": {"code": 1}} if isinstance(value, dict) else value)


def test_a_traceback_in_the_words_of_an_error_is_seen() -> None:
    failed = failing(bent(error=lambda value: {**value["error"], "message": "Traceback (most recent call last)"}))
    assert "error-says-what-and-what-to-do" in failed


def test_what_differs_is_said_both_ways() -> None:
    vector = next(vector for vector in VECTORS if vector.id == "id-number")
    outcome = run_vector(vector, lambda profile: Wrong(profile, bent(id=lambda _: "7")))
    assert any(line.startswith('expected {"id":7') for line in outcome.differences)
    assert any(line.startswith('got {"id": "7"') for line in outcome.differences)


def test_a_connection_that_ends_too_soon_or_not_at_all_differs() -> None:
    class Ends:
        def __init__(self, profile: Mapping[str, Any]) -> None:
            self._wire = fake_wire(profile)

        def exchange(self, data: bytes) -> tuple[list[bytes], bool]:
            lines, closed = self._wire.exchange(data)
            return lines, not closed

    said = {outcome.vector.id: outcome.differences for outcome in run_vectors(VECTORS, Ends)}
    assert said["id-text"] == ("expected the connection to stay",)
    assert said["batch-closes"] == ("expected the connection to end",)


def test_a_core_without_the_choice_is_not_asked() -> None:
    outcomes = run_vectors(VECTORS, lambda profile: fake_wire(profile) if not profile else None)
    assert {outcome.vector.id for outcome in outcomes if outcome.holds is None} == {
        vector.id for vector in VECTORS if vector.profile
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[[vector]]\nid = "a"\nwhy = "w."\nsend = ["x"]\nrepiles = []\n', "repiles"),
        ('[[vector]]\nid = "a"\nwhy = "w."\n', "nothing is sent"),
        ('[[vector]]\nid = "a"\nwhy = "w."\nhex = "0g"\n', "not hexadecimal"),
        ('[[vector]]\nid = "a"\nwhy = "w."\nsend = ["x\\ny"]\n', "one line an element"),
        ('[[vector]]\nid = "a"\nwhy = "w."\nsend = ["x"]\nreplies = [{ id = 1 }]\n', "a result or an error"),
        ('[[vector]]\nid = "a"\nwhy = "w."\nsend = ["x"]\n' * 2, "there already"),
    ],
)
def test_a_mistake_in_the_file_is_named_with_its_place(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "v.toml"
    path.write_text('document = "x"\n' + text)
    with pytest.raises(FileError, match=says) as caught:
        load_vectors(path)
    assert caught.value.line > 0


def test_the_command_lists_each_and_ends_with_zero() -> None:
    result = CliRunner().invoke(main, ["vectors"])
    assert result.exit_code == 0
    assert result.output.splitlines()[-1] == f"{len(VECTORS)} holds"
    assert sum(line.startswith("holds") for line in result.output.splitlines()) == len(VECTORS)


def test_the_command_ends_with_one_and_shows_what_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> list[Outcome]:
        return [Outcome(VECTORS[0], False, ("expected this",)), Outcome(VECTORS[1], None, ("needs that",))]

    monkeypatch.setattr("contracts.vectors.run_vectors", broken)
    result = CliRunner().invoke(main, ["vectors"])
    assert result.exit_code == 1
    assert "FAILS" in result.output
    assert "expected this" in result.output
    assert result.output.splitlines()[-1] == "1 fails, 1 not run"


@pytest.fixture
def socket_path() -> Iterator[Path]:
    """A fake core on a real socket, in a thread of its own."""
    ready, loop = threading.Event(), asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve(path: Path) -> None:
        driver = Driver(Hub(Core()))
        async with UnixServer(driver, path):
            ready.set()
            await stop.wait()
        driver.close()

    with tempfile.TemporaryDirectory(prefix="hcv-", dir="/tmp") as folder:
        path = Path(folder) / "hc.sock"
        thread = threading.Thread(target=lambda: loop.run_until_complete(serve(path)))
        thread.start()
        assert ready.wait(10)
        yield path
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
    loop.close()


def test_they_hold_over_a_real_socket_too(socket_path: Path) -> None:
    outcomes = run_vectors(VECTORS, socket_wire(socket_path))
    assert [outcome.vector.id for outcome in outcomes if outcome.holds is False] == []
    assert sum(outcome.holds is True for outcome in outcomes) >= 25


def test_the_command_asks_the_core_at_a_socket(socket_path: Path) -> None:
    result = CliRunner().invoke(main, ["vectors", "--socket", str(socket_path)])
    assert result.exit_code == 0
    asked = sum(not vector.profile for vector in VECTORS)
    assert result.output.splitlines()[-1] == f"{asked} holds, {len(VECTORS) - asked} not run"


def test_a_core_that_is_not_there_is_a_broken_harness_and_no_failure(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["vectors", "--socket", str(tmp_path / "none")])
    assert result.exit_code == 3
    assert "none" in result.output
