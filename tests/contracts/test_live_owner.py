import os
import subprocess
import sys
from pathlib import Path

from contracts.live.corner import Corner, RealFiles, read_log
from contracts.live.janitor import owner_of, remove_old_folders
from contracts.live.owner import LABEL, SPACE, Owner, new_owner, read_mark, start_of, this_machine


def dead() -> Owner:
    """A run whose process is certainly no more."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        start = start_of(process.pid)
    return Owner("lvdead00", process.pid, start or "0x1", this_machine())


def terminal(owner: Owner, **changes: object) -> dict[str, object]:
    shown: dict[str, object] = {
        "address": "t7",
        "name": f"lgv-{owner.token}-1x",
        "created_ms": 5,
        "labels": {LABEL: owner.mark},
        "state": "running",
    }
    return shown | changes


def test_a_mark_names_its_owner_and_nothing_else_is_a_mark() -> None:
    owner = new_owner()

    assert read_mark(owner.mark) == owner
    assert [read_mark(text) for text in ("", "legion-live", f"{owner.mark}x", None, 7, "space-1")] == [None] * 6


def test_this_process_lives_and_one_that_has_ended_is_gone() -> None:
    assert not new_owner().gone()
    assert dead().gone()


def test_another_process_under_the_same_number_is_not_the_owner() -> None:
    owner = new_owner()

    assert Owner(owner.token, owner.pid, "00000000x1", owner.machine).gone()


def test_of_another_machine_nobody_is_ever_gone() -> None:
    assert not Owner("lvother0", dead().pid, "00000000x1", "00000000").gone()


def test_two_runs_have_names_that_do_not_meet() -> None:
    one, two = new_owner("lvaaaaaa"), new_owner("lvbbbbbb")

    assert one.named("lgv-lvaaaaaa-1home")
    assert one.named("lgl-lvaaaaaa-one")
    assert not two.named("lgv-lvaaaaaa-1home")
    assert not one.named(None)
    assert not one.named("lvaaaaaa")


def test_a_terminal_is_only_taken_for_a_runs_own_by_name_and_label_together() -> None:
    owner = new_owner()

    assert owner_of(terminal(owner)) == owner
    assert owner_of(terminal(owner, labels={SPACE: owner.mark})) == owner
    assert owner_of(terminal(owner, name="slow-1")) is None
    assert owner_of(terminal(owner, labels={})) is None
    assert owner_of(terminal(owner, labels={LABEL: "space-1"})) is None
    assert owner_of(terminal(owner, labels=None)) is None


def test_a_corner_knows_its_own_terminals_and_no_later_life_of_them() -> None:
    corner = Corner(new_owner(), Path("/nonexistent"), RealFiles())
    corner.took(terminal(corner.owner))

    assert corner.is_mine(terminal(corner.owner))
    assert not corner.is_mine(terminal(corner.owner, created_ms=6))
    assert not corner.is_mine(terminal(corner.owner, name="renamed"))
    assert not corner.is_mine(terminal(corner.owner, labels={}))
    assert not corner.is_mine(terminal(new_owner(), address="t8"))


def test_a_core_that_drops_labels_is_still_cleaned_up_by_address_name_and_time() -> None:
    corner = Corner(new_owner(), Path("/nonexistent"), RealFiles())
    corner.took(terminal(corner.owner, labels={}))

    assert corner.is_mine(terminal(corner.owner, labels={}))
    assert not corner.is_mine(terminal(corner.owner, labels={}, address="t8"))


def test_names_are_what_a_core_takes() -> None:
    corner = Corner(new_owner(), Path("/nonexistent"), RealFiles())
    names = [corner.name("a-rather-long-word-for-a-name") for _ in range(12)]

    assert len(set(names)) == 12
    assert all(len(name) <= 32 and name.replace("-", "").isalnum() and name == name.lower() for name in names)


def test_folders_of_dead_runs_are_removed_and_those_of_living_ones_stay(tmp_path: Path) -> None:
    old, own = dead(), new_owner()
    for owner in (old, own):
        (tmp_path / f"lglive-{owner.token}-{owner.pid}-{owner.start}-{owner.machine}-abc").mkdir()
    (tmp_path / "lglive-other").mkdir()

    assert remove_old_folders(tmp_path) == 1
    assert sorted(path.name.split("-")[1] for path in tmp_path.iterdir()) == sorted([own.token, "other"])


def test_a_line_of_a_log_that_is_not_complete_is_left_out() -> None:
    assert read_log('{"what": "start"}\n{"what": "te') == [{"what": "start"}]


def test_an_owner_that_cannot_be_looked_at_is_not_gone() -> None:
    assert not Owner("lvinit00", 1, "", this_machine()).gone() or os.getpid() == 1
