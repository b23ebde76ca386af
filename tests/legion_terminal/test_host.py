import itertools
import sys
from pathlib import Path

import pytest

from legion_terminal.host import is_executable_file, resolve_hc, terminal_host_available

MARKERS = ("HC_TERMINAL_SOCKET", "HC_TERMINAL_ID")


@pytest.mark.parametrize("values", list(itertools.product([None, "", "x"], repeat=2)))
def test_inside_hc_means_both_markers_are_set_and_not_empty(values: tuple[str | None, str | None]) -> None:
    env = {name: value for name, value in zip(MARKERS, values, strict=True) if value is not None}
    assert terminal_host_available(env) is (values == ("x", "x"))


def test_other_hc_variables_are_no_markers() -> None:
    assert not terminal_host_available(
        {"HC_SOCKET": "/s", "HC_BIN": "/hc", "HC_SESSION": "one", "HC_TERMINAL_ID": "t1"}
    )


def test_a_blank_is_not_empty() -> None:
    assert terminal_host_available({"HC_TERMINAL_SOCKET": " ", "HC_TERMINAL_ID": " "})


def test_detection_touches_no_file_and_starts_nothing() -> None:
    seen: list[str] = []
    on = [True]
    sys.addaudithook(lambda event, _: seen.append(event) if on[0] else None)
    assert terminal_host_available({"HC_TERMINAL_SOCKET": "/no/such/socket", "HC_TERMINAL_ID": "t1"})
    on[0] = False
    assert not [event for event in seen if event.startswith(("open", "os.", "socket.", "subprocess."))]


# -- which executable ------------------------------------------------------------------------------------------------

ENV = {"HC_BIN": "/named/hc", "PATH": "/a:/b", "HOME": "/home/u"}


def resolved(env: dict[str, str], *there: str) -> str:
    return resolve_hc(env, is_executable=lambda path: path in there)


def without(*names: str) -> dict[str, str]:
    return {name: value for name, value in ENV.items() if name not in names}


def test_a_named_executable_wins_even_when_it_is_not_there() -> None:
    assert resolved(ENV, "/a/hc") == "/named/hc"


@pytest.mark.parametrize("env", [without("HC_BIN"), {**ENV, "HC_BIN": ""}], ids=["absent", "empty"])
def test_then_comes_the_first_one_on_path(env: dict[str, str]) -> None:
    assert resolved(env, "/a/hc", "/b/hc", "/home/u/.local/bin/hc") == "/a/hc"
    assert resolved(env, "/b/hc", "/home/u/.local/bin/hc") == "/b/hc"


def test_then_the_place_where_the_installer_puts_it() -> None:
    assert resolved(without("HC_BIN"), "/home/u/.local/bin/hc") == "/home/u/.local/bin/hc"


@pytest.mark.parametrize("gone", [(), ("PATH",), ("HOME",), ("PATH", "HOME")], ids=str)
def test_then_the_bare_name(gone: tuple[str, ...]) -> None:
    assert resolved(without("HC_BIN", *gone)) == "hc"


def test_an_empty_home_leads_nowhere() -> None:
    assert resolved({"HOME": ""}, "/.local/bin/hc", "/home/u/.local/bin/hc") == "hc"


def test_an_empty_element_of_path_is_not_the_current_folder() -> None:
    assert resolved({"PATH": ":/a:"}, "/hc", "hc", "./hc") == "hc"


def test_an_element_of_path_stays_a_path_and_is_looked_up_nowhere_else() -> None:
    assert resolved({"PATH": ".:/a"}, "./hc") == "./hc"


def test_every_order_of_presence_gives_the_first_of_the_four() -> None:
    order = ["/a/hc", "/b/hc", "/home/u/.local/bin/hc"]
    for there in itertools.product([False, True], repeat=3):
        present = [path for path, is_there in zip(order, there, strict=True) if is_there]
        assert resolved(without("HC_BIN"), *present) == (present[0] if present else "hc")


def test_only_a_file_with_the_right_to_execute_counts(tmp_path: Path) -> None:
    plain, folder, good, link = tmp_path / "plain", tmp_path / "hc", tmp_path / "good", tmp_path / "link"
    plain.write_text("")
    plain.chmod(0o644)
    folder.mkdir()
    good.write_text("")
    good.chmod(0o755)
    link.symlink_to(good)
    assert [is_executable_file(str(path)) for path in (plain, folder, good, link, tmp_path / "none")] == [
        False,
        False,
        True,
        True,
        False,
    ]


def test_a_folder_named_hc_on_path_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "one" / "hc").mkdir(parents=True)
    (tmp_path / "two").mkdir()
    program = tmp_path / "two" / "hc"
    program.write_text("")
    program.chmod(0o755)
    assert resolve_hc({"PATH": f"{tmp_path}/one:{tmp_path}/two"}) == str(program)
