"""A campaign finds the same whoever carries it out, however often it is put down, and says what it never reached."""

import itertools
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from contracts.fuzz.batch import Batch, Failure, Report, carry_out
from contracts.fuzz.campaign import Until, pursue
from contracts.fuzz.engines import HereEngine, PoolEngine
from contracts.fuzz.outcome import as_json, coverage, lines, never_seen
from contracts.fuzz.saved import SavedError, Setting, State, fold, found, load, save, seed_in
from contracts.fuzz.sometimes import SOMETIMES

SMALL = Setting(seed=5, batch_runs=4, window=2)


def pretend(batch: Batch) -> Report:
    """A batch whose report tells what it was given, and that reaches one new state."""
    return Report(
        index=batch.index,
        drawn=batch.count,
        runs=batch.count,
        seen={"retired": 1},
        features=[f"look/first/new-{batch.index}/well", f"known {len(batch.known)} parents {len(batch.parents)}"],
        fresh=[[batch.index]],
    )


class Shuffled(HereEngine):
    """Gives reports in another order than that of their batches."""

    def __init__(self, work: Callable[[Batch], Report], workers: int) -> None:
        super().__init__(work)
        self.workers = workers
        self.sizes: list[int] = []

    def next(self, timeout_s: float) -> Report | None:
        self.sizes.append(len(self._waiting))
        return self._work(self._waiting.pop()) if self._waiting else None


def campaign(setting: Setting, examples: int, engine: HereEngine | PoolEngine, state: State | None = None) -> State:
    state = state or State(setting=setting)
    pursue(state, engine, Until(examples=examples))
    return state


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_the_order_of_reports_and_the_number_of_workers_change_nothing(workers: int) -> None:
    straight = campaign(SMALL, 40, HereEngine(pretend))

    assert found(campaign(SMALL, 40, Shuffled(pretend, workers))) == found(straight)


def test_a_campaign_makes_as_many_runs_as_asked_for_each_with_its_own_seed() -> None:
    batches: list[Batch] = []

    def noted(batch: Batch) -> Report:
        batches.append(batch)
        return pretend(batch)

    state = campaign(SMALL, 10, HereEngine(noted))

    assert state.runs == state.drawn == 10
    assert [seed for one in batches for seed in range(one.first, one.first + one.count)] == list(range(5, 15))


def test_a_batch_knows_what_was_known_some_batches_before() -> None:
    batches: list[Batch] = []

    def noted(batch: Batch) -> Report:
        batches.append(batch)
        return pretend(batch)

    campaign(SMALL, 24, Shuffled(noted, 8))

    newest = {one.index: max((int(p[0]) for p in one.parents), default=None) for one in batches}
    assert newest[0] is None
    assert newest[1] is None
    assert all(index is None or index <= at - SMALL.window for at, index in newest.items())
    assert not any(f"new-{one.index - 1}/" in feature for one in batches for feature in one.known)


def test_no_more_batches_are_under_way_than_the_window_lets() -> None:
    engine = Shuffled(pretend, 50)

    campaign(SMALL, 80, engine)

    assert max(engine.sizes) == SMALL.window


def test_a_campaign_that_is_put_down_goes_on_and_finds_the_same(tmp_path: Path) -> None:
    path = tmp_path / "campaign.json"
    setting = Setting(seed=100, batch_runs=10)
    straight = campaign(setting, 60, HereEngine(carry_out))

    save(path, campaign(setting, 20, HereEngine(carry_out)))
    resumed = load(path, setting)
    campaign(setting, 60, HereEngine(carry_out), resumed)

    assert found(resumed) == found(straight)
    assert resumed.runs == 60


def test_time_ends_a_campaign_and_what_is_under_way_is_still_taken_in() -> None:
    state = State(setting=SMALL)
    clock = itertools.count().__next__

    pursue(state, HereEngine(pretend), Until(seconds=5.0), clock=lambda: float(clock()))

    assert state.runs > 0
    assert state.runs % SMALL.batch_runs == 0


def test_the_first_failure_may_end_a_campaign() -> None:
    def failing(batch: Batch) -> Report:
        failure = Failure(invariant="consent", clause="D8", words="no", step=0, number=batch.first, seed=batch.first)
        return msgspec.structs.replace(pretend(batch), failures=[failure] if batch.index == 3 else [], failed=1)

    state = State(setting=SMALL)
    pursue(state, HereEngine(failing), Until(examples=10_000, first_failure=True))

    assert 4 <= state.next <= 4 + 2 * SMALL.window


