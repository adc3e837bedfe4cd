"""Frames: what the GPU child tells the watcher, one line of JSON each.

The child announces a GPU before it enters the driver for it and reports it afterwards, so that the watcher knows
during a hang which GPU it is in, and since when. All times are CLOCK_MONOTONIC in nanoseconds, which both processes
share.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class GpusFrame:
    """The GPUs that the driver shows, by UUID: all that a child says that was asked to list them."""

    gpus: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFrame:
    """The child enters the driver for this GPU now."""

    gpu: str
    at_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleFrame:
    """One GPU was read.

    Attributes:
        at_ns: when the last of its values was there.
        values: in the order of ``METRICS``, None where absent; names would make most of the frame.
        reasons: metric → why it is absent; None when they are the same as in the frame before.
    """

    gpu: str
    at_ns: int
    latency_s: float
    values: list[float | None]
    reasons: dict[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityFrame:
    """What one GPU is: fact → value (PIDs as a list of texts); what is not there is absent for the reason given."""

    gpu: str
    at_ns: int
    facts: dict[str, str | float | list[str]]
    reasons: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LostFrame:
    """The driver says that this GPU is lost; the child ends."""

    gpu: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsentFrame:
    """There is nothing to read on this host; the child ends and need not be started again."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedFrame:
    """The driver failed; the child ends and only a fresh one can begin anew."""

    reason: str


Frame = GpusFrame | CallFrame | SampleFrame | IdentityFrame | LostFrame | AbsentFrame | FailedFrame

_FRAMES: Mapping[str, type[Frame]] = {
    "gpus": GpusFrame,
    "call": CallFrame,
    "sample": SampleFrame,
    "identity": IdentityFrame,
    "lost": LostFrame,
    "absent": AbsentFrame,
    "failed": FailedFrame,
}
_NAMES = {frame: name for name, frame in _FRAMES.items()}


def write_frame(frame: Frame) -> bytes:
    """Return a frame as one line, its newline included."""
    return json.dumps([_NAMES[type(frame)], asdict(frame)], separators=(",", ":")).encode() + b"\n"


def read_frames(lines: Sequence[bytes]) -> tuple[list[Frame], list[bytes]]:
    """Return the frames that lines hold, and the lines that hold something else (a library that prints, last words)."""
    frames, others = [], []
    for line in lines:
        try:
            name, body = json.loads(line)  # the child is ours: its words are not checked further
            frames.append(_FRAMES[name](**body))
        except (ValueError, TypeError, KeyError, RecursionError):
            others.append(line)
    return frames, others
