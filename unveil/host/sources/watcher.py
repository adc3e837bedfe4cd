"""What the watcher finds out by itself; there is no file behind it.

How punctual it is, which the sampler tells, and how fast the work on the host advances, which ``features.progress``
makes of counters that others give.
"""

from __future__ import annotations

from unveil.records.metric import Channel, Kind, declare

LATE = Channel("cpu.watcher_late")
MISSED = Channel("cpu.watcher_missed")

METRICS = (
    declare(
        LATE.metric,
        Kind.GAUGE,
        "s",
        "how late the watcher woke up for this tick: the host had no CPU for it",
        source="watcher",
    ),
    declare(MISSED.metric, Kind.COUNTER, "1", "ticks that never came", source="watcher"),
    *(
        declare(f"cpu.progress_{name}", Kind.GAUGE, unit, meaning, source="watcher")
        for name, unit, meaning in (
            ("rate", "1/s", "steps that the work makes, by what repeats in other counters"),
            ("step", "s", "time from one step of the work to the next"),
            ("confidence", "1", "how well the last looks at the step time agree, 0 to 1"),
        )
    ),
)
