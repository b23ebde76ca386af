"""The trace keeps what happened in order, answers questions about it, and hides secrets from what people see."""

import msgspec
import pytest

from hc_sim import trace as trace_module
from hc_sim.trace import EVENT_BYTES, HIDDEN, Event, Trace, redact, weight


def test_events_come_back_in_the_order_in_which_they_were_added() -> None:
    trace = Trace()
    for t in (3, 1, 2):
        trace.add(Event(t=t, kind="step"))
    assert [event.t for event in trace] == [3, 1, 2]


def test_of_narrows_by_kind_method_and_terminal() -> None:
    trace = Trace()
    trace.add(Event(t=0, kind="call", method="terminal.get", terminal="t1", name="alpha"))
    trace.add(Event(t=1, kind="call", method="terminal.get", terminal="t2", name="beta"))
    trace.add(Event(t=2, kind="call", method="terminal.send", terminal="t1", name="alpha"))
    trace.add(Event(t=3, kind="state", terminal="t1"))
    assert [event.t for event in trace.of("call")] == [0, 1, 2]
    assert [event.t for event in trace.of("call", "terminal.get")] == [0, 1]
    assert [event.t for event in trace.of("call", terminal="alpha")] == [0, 2]
    assert [event.t for event in trace.of("call", "terminal.get", "t2")] == [1]
    assert trace.of("key") == []


def test_a_full_trace_counts_what_it_no_longer_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_module, "MAX_EVENTS", 2)
    trace = Trace()
    for t in range(5):
        trace.add(Event(t=t, kind="step"))
    assert [event.t for event in trace] == [0, 1]
    assert trace.dropped == 3


def test_a_trace_is_full_when_its_events_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_module, "MAX_TRACE_BYTES", 5_000)
    trace = Trace()
    for t in range(5):
        trace.add(Event(t=t, kind="call", params={"text": "x" * 2_000}))
    assert (len(trace.events), trace.dropped) == (2, 3)
    trace.events.clear()
    trace.add(Event(t=9, kind="reply", result={"text": "x" * 2_000}))
    assert [event.t for event in trace] == [9]


@pytest.mark.parametrize("value", [{"a": 1}, {"a": 1 << 80}, {"a": object()}])
def test_whatever_an_event_carries_it_weighs_something(value: object) -> None:
    assert weight(Event(t=0, kind="call", params=value)) > EVENT_BYTES


def test_a_trace_that_is_not_whole_proves_nothing() -> None:
    trace = Trace()
    assert trace.none("terminal.kill")
    trace.dropped = 1
    for ask in (trace.none, trace.one, lambda method: trace.none_after(method, 0)):
        with pytest.raises(AssertionError, match="the trace is full: 1 later"):
            ask("terminal.kill")


@pytest.mark.parametrize("name", ["ANTHROPIC_API_KEY", "GH_TOKEN", "TOKEN", "db_password", "AWS_SECRET_ACCESS_KEY"])
def test_redact_hides_values_of_secrets(name: str) -> None:
    event = Event(t=0, kind="run", env={name: "sesame", "PATH": "/bin"})
    assert redact(event).env == {name: HIDDEN, "PATH": "/bin"}


@pytest.mark.parametrize("name", ["PATH", "KEYBOARD", "MONKEY", "TOKENIZER", "TERM"])
def test_redact_leaves_other_variables_alone(name: str) -> None:
    event = Event(t=0, kind="run", env={name: "x"})
    assert redact(event).env == {name: "x"}


def test_redact_looks_into_the_overlay_of_a_call_and_changes_nothing_else() -> None:
    params = {"argv": ["pi"], "env": {"X_API_KEY": "sesame", "A": "b"}}
    event = Event(t=0, kind="call", method="terminal.run", params=params, id=7)
    shown = redact(event)
    assert shown.params == {"argv": ["pi"], "env": {"X_API_KEY": HIDDEN, "A": "b"}}
    assert (shown.method, shown.id) == ("terminal.run", 7)
    assert params["env"] == {"X_API_KEY": "sesame", "A": "b"}


def test_an_event_travels_as_json_and_leaves_out_what_it_does_not_say() -> None:
    event = Event(t=5, kind="text", terminal="t1", text="go")
    assert msgspec.json.decode(msgspec.json.encode(event)) == {"t": 5, "kind": "text", "terminal": "t1", "text": "go"}
    assert msgspec.json.decode(msgspec.json.encode(event), type=Event) == event


@pytest.mark.parametrize(
    ("method", "hint"),
    [
        ("terminal.kil", "did you mean 'terminal.kill'?"),
        ("kill", "did you mean 'terminal.kill'?"),
        ("zz", "known: doc"),
    ],
)
def test_a_question_about_a_method_that_there_is_not_is_refused(method: str, hint: str) -> None:
    trace = Trace()
    trace.add(Event(t=0, kind="call", method="pane.list"))
    for ask in (trace.none, trace.one, trace.count, trace.calls):
        with pytest.raises(ValueError) as error:
            ask(method)
        assert str(error.value).startswith(f"no method {method!r}; {hint}")
    assert trace.none("terminal.keys")
    assert (trace.count("pane.list"), trace.count("*"), trace.count()) == (1, 1, 1)
