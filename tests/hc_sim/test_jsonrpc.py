"""Lines become requests or refusals; ids go back as they came; what a lenient decoder lets pass is refused."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hc_sim.profile import WireProfile
from hc_sim.wire import (
    Refusal,
    Request,
    decode,
    encode_error,
    encode_notification,
    encode_result,
    refuse_line,
)

PROFILE = WireProfile()

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8
)


def request(line: bytes, profile: WireProfile = PROFILE) -> Request:
    found = decode(line, profile)
    assert isinstance(found, Request), found
    return found


def refusal(line: bytes, profile: WireProfile = PROFILE) -> Refusal:
    found = decode(line, profile)
    assert isinstance(found, Refusal), found
    return found


@pytest.mark.parametrize(
    "id_",
    [
        "1",
        '"1"',
        '""',
        "null",
        "1.0",
        "1e2",
        "-0",
        "true",
        '{"a":[1, 2]}',
        "[ ]",
        '"\\u00e9"',
        "9007199254740993",
        "1" * 40,
    ],
)
def test_an_id_of_any_type_goes_back_byte_for_byte(id_: str) -> None:
    found = request(b'{"jsonrpc":"2.0","id":%s,"method":"hello"}' % id_.encode())
    assert found.answer
    assert encode_result(found.raw_id, {}, PROFILE) == b'{"id":%s,"jsonrpc":"2.0","result":{}}\n' % id_.encode()
    assert found.id == json.loads(id_)


def test_an_id_inside_the_parameters_is_not_the_id() -> None:
    found = request(b'{"params":{"id":5},"jsonrpc":"2.0","id":12,"method":"x"}')
    assert (found.id, found.params) == (12, {"id": 5})


def test_without_an_id_it_is_a_notification() -> None:
    assert not request(b'{"jsonrpc":"2.0","method":"x"}').answer


def test_absent_parameters_are_none() -> None:
    assert request(b'{"jsonrpc":"2.0","id":1,"method":"x"}').params is None


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}', "id"),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":{"b":1,"b":1}}}', "b"),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1,"\\u0061":2}}', "a"),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":[{"k" : 1, "k"\t:2}]}', "k"),
    ],
)
def test_a_member_that_comes_twice_is_refused_by_name(line: bytes, name: str) -> None:
    found = refusal(line)
    assert found.error.kind == "parse_error"
    assert f'"{name}" comes twice' in found.error.message
    assert bytes(found.raw_id) == b"null"


def test_colons_in_texts_and_names_are_no_duplicates() -> None:
    found = request(b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a:b":"c:d","u":"http://h:1/"}}')
    assert found.params == {"a:b": "c:d", "u": "http://h:1/"}


@given(values)
def test_every_json_value_passes_unchanged(value: Any) -> None:
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"v": value}}).encode()
    assert request(line).params == {"v": value}


@given(st.dictionaries(st.text(max_size=4), scalars, min_size=1, max_size=4), st.data())
def test_a_repeated_member_is_found_wherever_it_stands(members: dict[str, Any], data: st.DataObject) -> None:
    pairs = [(json.dumps(name), json.dumps(value)) for name, value in members.items()]
    again = data.draw(st.sampled_from(pairs))
    pairs.insert(data.draw(st.integers(0, len(pairs))), again)
    body = ",".join(f"{name}:{value}" for name, value in pairs)
    line = f'{{"jsonrpc":"2.0","id":1,"method":"x","params":{{{body}}}}}'.encode()
    assert refusal(line).error.kind == "parse_error"


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"   ",
        b"hello",
        b'{"jsonrpc":"2.0","id":1,"method":"x"',
        b'{"jsonrpc":"2.0","id":1,"method":"x"} {}',
        b'{"jsonrpc":"2.0","id":NaN,"method":"x"}',
        b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":Infinity}}',
        b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":-Infinity}}',
        b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1e999}}',
        b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"x"}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
    ],
)
def test_what_is_not_json_is_a_parse_error_without_id(line: bytes) -> None:
    found = refusal(line)
    assert (found.error.code, found.error.kind, found.id, found.close) == (-32700, "parse_error", None, False)


@pytest.mark.parametrize(
    "line", [b"null", b"5", b'"x"', b"{}", b'{"jsonrpc":"2.0","id":1}', b'{"jsonrpc":"1.0","method":"x"}']
)
def test_what_is_json_but_no_request_is_an_invalid_request(line: bytes) -> None:
    assert (refusal(line).error.code, refusal(line).error.kind) == (-32600, "invalid_request")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"id":NaN}', "not JSON, from byte 6 on"),
        (b"{bad", "not JSON, from byte 1 on"),
        (b'{"id":1e400}', "not JSON"),
        (b'{"id":' + b"9" * 5_000 + b',"id":1}', "not JSON"),
        (b'{"id":"\\ud800"}', "not JSON"),
        (b"", "not JSON"),
    ],
)
def test_a_parse_error_says_where_and_shows_no_text_of_an_exception(line: bytes, words: str) -> None:
    refusal = decode(line, WireProfile())
    assert isinstance(refusal, Refusal)
    assert refusal.error.message == words


def test_an_invalid_request_is_answered_under_its_own_id() -> None:
    found = refusal(b'{"jsonrpc":"2.0","id":[7],"method":5}')
    assert found.id == [7]
    assert encode_error(found.raw_id, found.error, PROFILE).startswith(b'{"error":')
    assert json.loads(encode_error(found.raw_id, found.error, PROFILE))["id"] == [7]


def test_the_version_member_is_demanded_unless_the_profile_says_otherwise() -> None:
    line = b'{"id":1,"method":"x"}'
    assert "jsonrpc" in refusal(line).error.message
    assert request(line, WireProfile(require_jsonrpc=False)).method == "x"


def test_a_trailing_carriage_return_is_white_space() -> None:
    assert request(b'{"jsonrpc":"2.0","id":1,"method":"x"}\r').method == "x"


def test_batches_are_refused_and_close_the_connection_if_the_profile_says_so() -> None:
    line = b'[{"jsonrpc":"2.0","id":1,"method":"x"}]'
    assert (refusal(line).error.kind, refusal(line).close) == ("batch_refused", False)
    assert refusal(line, WireProfile(batches="close")).close


@pytest.mark.parametrize(("oversize", "close"), [("error-close", True), ("error", False)])
def test_a_line_over_the_limit_is_answered_as_the_profile_says(oversize: Any, close: bool) -> None:
    found = refuse_line(WireProfile(oversize=oversize, max_line_bytes=77))
    assert found is not None
    assert (found.error.kind, found.close) == ("line_too_long", close)
    assert "77" in found.error.message


def test_a_line_over_the_limit_can_be_left_unanswered() -> None:
    assert refuse_line(WireProfile(oversize="close")) is None


def test_the_unknown_method_reply_is_the_measured_one_to_the_byte() -> None:
    error = PROFILE.error("unknown_method", 'unknown method "pane.list"', "see `hc schema` for the methods")
    assert encode_error("1", error, PROFILE) == (
        b'{"error":{"code":-32601,"data":{"hint":"see `hc schema` for the methods","kind":"unknown_method"},'
        b'"message":"unknown method \\"pane.list\\""},"id":"1","jsonrpc":"2.0"}\n'
    )


def test_keys_are_sorted_at_every_level_unless_the_profile_says_otherwise() -> None:
    result = {"b": {"d": 1, "c": 2}, "a": 0}
    assert encode_result(1, result, PROFILE) == b'{"id":1,"jsonrpc":"2.0","result":{"a":0,"b":{"c":2,"d":1}}}\n'
    plain = encode_result(1, result, WireProfile(sorted_keys=False))
    assert plain == b'{"jsonrpc":"2.0","id":1,"result":{"b":{"d":1,"c":2},"a":0}}\n'


def test_integers_of_any_size_are_written_exactly() -> None:
    big = 10**40
    assert json.loads(encode_result(big, {"v": [big, -big]}, PROFILE)) == {
        "id": big, "jsonrpc": "2.0", "result": {"v": [big, -big]},
    }  # fmt: skip


def test_a_text_with_line_separators_stays_on_one_line() -> None:
    line = encode_notification("x", {"t": "a\nb\u2028c"}, PROFILE)
    assert line.count(b"\n") == 1
    assert json.loads(line)["params"] == {"t": "a\nb\u2028c"}
    assert "id" not in json.loads(line)


def test_a_member_that_comes_twice_among_very_many_is_found_in_one_pass() -> None:
    names = [f'"n{number}":1' for number in range(50_000)]
    line = f'{{"jsonrpc":"2.0","id":1,"method":"hello","params":{{{",".join([*names, names[-1]])}}}}}'.encode()

    assert 'member "n49999" comes twice' in refusal(line).error.message
