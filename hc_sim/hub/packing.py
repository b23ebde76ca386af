"""Messages become bytes: a reply or a whole batch, as a line or a frame, with what a fault does to it."""

from dataclasses import replace
from typing import Any

import msgspec

from hc_sim.faults import Fault, Parcel, deliver, pieces
from hc_sim.profile import WireProfile
from hc_sim.wire import encode_frame


class Packer:
    """Packs messages in the spelling of one profile."""

    def __init__(self, profile: WireProfile) -> None:
        self._encoder = msgspec.json.Encoder(order="sorted" if profile.sorted_keys else None)
        self._data = profile.frame_numbers()["data"]
        self._newline = profile.frame_newline

    def reply(self, message: dict[str, Any], fault: Fault | None, *, framed: bool) -> Parcel:
        """One reply. In frames, what a fault does to bytes it does to the bytes of the frame."""
        if not framed:
            return deliver(message, fault, self._encoder.encode)
        healthy = fault is None
        calm = None if fault is None else msgspec.structs.replace(fault, cut=[], close=_whole(fault))
        parcel = deliver(message, calm, self._encoder.encode)
        data = self.frame(b"".join(parcel.writes)) if parcel.writes else b""
        if healthy or fault is None:
            return Parcel((data,))
        if fault.close == "mid":
            data = data[: len(data) // 2]
        return replace(parcel, writes=tuple(pieces(data, fault.cut)))

    def batch(self, messages: list[dict[str, Any]], *, framed: bool) -> Parcel:
        """The replies to a batch, in one line."""
        line = self._encoder.encode(messages) + b"\n"
        return Parcel((self.frame(line) if framed else line,))

    def frame(self, line: bytes) -> bytes:
        """A line as a frame of channel 0."""
        return encode_frame(0, self._data, line if self._newline else line.removesuffix(b"\n"))


def _whole(fault: Fault) -> Any:
    return "after" if fault.close == "mid" else fault.close
