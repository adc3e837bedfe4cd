"""How punctual the watcher itself is. The sampler gives these values; there is no file behind them."""

from __future__ import annotations

from unveil.records.metric import Channel, Kind, Metric
from unveil.records.subsystem import Subsystem

LATE = Channel("cpu.watcher_late")
MISSED = Channel("cpu.watcher_missed")

METRICS = (
    Metric(
        name=LATE.metric,
        subsystem=Subsystem.CPU,
        unit="s",
        kind=Kind.GAUGE,
        source="watcher",
        meaning="how late the watcher woke up for this tick: the host had no CPU for it",
    ),
    Metric(
        name=MISSED.metric,
        subsystem=Subsystem.CPU,
        unit="1",
        kind=Kind.COUNTER,
        source="watcher",
        meaning="ticks that never came",
    ),
)
