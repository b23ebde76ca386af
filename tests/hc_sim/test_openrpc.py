"""The discovery document describes the methods as the core has them and the profile spells them."""

import json
from typing import Any

import jsonschema
import msgspec
import pytest

from hc_sim.core import Answer, Core
from hc_sim.hub.connection import Hub
from hc_sim.model import METHODS
from hc_sim.notifications import EVENTS
from hc_sim.openrpc import openrpc
from hc_sim.profile import WireProfile


@pytest.fixture
def document() -> dict[str, Any]:
    answer = Core().call("rpc.discover", None, 0)
    assert isinstance(answer, Answer)
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(answer.result))
    return found


def method(document: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(item for item in document["methods"] if item["name"] == name)
    return found


def valid(document: dict[str, Any], schema: dict[str, Any], value: Any) -> bool:
    whole = {**schema, "components": document["components"]}
    return jsonschema.Draft202012Validator(whole).is_valid(value)


def test_it_lists_exactly_the_methods_that_are_carried_out(document: dict[str, Any]) -> None:
    assert [item["name"] for item in document["methods"]] == list(METHODS)


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    text = json.dumps(document)
    references = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert references
    assert references <= document["components"]["schemas"].keys()


def test_required_parameters_are_marked(document: dict[str, Any]) -> None:
    required = {item["name"]: item["required"] for item in method(document, "terminal.send")["params"]}
    assert required == {"terminal": True, "text": True, "force": False}


def test_errors_are_listed_with_code_and_kind(document: dict[str, Any]) -> None:
    errors = {item["data"]["kind"]: item["code"] for item in method(document, "terminal.run")["errors"]}
    assert errors["NAME_TAKEN"] == -32000
    assert errors["invalid_params"] == -32602


def test_what_is_not_certain_is_said(document: dict[str, Any]) -> None:
    assert method(document, "terminal.wait")["x-certainty"] == "inferred"
    assert "terminal.keys" in document["info"]["description"]


def test_notifications_fit_the_schemas_of_their_parameters_and_are_marked_as_unknown(document: dict[str, Any]) -> None:
    described = {item["name"]: item for item in document["x-notifications"]}
    assert described.keys() == EVENTS.keys()
    assert {item["x-certainty"] for item in described.values()} == {"unknown"}
    hub = Hub(Core())
    conn = hub.connect(0)
    for line in ("events.subscribe", "terminal.run", "doc.set"):
        params = {"name": "a", "value": 1} if line == "doc.set" else {}
        request = {"jsonrpc": "2.0", "method": line, "params": params}
        hub.receive(conn, json.dumps(request).encode() + b"\n", 0)
    told = [json.loads(delivery.data) for delivery in hub.outgoing(0)]
    assert [item["method"] for item in told] == ["terminal.created", "document.changed"]
    for item in told:
        assert valid(document, described[item["method"]]["params"], item["params"])


def test_the_profile_spells_version_parameters_and_kinds() -> None:
    found = openrpc(WireProfile(version="9.9.9", target_key="target", kind_style="upper"))
    assert found["info"]["version"] == "9.9.9"
    get = method(found, "terminal.get")
    assert [item["name"] for item in get["params"]] == ["target"]
    assert get["errors"][-1]["data"]["kind"] == "NO_SUCH_TERMINAL"


def test_answers_of_the_core_fit_the_schemas_of_their_results(document: dict[str, Any]) -> None:
    core = Core()
    calls: list[tuple[str, dict[str, Any]]] = [
        ("hello", {}),
        ("terminal.run", {"argv": ["pi", "go"], "name": "a", "labels": {"x": "y"}}),
        ("terminal.get", {"terminal": "a"}),
        ("terminal.list", {"all": True}),
        ("terminal.send", {"terminal": "a", "text": "t"}),
        ("terminal.interrupt", {"terminal": "a"}),
        ("terminal.keep", {"terminal": "a"}),
        ("terminal.label", {"terminal": "a", "labels": {"x": None}}),
        ("terminal.attach", {"terminal": "a", "cols": 80, "rows": 24}),
        ("events.subscribe", {}),
        ("terminal.read", {"terminal": "a"}),
        ("terminal.kill", {"terminal": "a"}),
        ("terminal.wait", {"terminal": "a"}),
        ("terminal.rm", {"terminal": "a"}),
        ("doc.set", {"name": "d", "value": {}}),
        ("doc.get", {"name": "d"}),
        ("server.status", {}),
        ("rpc.discover", {}),
    ]
    assert {name for name, _ in calls} == METHODS.keys()
    for name, params in calls:
        answer = core.call(name, params, 0)
        assert isinstance(answer, Answer), name
        assert answer.error is None, name
        assert valid(document, method(document, name)["result"]["schema"], answer.result), name
    assert not valid(document, method(document, "terminal.get")["result"]["schema"], {"address": 5})
