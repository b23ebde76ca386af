"""One live run: connect, clean up after others, make the probes, drive the supervisor, remove everything, conclude."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from contracts.clauses.catalogue import Clause, ClauseFile, Clauses, load_clauses
from contracts.live.corner import END_MS, Corner, clear
from contracts.live.difference import Difference, differences
from contracts.live.hosts import Host
from contracts.live.janitor import clear_after_others
from contracts.live.learning import conclude
from contracts.live.peer import Peer
from contracts.live.probes.wire import core_id_of
from contracts.live.problem import CassetteError, GoneError, LiveError, SilentError
from contracts.live.sequence import PROBES, Probe
from contracts.live.sheet import Fact, Sheet
from contracts.live.stage import QUIET_MS, ProbeSkippedError, Stage
from contracts.live.supervised import LIVES, Driven, Life, make_driven
from contracts.records import Finding, RunVerdict, Verdict
from contracts.scenario import Level
from contracts.sut.base import SutError
from hc_sim.script.toml import read_toml

CORE_CLAUSES: Final = Path(__file__).with_name("core.toml")
PROBE_MS: Final = 60_000
"""How long one probe may take; it ends long before, unless a core answers none of its calls in time."""
HELLO_MS: Final = 3_000
NOT_UNDERSTOOD: Final = (AttributeError, KeyError, TypeError, ValueError, IndexError, SyntaxError)
"""What comes of an answer that is made otherwise than any that is known."""
SHORT_END_MS: Final = 500
"""How long the end of what is left is waited for in a core that was seen not to end what it kills."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is run. `keep_going`: a failed must does not end it. `documents`: one document may be written.

    `slow`: probes that wait for what does not come. `supervisor`: the clauses, driven with the real supervisor.
    `tidy`: what killed runs have left is removed first.
    """

    keep_going: bool = False
    documents: bool = False
    slow: bool = True
    supervisor: bool = True
    tidy: bool = True
    tell: Callable[[str], None] = field(default=lambda _: None)


@dataclass(slots=True)
class LiveRun:
    """What one run has found: verdicts, the sheet, the differences from the fake, and what is left in the core."""

    sheet: Sheet
    verdicts: list[RunVerdict] = field(default_factory=list)
    found: list[Difference] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    cleaned: list[str] = field(default_factory=list)
    stopped: str = ""
    seconds: float = 0.0

    def failed_must(self) -> bool:
        """Whether a must has failed."""
        return any(verdict.verdict == "fail" and verdict.level == "must" for verdict in self.verdicts)


def core_clauses() -> Clauses:
    """What a core has to do, by id."""
    return {clause.id: clause for clause in read_toml(CORE_CLAUSES, ClauseFile).clause}


def live_clauses() -> Clauses:
    """Every clause that a live run gives evidence for: the core's own, and those of the supervisor."""
    known = load_clauses()
    driven = {clause for life in LIVES for clause in life.clauses}
    found: dict[str, Clause] = {**core_clauses(), **{id_: clause for id_, clause in known.items() if id_ in driven}}
    return found


async def run_live(host: Host, corner: Corner, options: Options) -> LiveRun:
    """Run everything against one core. Raises `LiveError` when it cannot be reached or is gone in the middle.

    Whatever happens, what was started is removed again, as far as the core still answers.
    """
    begun = time.monotonic()
    run = LiveRun(Sheet())
    peer = Peer(host.connect("main"), watch=run.sheet.saw)
    await peer.open()
    stage = Stage(host, corner, run.sheet, peer, documents=options.documents)
    try:
        await _probes(stage, options, run)
        if options.supervisor and not run.stopped:
            await _lives(stage, options, run)
    except GoneError as error:
        words = f"; terminals of this run that may still be there: {', '.join(corner.mine)}" if corner.mine else ""
        raise LiveError(f"{error}{words}") from error
    finally:
        try:
            await _to_its_end(_cleared(stage, peer))
        finally:
            run.left = corner.left
            await peer.close()
    if words := host.problem():
        raise CassetteError(words)
    run.verdicts.append(_own_corner(run))
    conclude(run.sheet)
    run.found = differences(run.sheet)
    run.seconds = time.monotonic() - begun
    return run


async def _probes(stage: Stage, options: Options, run: LiveRun) -> None:
    for probe in PROBES:
        if probe.slow and not options.slow:
            continue
        options.tell(probe.id)
        before = len(run.sheet.facts)
        problem = await _made(probe, stage, run)
        run.verdicts += _verdicts(probe, run.sheet.facts[before:])
        if probe.id == "home" and options.tidy and problem is None:
            async with stage.another("tidy") as peer:
                run.cleaned = await clear_after_others(peer, target_key=stage.corner.target_key)
        if problem is not None and probe.vital:
            raise problem
        if run.failed_must() and not options.keep_going:
            run.stopped = probe.id
            return


async def _made(probe: Probe, stage: Stage, run: LiveRun) -> LiveError | None:
    """Make one probe. What it could not do is put down; an error of a vital one comes back."""
    try:
        async with asyncio.timeout(PROBE_MS / 1_000):
            await probe.make(stage)
    except ProbeSkippedError as skipped:
        run.sheet.skipped[probe.id] = str(skipped)
        run.verdicts.append(_other(probe, "skipped", str(skipped)))
        return LiveError(str(skipped)) if probe.vital else None
    except (GoneError, CassetteError):
        raise
    except (SilentError, TimeoutError) as error:
        words = str(error) or f"it took more than {PROBE_MS} ms"
        run.verdicts.append(_other(probe, "errored", words))
        await _must_answer(stage, words)
        return LiveError(words)
    except NOT_UNDERSTOOD as error:
        words = _not_understood(probe.id, error)
        run.verdicts.append(_other(probe, "errored", words))
        return LiveError(words)
    return None


