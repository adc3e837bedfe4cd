"""What is known of each GPU, and the rows of samples that are made of it, whatever moment each GPU answered at."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from unveil.host.sources.gpu import METRICS
from unveil.records.metric import Channel, Kind
from unveil.records.sample import Layout, SampleBlock, Tier

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from unveil.host.gpu_frames import IdentityFrame, SampleFrame

NAN = float("nan")
_NAMES = tuple(metric.name for metric in METRICS)
_POSITION = {name: index for index, name in enumerate(_NAMES)}
_COUNTERS = tuple(_POSITION[metric.name] for metric in METRICS if metric.kind is Kind.COUNTER)
_LATENCY = _POSITION["gpu.nvml_latency"]
_AGE = _POSITION["gpu.value_age"]
_LIMIT = _POSITION["gpu.power_limit"]


@dataclass(slots=True)
class GpuState:
    """The last known of one GPU.

    Attributes:
        at_ns: when its values were read, None before the first reading.
        told: whether these values have been in a row already.
        called_ns: when its child entered the driver, None while it is not in it.
        start: which start of its child it was last heard of from.
    """

    values: list[float] = field(default_factory=lambda: [NAN] * len(_NAMES))
    at_ns: int | None = None
    told: bool = True
    latency_s: float = NAN
    called_ns: int | None = None
    reasons: dict[str, str] = field(default_factory=dict)
    identity: IdentityFrame | None = None
    start: int = 1

    @property
    def power_limit(self) -> float:
        """Return the newest power limit (W); NaN before the first."""
        return self.values[_LIMIT]

    def take(self, frame: SampleFrame) -> None:
        """Take a reading."""
        self.values = [NAN if value is None else value for value in frame.values]
        self.at_ns, self.told, self.called_ns, self.latency_s = frame.at_ns, False, None, frame.latency_s
        if frame.reasons is not None:
            self.reasons = frame.reasons

    def age_s(self, at_ns: int) -> float:
        """Return how old its values are; NaN before the first."""
        return NAN if self.at_ns is None else max(0, at_ns - self.at_ns) / 1e9

    def late(self, at_ns: int, deadline_ns: int) -> bool:
        """Tell whether a driver call, or the silence since the last reading, is longer than it may be."""
        since = self.called_ns if self.at_ns is None else self.at_ns
        return since is not None and at_ns - since > deadline_ns

    def row(self, at_ns: int, hold_ns: int) -> list[float]:
        """Return the values of this GPU at a time, all metrics in order."""
        if self.at_ns is None or at_ns - self.at_ns > hold_ns:
            row = [NAN] * len(_NAMES)
        else:
            row = list(self.values)
            if self.told:  # a counter that stands still would read as a rate of zero
                for index in _COUNTERS:
                    row[index] = NAN
        self.told = True
        row[_AGE] = self.age_s(at_ns)
        row[_LATENCY] = self.latency_s
        if self.called_ns is not None:
            waiting = max(0, at_ns - self.called_ns) / 1e9
            row[_LATENCY] = waiting if self.at_ns is None else max(waiting, self.latency_s)
        return row


class GpuRows:
    """GPUs by UUID, and rows of all of them: one an interval, as soon as all that answer have answered.

    Args:
        interval_ns: time between two readings of a GPU.
        hold_ns: how long a value stands in for one that is late.
    """

    def __init__(self, interval_ns: int, hold_ns: int) -> None:
        self.gpus: dict[str, GpuState] = {}
        self._interval_ns = interval_ns
        self._deadline_ns = 2 * interval_ns
        self._hold_ns = hold_ns
        self._layout = Layout(channels=())
        self._rows: list[tuple[int, dict[str, list[float]]]] = []
        self._row_ns = -1

    @property
    def channels(self) -> int:
        """Return how many channels the GPUs have."""
        return len(self._layout.channels)

    def keep(self, uuids: Iterable[str]) -> None:
        """Keep these GPUs and no others; a new layout only when they are not those of before."""
        kept = {uuid: self.gpus.get(uuid) or GpuState() for uuid in sorted(uuids)}
        if kept.keys() != self.gpus.keys():
            self._layout = Layout(tuple(Channel(name, (("gpu", uuid),)) for uuid in kept for name in _NAMES))
        self.gpus = kept

    def take(self, gpu: GpuState, frame: SampleFrame) -> None:
        """Take a reading of one GPU; what was read of all before its second reading makes a row."""
        if not gpu.told:
            self._add(self._newest())
        gpu.take(frame)

    def late(self, now_ns: int) -> list[str]:
        """Return the GPUs that the driver should have answered for, and has not."""
        return [uuid for uuid, gpu in self.gpus.items() if gpu.late(now_ns, self._deadline_ns)]

    def block(self, now_ns: int, running: Collection[str]) -> SampleBlock | None:
        """Return the rows that are complete; None when there is none.

        Rows wait half an interval for a GPU that answered last time. When none answers, one row an interval says how
        old everything is.

        Args:
            running: GPUs whose child runs.
        """
        newest = self._newest()
        if newest >= 0:
            awaited = any(
                gpu.told and uuid in running and (gpu.at_ns is None or newest - gpu.at_ns <= self._deadline_ns)
                for uuid, gpu in self.gpus.items()
            )
            if not awaited or now_ns - newest > self._interval_ns // 2:
                self._add(newest)
        elif (
            any(gpu.at_ns is not None for gpu in self.gpus.values())
            and all(gpu.at_ns is None or gpu.late(now_ns, self._deadline_ns) for gpu in self.gpus.values())
            and now_ns - self._row_ns >= self._interval_ns
        ):
            self._add(now_ns)
        rows, self._rows = self._rows, []
        if not rows or not self.gpus:
            return None
        absent = [NAN] * len(_NAMES)  # a GPU that an earlier row did not know
        return SampleBlock(
            tier=Tier.MEDIUM,
            layout=self._layout,
            times_ns=np.array([at_ns for at_ns, _ in rows], dtype=np.int64),
            values=np.array([[value for uuid in self.gpus for value in row.get(uuid, absent)] for _, row in rows]),
        )

    def _newest(self) -> int:
        """Return when the newest reading was that no row has; -1 when there is none."""
        return max((gpu.at_ns for gpu in self.gpus.values() if not gpu.told and gpu.at_ns is not None), default=-1)

    def _add(self, at_ns: int) -> None:
        self._row_ns = max(at_ns, self._row_ns + 1)  # a row that said "late" may be younger than what then came
        self._rows.append((self._row_ns, {uuid: gpu.row(at_ns, self._hold_ns) for uuid, gpu in self.gpus.items()}))