def test_a_report_out_of_turn_is_refused() -> None:
    with pytest.raises(ValueError, match="batch 3 came, and 0 is next"):
        fold(State(setting=SMALL), Report(index=3, drawn=1, runs=1))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "no saved campaign"),
        (b"\xff\xfe nonsense", "no saved campaign"),
        (b'{"schema": 1}', "no saved campaign"),
        (b'{"schema": 9, "setting": {"seed": 5}}', "schema 9"),
        (b'{"setting": {"seed": 6}}', "seed 6 there, 5 asked for"),
        (b'{"setting": {"seed": 5, "mode": "blind"}}', "mode 'blind' there"),
    ],
)
def test_what_is_no_campaign_of_ours_is_one_clear_error_and_left_as_it_is(
    tmp_path: Path, text: bytes, why: str
) -> None:
    path = tmp_path / "campaign.json"
    path.write_bytes(text)

    with pytest.raises(SavedError, match=why):
        load(path, Setting(seed=5))
    assert path.read_bytes() == text


def test_a_file_that_is_not_there_is_a_new_campaign_and_a_folder_is_not(tmp_path: Path) -> None:
    assert load(tmp_path / "new.json", SMALL) == State(setting=SMALL)
    with pytest.raises(SavedError, match="cannot be read"):
        load(tmp_path, SMALL)


def test_a_torn_write_leaves_the_campaign_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "campaign.json"
    save(path, State(setting=SMALL, runs=4))
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        save(path, State(setting=SMALL, runs=8))

    assert path.read_bytes() == before
    assert seed_in(path) == SMALL.seed


def test_a_guided_batch_follows_earlier_runs_and_a_blind_one_does_not() -> None:
    first = carry_out(Batch(index=0, first=0, count=20))
    parents = first.fresh[:5]

    guided = carry_out(Batch(index=1, first=20, count=20, parents=parents, known=first.features))
    blind = carry_out(Batch(index=1, first=20, count=20, mode="blind", parents=parents, known=first.features))
    plain = carry_out(Batch(index=1, first=20, count=20, mode="blind", known=first.features))

    assert (blind.features, blind.calls) == (plain.features, plain.calls)
    assert guided.calls != blind.calls


def test_a_batch_reports_the_same_every_time() -> None:
    batch = Batch(index=2, first=300, count=25, parents=[[1, 2, 3]])
    reports = [msgspec.structs.replace(carry_out(batch), cpu_s=0.0) for _ in range(2)]

    assert msgspec.json.encode(reports[0]) == msgspec.json.encode(reports[1])


def test_a_batch_with_a_planted_fault_reports_its_failures_with_their_seeds() -> None:
    report = carry_out(Batch(index=0, first=0, count=20, mode="blind", plant="idle-settles"))

    assert report.failed > 0
    assert {failure.invariant for failure in report.failures} == {"consent"}
    assert all(failure.seed is not None and failure.clause == "D8" for failure in report.failures)


@pytest.fixture(name="mixed")
def a_state() -> State:
    return State(
        setting=SMALL,
        runs=8,
        failed=1,
        seconds=2.0,
        seen={"retired": 3, "a wait called off": 1},
        features={"look/first/new-done/reply": 0, "end/wait/settled/first": 0},
        failures=[Failure(invariant="consent", clause="D8", words="settled on idle", step=2, number=7, seed=7)],
    )


def test_what_was_never_reached_is_listed(mixed: State) -> None:
    never = never_seen(mixed)

    assert set(never) == set(SOMETIMES) - {"retired", "a wait called off"}
    assert [line for line in lines(mixed) if line.startswith("never seen: verdict accept")]


def test_coverage_counts_clauses_faults_and_pairs(mixed: State) -> None:
    covered = coverage(mixed)

    assert covered["clauses"][0] == 2
    assert covered["faults"][0] == 1
    assert (covered["pairs"], covered["features"]) == (1, 2)


def test_a_failure_comes_with_the_command_that_makes_it_again(mixed: State, tmp_path: Path) -> None:
    told = "\n".join(lines(mixed, [("consent", tmp_path / "x.toml")]))

    assert "legion-contracts fuzz --seed 7 --examples 1" in told
    assert f"legion-contracts check --scenario {tmp_path / 'x.toml'}" in told
    assert "settled on idle" in told


def test_a_planted_fault_is_part_of_the_command_that_makes_its_failure_again(mixed: State) -> None:
    planted = msgspec.structs.replace(mixed, setting=msgspec.structs.replace(mixed.setting, plant="timeout-settles"))

    assert "fuzz --seed 7 --examples 1 --plant timeout-settles" in "\n".join(lines(planted))


def test_the_json_form_has_what_a_program_wants(mixed: State) -> None:
    document = msgspec.json.decode(as_json(mixed, deaths=1))

    assert (document["schema"], document["runs"], document["failed"], document["workers_lost"]) == (1, 8, 1, 1)
    assert document["failures"][0]["seed"] == 7
    assert set(document["sometimes"]) == set(SOMETIMES)
