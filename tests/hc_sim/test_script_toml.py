"""Files that people write: every mistake is reported with file, line, key, and the nearest right name."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pytest

from hc_sim.profile import WireProfile
from hc_sim.script import toml as toml_module
from hc_sim.script.format import Agent, FileWrite, Finish, Step, Strict
from hc_sim.script.load import POLITE, Script, check_agent, read_script
from hc_sim.script.toml import FileError, dotted, line_of, parse_toml, read_toml

GOOD = """\
# who plays
[[agent]]
match = { name = "slow-*" }
status = "idle"

[[agent.step]]
at_ms = 300
turn_add = 1
status = "working"

[[agent.step]]
after_ms = 10
finish = { code = 3 }

[[agent]]
repeat_from = 0

  [[agent.step]]
  on_call = "terminal.send"
  file = { append = '{"a":1}' }

[[fault]]
method = "terminal.get"
reply = false
"""


def wrong(text: str, type_: type = Script) -> tuple[int, str, str]:
    with pytest.raises(FileError) as caught:
        parse_toml(text, type_, path="x.toml")
    assert caught.value.path == "x.toml"
    return caught.value.line, caught.value.key, caught.value.message


def bad_script(tmp_path: Path, text: str) -> tuple[int, str, str]:
    path = tmp_path / "x.toml"
    path.write_text(text)
    with pytest.raises(FileError) as caught:
        read_script(path)
    assert str(path) in str(caught.value)
    return caught.value.line, caught.value.key, caught.value.message


def test_a_good_file_becomes_values(tmp_path: Path) -> None:
    path = tmp_path / "good.toml"
    path.write_text(GOOD)
    script = read_script(path)
    assert [len(agent.step) for agent in script.agent] == [2, 1]
    assert script.agent[0].step[1] == Step(after_ms=10, finish=Finish(code=3))
    assert script.agent[1].step[0].file == FileWrite(append='{"a":1}')
    assert script.fault[0].method == "terminal.get"


def test_an_empty_file_is_an_empty_script() -> None:
    assert parse_toml("", Script) == Script()


# where


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "says"),
    [
        ('status = "idle"', 'statsu = "idle"', 4, "agent[0].statsu", "did you mean 'status'?"),
        ("at_ms = 300", "at = 300", 7, "agent[0].step[0].at", "did you mean 'at_ms'?"),
        ("after_ms = 10", "afterms = 10", 12, "agent[0].step[1].afterms", "did you mean 'after_ms'?"),
        ("code = 3", "kode = 3", 13, "agent[0].step[1].finish.kode", "did you mean 'code'?"),
        ('name = "slow-*"', 'nmae = "slow-*"', 3, "agent[0].match.nmae", "did you mean 'name'?"),
        ("reply = false", "zzz = false", 24, "fault[0].zzz", "known: after, apply, apply_ms"),
        ("[[fault]]", "[[fautl]]", 22, "fautl", "did you mean 'fault'?"),
        ("on_call =", "oncall =", 19, "agent[1].step[0].oncall", "did you mean 'on_call'?"),
    ],
)
def test_an_unknown_key_is_named_with_its_line_and_the_nearest_right_name(
    old: str, new: str, line: int, key: str, says: str
) -> None:
    assert old in GOOD
    found = wrong(GOOD.replace(old, new))
    assert found[:2] == (line, key)
    assert found[2].startswith(f"unknown key '{key.rsplit('.', 1)[-1]}'; ")
    assert says in found[2]


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "says"),
    [
        ("at_ms = 300", 'at_ms = "300"', 7, "agent[0].step[0].at_ms", "expected `int | null`, got `str`"),
        ("after_ms = 10", "after_ms = 1.5", 12, "agent[0].step[1].after_ms", "expected `int | null`, got `float`"),
        ("reply = false", "reply = 0", 24, "fault[0].reply", "expected `bool`, got `int`"),
        ("code = 3", 'code = "3"', 13, "agent[0].step[1].finish.code", "expected `int | null`"),
        ('name = "slow-*"', "name = 1", 3, "agent[0].match.name", "expected `str | null`"),
        ("repeat_from = 0", "repeat_from = [0]", 16, "agent[1].repeat_from", "expected `int | null`"),
        ("[[fault]]", "[fault]", 22, "fault", "expected `array`, got `object`"),
    ],
)
def test_a_value_of_the_wrong_type_is_named_with_its_line(old: str, new: str, line: int, key: str, says: str) -> None:
    assert old in GOOD
    found = wrong(GOOD.replace(old, new))
    assert found[:2] == (line, key)
    assert says in found[2]


def test_a_word_that_is_not_known_gets_the_nearest_known_one() -> None:
    line, key, message = wrong(GOOD.replace('status = "working"', 'status = "worknig"'))
    assert (line, key) == (9, "agent[0].step[0].status")
    assert message == "'worknig' is not one of the known words; did you mean 'working'?"


def test_a_word_that_is_near_nothing_gets_the_list() -> None:
    message = wrong('[[agent]]\nsend = "zzzzzzz"')[2]
    assert "known: accept, fuse, hold, refuse, swallow, unconfirmed" in message


def test_a_missing_key_is_named_at_its_table() -> None:
    line, key, message = wrong('[[fault]]\nmethod = "x"\n\n[[fault]]\nhold_until = { nth = 2 }\n')
    assert (line, key, message) == (5, "fault[1].hold_until.method", "is required but missing")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a = 1\nb = \n", 2),
        ("a = 1\n\na = 2\n", 3),
        ("[[agent]]\nturn = 012\n", 2),
        ("x = [1,\n", 1),
        ('x = "open\n', 1),
    ],
)
def test_what_is_not_toml_is_reported_with_its_line(text: str, line: int) -> None:
    found = wrong(text)
    assert (found[0], found[1]) == (line, "")
    assert found[2].startswith("is not TOML: ")


def test_the_message_reads_as_file_line_key() -> None:
    with pytest.raises(FileError) as caught:
        parse_toml("[[agent]]\ntrun = 1\n", Script, path="agents.toml")
    assert str(caught.value) == "agents.toml:2: agent[0].trun: unknown key 'trun'; did you mean 'turn'?"


# files


def test_a_file_that_is_not_there_is_reported_as_such(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"no\.toml: cannot be read: No such file or directory"):
        read_toml(tmp_path / "no.toml", Script)


def test_a_directory_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be read"):
        read_toml(tmp_path, Script)


def test_a_file_that_is_not_utf8_is_reported_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(b"# fine\n\n# \xff\n")
    with pytest.raises(FileError, match=r"x\.toml:3: is not UTF-8"):
        read_toml(path, Script)


def test_a_file_that_nobody_wrote_by_hand_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toml_module, "MAX_FILE_BYTES", 10)
    path = tmp_path / "x.toml"
    path.write_text("# 9 bytes")
    assert read_toml(path, Script) == Script()
    path.write_text("# 11 bytes.")
    with pytest.raises(FileError, match="larger than 10 bytes"):
        read_toml(path, Script)


def test_deep_nesting_is_an_error_and_no_crash() -> None:
    assert wrong("x = " + "[" * 50_000)[2].startswith(("nested too deeply", "is not TOML"))


def test_any_struct_can_be_read() -> None:
    assert parse_toml('version = "9"\nkinds = { blocked = "busy" }', WireProfile).kinds == {"blocked": "busy"}
    assert wrong("max_lin_bytes = 1", WireProfile)[2] == "unknown key 'max_lin_bytes'; did you mean 'max_line_bytes'?"
    assert wrong("torn_ms = -1", WireProfile)[:2] == (1, "torn_ms")


class Renamed(Strict, frozen=True, rename={"as_": "as"}):
    as_: str = ""
    inner: "dict[str, int]" = msgspec.field(default_factory=dict)
    level: Annotated[Literal["must", "should"], msgspec.Meta(description="x")] = "must"


def test_names_are_those_of_the_file() -> None:
    assert parse_toml('as = "x"', Renamed).as_ == "x"
    assert wrong('as_ = "x"', Renamed)[2] == "unknown key 'as_'; did you mean 'as'?"
    assert wrong("as = 1", Renamed)[:2] == (1, "as")
    assert wrong('level = "musst"', Renamed)[2].endswith("did you mean 'must'?")


def test_free_tables_take_any_key_and_name_the_wrong_value() -> None:
    assert parse_toml("[inner]\nx = 1", Renamed).inner == {"x": 1}
    assert wrong('[inner]\nonly = "1"', Renamed)[:2] == (2, "inner.only")


# lines and keys


@pytest.mark.parametrize(
    ("key", "line"),
    [
        (("agent", 0), 2),
        (("agent", 0, "status"), 4),
        (("agent", 0, "step", 0), 6),
        (("agent", 0, "step", 1, "finish"), 13),
        (("agent", 1), 15),
        (("agent", 1, "step", 0), 18),
        (("agent", 1, "step", 0, "file", "append"), 20),
        (("fault", 0, "reply"), 24),
        (("nothing",), 1),
    ],
)
def test_a_key_path_leads_to_the_line_where_it_is_written(key: tuple[str | int, ...], line: int) -> None:
    assert line_of(GOOD, key) == line


def test_lines_are_found_in_tables_quoted_and_dotted_keys() -> None:
    text = '[world.env]\n"A B" = "1"\n\n[world.agent]\nmatch.name = "x"\n'
    assert line_of(text, ("world", "env", "A B")) == 2
    assert line_of(text, ("world", "agent", "match", "name")) == 5


def test_a_header_inside_a_text_is_no_header() -> None:
    text = '[[agent]]\nturn = 1\n[[agent.step]]\nnote = """\n[[agent]]\n"""\n[[agent]]\nturn = 2\n'
    assert line_of(text, ("agent", 1, "turn")) == 8


def test_a_key_path_is_written_as_people_write_it() -> None:
    assert dotted(("world", "agent", 2, "step", 0, "at_ms")) == "world.agent[2].step[0].at_ms"


# what types cannot say


@pytest.mark.parametrize(
    ("step", "says"),
    [
        ('status = "idle"', "exactly one trigger of at_ms, after_ms, on_call"),
        ('at_ms = 1\nafter_ms = 1\nstatus = "idle"', "this one has at_ms and after_ms"),
        ("at_ms = 1", "at least one effect"),
        ('at_ms = -1\nstatus = "idle"', "at_ms must not be negative"),
        ('on_call = "terminal.gte"\nstatus = "idle"', "did you mean 'terminal.get'?"),
        ('on_call = "doc.get"\nstatus = "idle"', "is no call on a terminal"),
        ('on_call = "terminal.get"\nnth = 0\nstatus = "idle"', "nth counts from 1"),
        ('at_ms = 1\nnth = 2\nstatus = "idle"', "nth belongs to on_call"),
        ('on_prompt = false\nstatus = "idle"', "on_prompt is true or absent"),
        ('at_ms = 1\nfinish = { code = 1, signal = "SIGHUP" }', "a code or a signal, not both"),
        ("at_ms = 1\nfile = {}", "exactly one of append, append_hex, replace, remove"),
        ('at_ms = 1\nfile = { append = "a", remove = true }', "exactly one of append"),
        ('at_ms = 1\nfile = { append_hex = "0g" }', "append_hex is not hexadecimal"),
        ("at_ms = 1\nturn = -1", "turn must not be negative"),
    ],
)
def test_a_step_that_cannot_be_played_is_reported_at_its_line(tmp_path: Path, step: str, says: str) -> None:
    text = f'[[agent]]\nturn = 0\n\n[[agent.step]]\nat_ms = 0\nnote = "fine"\n\n[[agent.step]]\n{step}\n'
    line, key, message = bad_script(tmp_path, text)
    assert (line, key) == (8, "agent[0].step[1]")
    assert says in message


@pytest.mark.parametrize(
    ("agent", "key", "says"),
    [
        ("uses = -1", "agent[0].uses", "must not be negative"),
        ("kill_ms = -1", "agent[0].kill_ms", "must not be negative"),
        ("repeat_from = 1", "agent[0].repeat_from", "there is no step 1"),
        ("after_esc = 7", "agent[0].after_esc", "there is no step 7"),
        ("repeat_from = 0", "agent[0].repeat_from", "it would run for ever"),
    ],
)
def test_an_agent_that_cannot_be_played_is_reported_at_its_line(
    tmp_path: Path, agent: str, key: str, says: str
) -> None:
    found = bad_script(tmp_path, f"[[agent]]\n{agent}\n[[agent.step]]\nat_ms = 1\nturn_add = 1\n")
    assert found[:2] == (2, key)
    assert says in found[2]


@pytest.mark.parametrize(
    "waits",
    [
        Step(after_ms=1, note=""),
        Step(on_call="terminal.get", note=""),
        Step(by_hand="x", note=""),
        Step(on_prompt=True, note=""),
    ],
)
def test_a_repetition_that_waits_for_something_is_fine(waits: Step) -> None:
    assert list(check_agent(Agent(step=[Step(at_ms=0, turn=1), waits], repeat_from=0))) == []


def test_the_polite_agent_can_be_played() -> None:
    assert list(check_agent(POLITE)) == []


INLINE = """\
a = 1
[[world.agent]]
step = [
  { at_ms = 1, status = "idle" }, # { not an element
  { at_ms = 2, file = { append = "x, } ] = y" }, finish = {
     code = 3 } },

  { at_ms = 3, labels = { "a b" = "c" } },
  { at_ms = 4, note = '''
   step = [ { turn = 1 }
   ''', turn = 9 },
]
"""


@pytest.mark.parametrize(
    ("key", "line"),
    [
        (("step",), 3),
        (("step", 0), 4),
        (("step", 0, "status"), 4),
        (("step", 1, "finish"), 5),
        (("step", 1, "finish", "code"), 6),
        (("step", 2, "labels", "a b"), 8),
        (("step", 3, "turn"), 11),
        (("step", 3, "not there"), 9),
        (("step", 9), 3),
    ],
)
def test_a_key_inside_a_list_over_several_lines_is_found(key: tuple[str | int, ...], line: int) -> None:
    assert line_of(INLINE, ("world", "agent", 0, *key)) == line
