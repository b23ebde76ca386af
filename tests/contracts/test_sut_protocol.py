"""The protocol document, its schemas, its example, the templates: they all say the same."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import jsonschema
import msgspec
import pytest

from contracts.loading.schema import schemas
from contracts.sut.base import ERROR_KEYS, METHODS, RESULTS
from contracts.sut.messages import CALLS, FEATURES, MANDATORY, PROTOCOL_VERSION, Error, ErrorData
from contracts.sut.reading import Answer, Failure, Notice, read
from legion_terminal.errors import Code

FOLDER = Path(__file__).parents[2] / "contracts" / "sut"
DOCUMENT = (FOLDER / "PROTOCOL.md").read_text(encoding="utf-8")
EXAMPLE = (FOLDER / "example-exchange.jsonl").read_text(encoding="utf-8")
SCHEMA: dict[str, Any] = json.loads(schemas()["sut.schema.json"])


def lines() -> Iterator[tuple[str, dict[str, Any]]]:
    for line in EXAMPLE.splitlines():
        entry = json.loads(line)
        yield entry["from"], entry["message"]


def validate(instance: object, schema: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator({**schema, "$defs": SCHEMA["$defs"]}).validate(instance)


def of(method: str, part: str) -> dict[str, Any]:
    found: dict[str, Any] = SCHEMA["properties"][method]["properties"][part]
    return found


@pytest.mark.parametrize("method", sorted(METHODS))
def test_messages_have_exactly_the_keys_that_scenarios_may_use(method: str) -> None:
    params, result = CALLS[method]
    assert {field.encode_name for field in msgspec.structs.fields(params)} == METHODS[method]
    assert {field.encode_name for field in msgspec.structs.fields(result)} == RESULTS[method]


def test_errors_have_the_keys_that_scenarios_may_use() -> None:
    keys = {field.encode_name for field in msgspec.structs.fields(ErrorData)}
    assert keys | {"message"} == ERROR_KEYS
    assert {field.encode_name for field in msgspec.structs.fields(Error)} == {"code", "message", "data"}


def test_the_document_shows_the_example_as_it_is() -> None:
    [shown] = re.findall(r"<!-- example-exchange.jsonl -->\n```jsonl\n(.*?)```\n<!-- end -->", DOCUMENT, re.DOTALL)
    assert shown == EXAMPLE


def test_the_example_follows_the_schemas() -> None:
    asked: dict[int, str] = {}
    for who, message in lines():
        if who == "suite":
            asked[message["id"]] = message["method"]
            validate(message, SCHEMA["x-request"])
            validate(message["params"], of(message["method"], "params"))
        else:
            validate(message, SCHEMA["x-response"])
            if "result" in message:
                validate(message["result"], of(asked.pop(message["id"]), "result"))
            else:
                asked.pop(message["id"])
    assert asked == {}


def test_the_example_is_taken_as_it_stands_by_the_suite() -> None:
    heard = [read(json.dumps(message).encode()) for who, message in lines() if who == "driver"]
    assert {type(one) for one in heard} == {Answer, Failure}


@pytest.mark.parametrize("method", sorted(CALLS))
def test_the_document_tells_of_every_call_and_each_of_its_keys(method: str) -> None:
    assert f"`{method}`" in DOCUMENT or f"### {method} " in DOCUMENT
    for message in CALLS[method]:
        for field in msgspec.structs.fields(message):
            assert re.search(rf"\b{field.encode_name}\b", DOCUMENT), field.encode_name


@pytest.mark.parametrize("feature", sorted(FEATURES))
def test_the_document_tells_of_every_feature(feature: str) -> None:
    assert f"| `{feature}` |" in DOCUMENT


@pytest.mark.parametrize("code", get_args(Code))
def test_the_document_tells_of_every_error_code(code: str) -> None:
    assert f"| `{code}` |" in DOCUMENT


def test_the_document_is_about_this_version() -> None:
    assert DOCUMENT.startswith(f"# The SUT protocol, version {PROTOCOL_VERSION}\n")
    assert MANDATORY in FEATURES


@pytest.mark.parametrize(
    ("line", "heard"),
    [
        ({"jsonrpc": "2.0", "id": 3, "result": {"x": 1}}, Answer(3, {"x": 1})),
        ({"jsonrpc": "2.0", "method": "log"}, Notice()),
        (
            {"jsonrpc": "2.0", "id": 3, "error": {"code": -32000, "message": "m", "data": {"code": "gone", "x": 1}}},
            Failure(
                3, -32000, {"code": "gone", "child": "", "known": "not-sent", "kind": "", "hint": "", "message": "m"}
            ),
        ),
    ],
)
def test_a_line_is_read_for_what_it_is(line: dict[str, Any], heard: object) -> None:
    assert read(json.dumps(line).encode()) == heard


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"debug",
        b"[]",
        b'"text"',
        b'{"id":1,"result":{}}',
        b'{"jsonrpc":"1.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","result":{}}',
        b'{"jsonrpc":"2.0","id":"1","result":{}}',
        b'{"jsonrpc":"2.0","id":true,"result":{}}',
        b'{"jsonrpc":"2.0","id":1}',
        b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}',
        b'{"jsonrpc":"2.0","id":1,"error":"m"}',
        b'{"jsonrpc":"2.0","id":1,"error":{"message":"m"}}',
        b'{"jsonrpc":"2.0","id":1,"result":null}',
        b'{"jsonrpc":"2.0","id":1,"method":"hello","params":{}}',
        b'{"jsonrpc":"2.0","id":1,"result":{}}\xff',
        b"[" * 100_000,
    ],
)
def test_what_is_no_message_of_a_driver_is_told_in_words(line: bytes) -> None:
    words = read(line)
    assert isinstance(words, str)
    assert len(words) < 400


def test_the_driver_in_python_plays_the_example_as_far_as_it_needs_no_core() -> None:
    import subprocess

    driver = Path(__file__).parents[1] / "sut" / "python" / "driver.py"
    sent = [message for who, message in lines() if who == "suite"]
    sent = [
        one for one in sent if one["method"] in ("initialize", "host.available", "arbitrate", "card.load", "shutdown")
    ]
    env = {"HC_TERMINAL_SOCKET": "/run/hc.sock", "HC_TERMINAL_ID": "t1", "PATH": "/usr/bin:/bin"}
    text = "".join(json.dumps(message) + "\n" for message in sent)
    told = subprocess.run(
        [sys.executable, str(driver)], input=text, capture_output=True, text=True, env=env, timeout=30, check=True
    )
    answers = {message["id"]: message["result"] for message in map(json.loads, told.stdout.splitlines())}
    assert set(answers) == {message["id"] for message in sent}
    for message in sent:
        validate(answers[message["id"]], of(message["method"], "result"))
    assert answers[2] == {"available": False}
    assert answers[3] == {"mode": "terminal"}
