"""Bytes and messages, no sockets: lines, frames and JSON-RPC envelopes."""

from hc_sim.wire.frames import Frame, FrameSplitter, TooBig, encode_frame
from hc_sim.wire.jsonrpc import (
    Batch,
    Refusal,
    Request,
    decode,
    encode_error,
    encode_notification,
    encode_result,
    refuse_line,
)
from hc_sim.wire.lines import LineSplitter, TooLong

__all__ = [
    "Batch",
    "Frame",
    "FrameSplitter",
    "LineSplitter",
    "Refusal",
    "Request",
    "TooBig",
    "TooLong",
    "decode",
    "encode_error",
    "encode_frame",
    "encode_notification",
    "encode_result",
    "refuse_line",
]
