"""The model is one source: methods, parameters and error objects hang together."""

import msgspec
import pytest

from hc_sim.core import Core
from hc_sim.model import METHODS, REFUSED, Method, Params, Status, Target, WireError
from hc_sim.profile import WireProfile


def test_every_method_is_keyed_by_its_own_name_and_none_is_also_refused() -> None:
    assert all(name == method.name for name, method in METHODS.items())
    assert not METHODS.keys() & REFUSED.keys()


def test_the_methods_of_the_issue_are_there() -> None:
    terminal = ["run", "get", "list", "send", "interrupt", "kill", "rm", "keep", "label", "wait", "read", "attach"]
    assert METHODS.keys() == {
        "hello", "rpc.discover", "server.status", "events.subscribe", "doc.get", "doc.set",
        *(f"terminal.{name}" for name in terminal),
    }  # fmt: skip


@pytest.mark.parametrize("method", METHODS.values(), ids=lambda method: method.name)
def test_every_method_is_carried_out(method: Method) -> None:
    answer = Core().call(method.name, {"nonsense": 1} if method.name != "hello" else {"generation": "x"}, 0)
    assert getattr(answer, "error", None) is not None
    assert answer.error.kind == "invalid_params"  # type: ignore[union-attr]


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_real_core_has_and_this_one_does_not_is_refused_as_not_faked(name: str) -> None:
    answer = Core().call(name, {}, 0)
    assert answer.error.kind == "not_faked"  # type: ignore[union-attr]
    assert f'"{name}"' in answer.error.message  # type: ignore[union-attr]


def test_parameters_refuse_what_they_do_not_have() -> None:
    assert issubclass(Target, Params)
    with pytest.raises(msgspec.ValidationError, match="unknown field `t`"):
        msgspec.convert({"terminal": "t1", "t": 1}, Target)


def test_an_error_object_carries_kind_and_hint_and_what_comes_with_it() -> None:
    error = WireError(-32000, "m", "k", "h", (("version", 8),))
    assert error.body() == {"code": -32000, "message": "m", "data": {"kind": "k", "hint": "h", "version": 8}}


def test_errors_are_values() -> None:
    profile = WireProfile()
    assert profile.error("blocked", "m", "h", a=1) == profile.error("blocked", "m", "h", a=1)
    assert profile.error("blocked", "m", "h") != profile.error("blocked", "n", "h")


def test_a_status_leaves_out_what_was_not_reported() -> None:
    assert msgspec.to_builtins(Status(state="idle", app="pi")) == {"state": "idle", "app": "pi"}
