"""The loopback model, seen by a plain client of HTTP."""

import asyncio
import http.client
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from hc_sim.programs.model import MAX_BODY_BYTES, main, serve_model
from hc_sim.programs.model_words import Reply, reply_to

WAIT_S = 20


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    program = subprocess.Popen([sys.executable, "-m", "hc_sim.programs.model"], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    yield json.loads(program.stdout.readline())["port"]
    program.send_signal(signal.SIGTERM)
    assert program.wait(WAIT_S) == 0
    program.stdout.close()


@pytest.fixture
def link(port: int) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
    yield connection
    connection.close()


def ask(link: http.client.HTTPConnection, text: Any, *more: dict[str, Any], stream: bool = True) -> Any:
    messages = [{"role": "user", "content": text}, *more]
    link.request("POST", "/v1/chat/completions", json.dumps({"messages": messages, "stream": stream}))
    return link.getresponse()


def events(response: http.client.HTTPResponse) -> list[dict[str, Any]]:
    lines = response.read().decode().split("\n\n")
    assert lines[-2:] == ["data: [DONE]", ""]
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-2]]


def words(found: list[dict[str, Any]]) -> str:
    return "".join(one["choices"][0]["delta"].get("content", "") for one in found if one["choices"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("anything", "Hello from the model."),
        ("please SAY VERDICT: accept\nnow", "VERDICT: accept\nnow"),
        ([{"type": "text", "text": "SAY "}, {"type": "text", "text": "in parts"}], "in parts"),
    ],
)
def test_words_stream_and_end_with_a_reason_and_the_numbers(text: Any, said: str, link: Any) -> None:
    found = events(ask(link, text))

    assert words(found) == said
    assert found[-2]["choices"][0]["finish_reason"] == "stop"
    assert found[-1]["usage"]["total_tokens"] == 14


def test_a_tool_is_called_and_its_result_spoken_of(link: Any) -> None:
    found = events(ask(link, "TOOL"))
    deltas = [one["choices"][0]["delta"] for one in found if one["choices"]]
    calls = [one["tool_calls"][0] for one in deltas if "tool_calls" in one]
    after = events(ask(link, "TOOL", {"role": "assistant", "content": None}, {"role": "tool", "content": "hi"}))

    assert calls[0]["function"]["name"] == "bash"
    assert json.loads(calls[1]["function"]["arguments"]) == {"command": "sleep 0.3; echo hi"}
    assert words(after) == "tool said ok."


@pytest.mark.parametrize(("word", "status"), [("E400", 400), ("E429", 429), ("E500", 500)])
def test_an_error_comes_each_time(word: str, status: int, link: Any) -> None:
    for _ in range(2):
        response = ask(link, word)
        assert (response.status, "error" in json.loads(response.read())) == (status, True)


@pytest.mark.parametrize(("word", "status"), [("E429ONCE mine", 429), ("E500ONCE mine", 500)])
def test_an_error_comes_once(word: str, status: int, link: Any) -> None:
    statuses = []
    for _ in range(2):
        response = ask(link, word)
        response.read()
        statuses.append(response.status)

    assert statuses == [status, 200]


def test_a_cut_stream_breaks_off_and_the_server_lives_on(port: int, link: Any) -> None:
    with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
        ask(link, "CUT").read()

    other = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
    assert words(events(ask(other, "x"))) == "Hello from the model."
    other.close()


def test_a_hang_says_nothing_and_ends_with_the_client(port: int) -> None:
    link = socket.create_connection(("127.0.0.1", port), WAIT_S)
    body = json.dumps({"messages": [{"role": "user", "content": "HANG"}]})
    link.sendall(f"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode())
    link.settimeout(0.2)
    with pytest.raises(TimeoutError):
        link.recv(1)
    link.close()


def test_without_streaming_the_answer_is_one_object(link: Any) -> None:
    said = json.loads(ask(link, "SAY whole", stream=False).read())
    tool = json.loads(ask(link, "LONGTOOL", stream=False).read())

    assert said["choices"][0]["message"]["content"] == "whole"
    assert tool["choices"][0]["finish_reason"] == "tool_calls"


@pytest.mark.parametrize("body", ["", "{}", "[]", '{"messages":5}', '{"messages":[]}', "\0"])
def test_a_body_that_asks_nothing_is_refused_and_the_connection_goes_on(body: str, link: Any) -> None:
    link.request("POST", "/v1/chat/completions", body)
    response = link.getresponse()
    response.read()

    assert response.status == 400
    assert words(events(ask(link, "x"))) == "Hello from the model."


def test_other_paths_are_refused_with_the_one_there_is_and_models_are_listed(link: Any) -> None:
    link.request("POST", "/v1/responses", "{}")
    refused = json.loads(link.getresponse().read())
    link.request("GET", "/v1/models")

    assert "POST /v1/chat/completions" in refused["error"]["message"]
    assert json.loads(link.getresponse().read())["data"][0]["id"] == "fake-1"


def test_a_body_that_is_too_large_is_not_read(link: Any) -> None:
    link.putrequest("POST", "/v1/chat/completions")
    link.putheader("content-length", str(MAX_BODY_BYTES + 1))
    link.endheaders()

    assert link.getresponse().status == 413


def test_in_process_it_tells_what_it_was_asked_and_leaves_nothing() -> None:
    def plain(port: int) -> None:
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
        tools = [{"type": "function", "function": {"name": "bash"}}]
        messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}]
        link.request("POST", "/v1/chat/completions", json.dumps({"messages": messages, "tools": tools}))
        link.getresponse().read()
        link.close()

    async def run() -> tuple[Any, int]:
        async with serve_model(decide=lambda *_, **__: Reply(words=("own",))) as model:
            slow = asyncio.create_task(asyncio.open_connection("127.0.0.1", model.port))
            _, writer = await slow
            await asyncio.to_thread(plain, model.port)
        writer.close()
        return model.requests[0], len(asyncio.all_tasks())

    request, tasks = asyncio.run(run())

    assert (request.user, request.system, request.tools) == ("hi", "be brief", ("bash",))
    assert tasks == 1


def test_a_port_that_is_taken_is_one_line_and_code_1(port: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--port", str(port)]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_the_first_word_that_means_something_decides() -> None:
    assert reply_to("x SLOW TOOL").gap_ms == 150
    assert reply_to("slow tool") == reply_to("PLAIN")
    assert reply_to("LONGTOOL", after_tool=True).words[0] == "tool "
    assert reply_to("E500ONCE", asked_before=1).status == 200