def _not_understood(id_: str, error: Exception) -> str:
    return f"the core answered in a way that {id_} does not understand ({type(error).__name__}: {error})"


async def _must_answer(stage: Stage, words: str) -> None:
    """Raises `GoneError` if a core that has not answered in time does not answer anything else either."""
    try:
        await stage.peer.ask("hello", {"generation": 1}, within_ms=HELLO_MS)
    except SilentError:
        raise GoneError(f"the core does not answer any more: {words}") from None


def _other(probe: Probe, verdict: Verdict, words: str) -> RunVerdict:
    errored = words if verdict == "errored" else None
    why = words if verdict == "skipped" else probe.why
    return RunVerdict(
        scenario=f"live/{probe.id}",
        host="check",
        verdict=verdict,
        clauses=list(probe.clauses),
        errored=errored,
        why=why,
    )


def _verdicts(probe: Probe, facts: list[Fact]) -> Iterator[RunVerdict]:
    """One verdict a level: what weighs differently must not be put together."""
    levels: tuple[Level, ...] = ("must", "should")
    for level in levels:
        findings = [
            Finding(clause=fact.clause, ok=fact.ok, where=fact.id, expected=fact.fake, got=fact.value, say=fact.say)
            for fact in facts
            if fact.level == level
        ]
        if findings:
            yield RunVerdict(
                scenario=f"live/{probe.id}",
                host="check",
                verdict="pass" if all(finding.ok for finding in findings) else "fail",
                level=level,
                clauses=list(dict.fromkeys(finding.clause for finding in findings)),
                findings=findings,
                why=probe.why,
            )


async def _lives(stage: Stage, options: Options, run: LiveRun) -> None:
    try:
        driven = make_driven(stage)
    except ProbeSkippedError as skipped:
        for life in LIVES:
            run.verdicts.append(_life_verdict(life, "skipped", [], str(skipped)))
        return
    try:
        for life in LIVES:
            options.tell(life.id)
            run.verdicts.append(await _lived(life, driven))
            if run.failed_must() and not options.keep_going:
                run.stopped = life.id
                return
    finally:
        await driven.sut.close()


async def _lived(life: Life, driven: Driven) -> RunVerdict:
    driven.findings = []
    try:
        async with asyncio.timeout(PROBE_MS / 1_000):
            await life.make(driven)
    except ProbeSkippedError as skipped:
        return _life_verdict(life, "skipped", driven.findings, str(skipped))
    except SutError as error:
        if await driven.stage.peer.until(lambda _: driven.stage.peer.closed, QUIET_MS):
            raise driven.stage.peer.lost() from error
        words = f"the supervisor says {error.error.get('code')}: {error}"
        driven.findings.append(
            Finding(clause=life.clauses[0], ok=False, where=life.id, expected="it goes through", got=words)
        )
    except (SilentError, TimeoutError) as error:
        words = str(error) or f"it took more than {PROBE_MS} ms"
        await _must_answer(driven.stage, words)
        return _life_verdict(life, "errored", driven.findings, words)
    except NOT_UNDERSTOOD as error:
        return _life_verdict(life, "errored", driven.findings, _not_understood(life.id, error))
    verdict: Verdict = "pass" if all(finding.ok for finding in driven.findings) else "fail"
    return _life_verdict(life, verdict, driven.findings, life.why)


def _life_verdict(life: Life, verdict: Verdict, findings: list[Finding], why: str) -> RunVerdict:
    return RunVerdict(
        scenario=f"live/{life.id}",
        host="check",
        verdict=verdict,
        level=life.level,
        clauses=list(life.clauses),
        findings=findings,
        errored=why if verdict == "errored" else None,
        why=life.why if verdict == "errored" else why,
    )


async def _to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Work that goes on to its end, which is near, even if whoever waits for it is called off meanwhile."""
    task = asyncio.ensure_future(work)
    called_off = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            called_off = True
    task.result()
    if called_off:
        raise asyncio.CancelledError


async def _cleared(stage: Stage, peer: Peer) -> None:
    stage.corner.left = await _clear(stage, peer)


async def _clear(stage: Stage, peer: Peer) -> list[str]:
    """Remove everything of this run, over a connection on which the same core answers."""
    if not stage.corner.begun:
        return []
    if not peer.closed:
        return await clear(stage.corner, peer, end_ms=END_MS if stage.kills else SHORT_END_MS)
    fresh = Peer(stage.host.connect("clear"))
    try:
        await fresh.open()
        reply = await fresh.ask("hello", {"generation": 1}, within_ms=3_000)
        result = reply.result if isinstance(reply.result, dict) else {}
        if core_id_of(result) != stage.corner.core_id:
            return ["another core answers now; nothing was touched in it"]
        return await clear(stage.corner, fresh)
    except (GoneError, SilentError) as error:
        return [f"terminal {address}: {error}" for address in stage.corner.mine]
    finally:
        await fresh.close()


def _own_corner(run: LiveRun) -> RunVerdict:
    finding = Finding(clause="C10", ok=not run.left, where="corner.left", expected="nothing", got=run.left or "nothing")
    return RunVerdict(
        scenario="live/corner",
        host="check",
        verdict="pass" if finding.ok else "fail",
        clauses=["C10"],
        findings=[finding],
        why="what was started is gone again",
    )
