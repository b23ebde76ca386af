"""The table finds what a search would find, whatever is added, ended, renamed and removed."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from hc_sim.core.table import Table
from hc_sim.core.terminal import Entry

NAMES = st.sampled_from([None, "a", "b", "t1", "t2"])


def entry(address: str, name: str | None, parent: str | None = None) -> Entry:
    return Entry(
        address=address, name=name, argv=["x"], cwd="/", labels={}, env={}, parent=parent, die_with_parent=True,
        keep=False, rm=False, created_ms=0, pid=1, turn=0,
    )  # fmt: skip


class TableMachine(RuleBasedStateMachine):
    """A table beside a plain list in order of creation; finished ones also in the order of their end."""

    @initialize(reuse=st.booleans(), suffix=st.booleans())
    def begin(self, reuse: bool, suffix: bool) -> None:
        self.table = Table(reuse_addresses=reuse, suffix=suffix)
        self.entries: list[Entry] = []
        self.bound: list[Entry] = []

    def pick(self, number: int) -> Entry:
        return self.entries[number % len(self.entries)]

    @rule(name=NAMES, parent=st.none() | st.integers(0, 9))
    def add(self, name: str | None, parent: int | None) -> None:
        if name is not None and self.table.holder(name) is not None:
            name = None
        above = self.pick(parent).address if parent is not None and self.entries else None
        new = entry(self.table.new_address(), name, above)
        self.table.add(new)
        self.entries.append(new)

    @precondition(lambda self: self.entries)
    @rule(number=st.integers(0, 9))
    def finish(self, number: int) -> None:
        one = self.pick(number)
        if one.live:
            self.table.finish(one)
            self.bound.append(one)

    @precondition(lambda self: self.entries)
    @rule(number=st.integers(0, 9), name=NAMES)
    def rename(self, number: int, name: str | None) -> None:
        one = self.pick(number)
        taken = one.live and any(other.live and other is not one and other.name == name for other in self.entries)
        before = one.name
        self.table.rename(one, name)
        assert one.name == (before if taken and name is not None else name)
        if not one.live:
            self.bound.remove(one)
            self.bound.append(one)

    @precondition(lambda self: self.entries)
    @rule(number=st.integers(0, 9))
    def remove(self, number: int) -> None:
        one = self.pick(number)
        self.table.remove(one)
        self.entries.remove(one)
        if one in self.bound:
            self.bound.remove(one)

    def search(self, target: str) -> Entry | None:
        for one in self.entries:
            if one.address == target:
                return one
        for one in self.entries:
            if one.live and one.name == target:
                return one
        return next((one for one in reversed(self.bound) if one.name == target), None)

    @invariant()
    def it_finds_what_a_search_finds(self) -> None:
        assert list(self.table) == self.entries
        assert len(self.table) == len(self.entries)
        assert self.table.live_count == sum(one.live for one in self.entries)
        for target in ("a", "b", "t1", "t2", "t3", "nobody", *(one.address for one in self.entries)):
            assert self.table.find(target) is self.search(target)
        for one in self.entries:
            children = [child for child in self.entries if child.parent == one.address]
            assert self.table.children(one.address) == children


TableMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestTable = TableMachine.TestCase


def test_addresses_count_up_and_are_not_reused_by_default() -> None:
    table = Table()
    first = entry(table.new_address(), None)
    table.add(first)
    table.remove(first)
    assert (first.address, table.new_address()) == ("t1", "t2")


def test_the_lowest_free_address_is_reused_where_that_is_asked_for() -> None:
    table = Table(reuse_addresses=True)
    entries = [entry(table.new_address(), None) for _ in range(4)]
    for one in entries:
        table.add(one)
    for number in (2, 0):
        table.remove(entries[number])
    assert [table.new_address(), table.new_address(), table.new_address()] == ["t1", "t3", "t5"]


def test_an_address_that_came_back_by_itself_is_not_given_out() -> None:
    table = Table(reuse_addresses=True)
    one = entry(table.new_address(), None)
    table.add(one)
    table.remove(one)
    table.add(one)
    assert table.new_address() == "t2"


def test_a_suffix_makes_addresses_that_are_no_numbers() -> None:
    table = Table(suffix=True)
    assert [table.new_address() for _ in range(3)] == ["t1b", "t2c", "t3d"]


@pytest.mark.parametrize("finished_too", [False, True])
def test_a_holder_is_live_unless_finished_ones_count(finished_too: bool) -> None:
    table = Table()
    one = entry(table.new_address(), "a")
    table.add(one)
    table.finish(one)
    assert table.holder("a", finished_too=finished_too) is (one if finished_too else None)
    assert table.holder("b", finished_too=finished_too) is None
