"""What looks like a secret is hidden, whatever way it is written, and everything else stays as it is."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hc_sim.control.commands import Control, Feed
from hc_sim.picture import draw_trace
from hc_sim.playing.fake import FakeCore
from hc_sim.redact import (
    HIDDEN,
    redact,
    redact_argv,
    redact_env,
    redact_struct,
    redact_text,
    redact_value,
    secret_name,
    secret_word,
)
from hc_sim.script.format import Agent
from hc_sim.show import show_event
from hc_sim.trace import Event

LONG = "aB3" * 4 + "xY7zQ9pL2mN5rT8v"


@pytest.mark.parametrize(
    "name",
    ["API_KEY", "OPENAI_API_KEY", "--api-key", "--token", "githubToken", "client-secret", "DB_PASSWORD", "PASSWD",
     "BEARER", "session_cookie", "AWS_SECRET_ACCESS_KEY", "x.credentials", "HTTP_AUTHORIZATION", "passphrase"],
)  # fmt: skip
def test_names_of_secrets(name: str) -> None:
    assert secret_name(name)


@pytest.mark.parametrize("name", ["PATH", "KEYBOARD", "MONKEY", "TOKENIZER", "--max-tokens", "AUTHOR", "secretary", ""])
def test_names_of_no_secrets(name: str) -> None:
    assert not secret_name(name)


@pytest.mark.parametrize(
    "word",
    ["sk-ant-api03-abcdefghijklmnop", "ghp_0123456789abcdefABCD", "xoxb-123456-abcdef", "AKIAIOSFODNN7EXAMPLE",
     "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.sig", "d41d8cd98f00b204e9800998ecf8427e", LONG],
)  # fmt: skip
def test_words_that_are_secrets_by_their_looks(word: str) -> None:
    assert secret_word(word)
    assert redact_text(f"before {word} after") == f"before {HIDDEN} after"


@pytest.mark.parametrize(
    "text",
    ["lgl-run00001-alpha", "/tmp/x/session-alpha.jsonl", "1b4e28ba-2fa1-11d2-883f-0016d3cca427", "VERDICT: accept",
     "a" * 60, "0123456789" * 3, "InternationalizationOfAllComponents", "one key: no more", "turn 1 working",
     "key=Esc effect=true", "anthropic/claude-sonnet-4-20250514", "https://example.org/a/b?c=d", "herdr.space=space-1"],
)  # fmt: skip
def test_texts_without_a_secret_stay_as_they_are(text: str) -> None:
    assert redact_text(text) == text
    assert redact_argv([text]) == [text]


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (["pi", "--api-key", "sesame", "task"], ["pi", "--api-key", HIDDEN, "task"]),
        (["pi", "--api-key=sesame", "task"], ["pi", f"--api-key={HIDDEN}", "task"]),
        (["env", "GH_TOKEN=sesame", "pi"], ["env", f"GH_TOKEN={HIDDEN}", "pi"]),
        (["curl", "-H", "Authorization: Bearer abcdef123"], ["curl", "-H", f"Authorization: Bearer {HIDDEN}"]),
        (["sh", "-c", "pi --token sesame --model m"], ["sh", "-c", f"pi --token {HIDDEN} --model m"]),
        (["sh", "-c", "X_SECRET='a b' pi"], ["sh", "-c", f"X_SECRET={HIDDEN} pi"]),
        (["git", "clone", "https://me:pass@host/x"], ["git", "clone", f"https://me:{HIDDEN}@host/x"]),
        (["pi", "--password", "-odd"], ["pi", "--password", HIDDEN]),
        (["pi", "--token", "--model", "m"], ["pi", "--token", "--model", "m"]),
        (["pi", "--model", "m", "do the work"], ["pi", "--model", "m", "do the work"]),
    ],
)
def test_secrets_in_arguments(argv: list[str], shown: list[str]) -> None:
    assert redact_argv(argv) == shown


def test_variables_are_hidden_by_name_and_by_looks() -> None:
    env = {"X_TOKEN": "1", "EMPTY_TOKEN": "", "OTHER": LONG, "HOME": "/home/me", "TERM": "xterm-256color"}
    assert redact_env(env) == {**env, "X_TOKEN": HIDDEN, "OTHER": HIDDEN}


def test_a_value_of_any_shape_is_looked_into() -> None:
    value = {
        "terminals": [{"argv": ["pi", "--token", "x"], "labels": {"a": "b"}}],
        "env": {"KEY": "x"},
        "password": "x",
    }
    assert redact_value(value) == {
        "terminals": [{"argv": ["pi", "--token", HIDDEN], "labels": {"a": "b"}}],
        "env": {"KEY": HIDDEN},
        "password": HIDDEN,
    }
    assert redact_value({"key": "Esc", "effect": True}) == {"key": "Esc", "effect": True}


def test_a_value_that_is_too_deep_is_hidden_as_a_whole() -> None:
    value: Any = "end"
    for _ in range(200):
        value = [value]
    assert HIDDEN in repr(redact_value(value))


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=40), lambda inner: st.lists(inner)))
def test_redacting_never_fails_and_twice_is_once(value: Any) -> None:
    once = redact_value(value)
    assert redact_value(once) == once


def test_an_event_is_shown_without_secrets_in_any_of_its_parts() -> None:
    event = Event(
        t=0, kind="run", argv=["pi", "--token", "sesame"], env={"A_KEY": "sesame"}, labels={"x-token": "sesame"},
        params={"env": {"A_KEY": "sesame"}, "text": "token=sesame"}, result={"argv": ["--token=sesame"]},
        error={"message": "bad password: sesame"}, text="Bearer sesame1", note="raw='password=sesame'",
    )  # fmt: skip
    shown = redact(event)
    assert b"sesame" not in msgspec.json.encode(shown)
    assert b"sesame" in msgspec.json.encode(event)
    assert redact_struct(event).argv == shown.argv


def played() -> FakeCore:
    core = FakeCore(agents=[Agent()])
    params = {"argv": ["pi", "--api-key", "sesame", "t"], "name": "alpha", "env": {"MY_TOKEN": "sesame"}}
    link = core.connect()
    link.call("terminal.run", params)
    link.call("terminal.send", {"terminal": "alpha", "text": "use password=sesame please"})
    return core


def test_no_line_and_no_picture_of_a_running_core_shows_a_secret() -> None:
    core = played()
    lines = [line for event in core.trace if (line := show_event(event)) is not None]
    assert any("--api-key" in line for line in lines)
    assert "sesame" not in "\n".join([*lines, *draw_trace(core.trace)])
    feed = Feed()
    for event in core.trace:
        feed.add(event)
    control = Control(core, feed)
    said = [line for words in (["ls"], ["trace"], ["picture"]) for line in control.do(words)]
    assert "sesame" not in "\n".join(said)


def test_whoever_asks_for_secrets_sees_them() -> None:
    lines = [line for event in played().trace if (line := show_event(event, secrets=True)) is not None]
    assert "sesame" in "\n".join(lines)
