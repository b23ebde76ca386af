"""What follows from a whole sheet: spellings and codes of errors, and why the other choices are not known."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from contracts.live.sheet import KindSeen, Sheet
from hc_sim.profile import STANDARD_CODES, reasons

_IN_USE: Final = "it would take filling up, or breaking, a core that others use"
_SCRIPTED: Final = "it is about scripted agents; a real program decides for itself"
NOT_LEARNED: Final[Mapping[str, str]] = {
    "max_line_bytes": "it would take a line of 16 MiB",
    "oversize": "it would take a line of more than 16 MiB",
    "turn_rule": f"{_SCRIPTED}; see program_turn",
    "interrupt_idles": _SCRIPTED,
    "interrupt_watch_ms": f"{_SCRIPTED}; see program_watch_ms",
    "torn": "a look shows one moment; two values that belong together were never seen apart here",
    "torn_ms": "as torn",
    "cascade_ms": "what a look sees is no finer than the rest between two looks",
    "wait_default_ms": "it would take a wait of three minutes",
    "program_status": "the reports of a part did not show",
    "program_grace_ms": "the slow probes were left out",
    "program_watch_ms": "the slow probes were left out",
    "program_paste": "the texts did not arrive as one prompt, or nothing was started",
    "frames_value": "any value that asks is taken by the probe",
    "frame_kinds": "no stream could be opened in the binary mode",
    "first_channel": "this core numbers the channels of all its connections together, and others had some before",
    "channel_step": "a second stream could not be opened on a connection",
    "credit_first": "no stream could be opened in the binary mode",
    "window_bytes": "it would take a stream that nobody reads",
    "bad_frames": _IN_USE,
    "close_words": "no stream ended in the binary mode",
    "attach_facts": "no stream could be opened in the binary mode",
    "focus_sees": "a focus can only be told in the binary mode",
    "slow_reader": "it would take a stream that nobody reads",
    "max_frame_bytes": "it would take a frame of 16 MiB",
    "max_channels": _IN_USE,
    "max_stream_bytes": _IN_USE,
    "max_terminals": _IN_USE,
    "max_documents": _IN_USE,
    "max_document_bytes": _IN_USE,
    "max_labels": _IN_USE,
    "max_waiting": _IN_USE,
    "max_arg_bytes": "it is the operating system's, not the core's",
    "max_args_bytes": "it is the operating system's, not the core's",
    "doc_version": "documents were not written (--documents)",
    "doc_first": "the document was there already, or none was written (--documents)",
    "doc_create": "the document was there already, or none was written (--documents)",
    "force_key": "no parameter that was tried sends to a blocked program",
    "frames_key": "a hello with frames = true stays in lines",
    "hello_reply": "a hello with frames = true stays in lines",
    "frame_newline": "a hello with frames = true stays in lines",
}
"""Why a field was not learned, where that is known before a core is asked."""
NO_PROGRAMS: Final = "this core starts no programs, so nothing reports a status"
NOT_SEEN: Final = "nothing that was asked has shown it"


def conclude(sheet: Sheet) -> None:
    """Learn what only the whole shows, and say of every field that is left why it is not known."""
    if sheet.replies:
        sheet.learn("sorted_keys", sheet.unsorted == 0)
    if sheet.errors:
        _kinds(sheet)
        _codes(sheet)
    for name in reasons():
        programs = sheet.core.get("starts_programs", True)
        sheet.not_learned(name, NOT_LEARNED.get(name, NOT_SEEN if programs else NO_PROGRAMS))


def _kinds(sheet: Sheet) -> None:
    """The style in which kinds are spelt, and the single ones that are spelt otherwise."""
    seen = {ours: one.kind for ours, one in sheet.errors.items() if one.kind}
    spelt = {
        word: sum(_style(word, ours) == kind for ours, kind in seen.items()) for word in ("mixed", "lower", "upper")
    }
    style = max(spelt, key=lambda word: spelt[word])
    sheet.learn("kind_style", style)
    sheet.learn("kinds", {ours: kind for ours, kind in sorted(seen.items()) if _style(style, ours) != kind})


def _style(style: str, ours: str) -> str:
    return ours.upper() if style == "upper" or (style == "mixed" and ours == "name_taken") else ours


def _codes(sheet: Sheet) -> None:
    """The code of errors that JSON-RPC has no code for, and the single ones that have another."""
    own = Counter(one.code for one in sheet.errors.values() if _is_own(one) and one.code is not None)
    other = own.most_common(1)[0][0] if own else None
    if other is not None:
        sheet.learn("other_code", other)
    expected = {ours: STANDARD_CODES.get(ours, other) for ours in sheet.errors}  # type: ignore[call-overload]
    sheet.learn(
        "codes",
        {ours: one.code for ours, one in sorted(sheet.errors.items()) if one.code not in (None, expected[ours])},
    )


def _is_own(one: KindSeen) -> bool:
    return one.ours not in STANDARD_CODES
