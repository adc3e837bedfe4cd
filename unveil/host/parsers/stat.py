"""``/proc/stat``: CPU time by state, context switches, forks, interrupts in all, running and blocked tasks.

Source: Documentation/filesystems/proc.rst section 1.7, fs/proc/stat.c.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.host.parsers.text import Reading
from unveil.records.metric import Channel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.host.parsers.text import Line, Text

STATES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
"""The columns that add up to all time. Guest time, which follows, is contained in user and nice."""

_LINES = {
    b"ctxt": "cpu.context_switches",
    b"processes": "cpu.forks",
    b"intr": "cpu.interrupts",
    b"procs_running": "cpu.running",
    b"procs_blocked": "cpu.blocked",
}


def cut_interrupts(raw: bytes) -> bytes:
    """Return the text without the counts of the single interrupts; their total stays.

    That line has one number for every interrupt the kernel could have, thousands on a big host, nearly all of them 0.
    """
    start = raw.find(b"\nintr ")
    if start < 0:
        return raw
    end = raw.find(b"\n", start + 6)
    total = raw.find(b" ", start + 6, end)
    return raw if end < 0 or total < 0 else raw[:total] + raw[end:]


def parse_stat(text: Text, user_hz: int) -> Iterator[Reading]:
    """Yield the CPU times in seconds, in all and by CPU, and the counts.

    CPUs are keyed by the id that their line gives: offline ones have no line.

    Args:
        user_hz: ticks per second of the times.
    """
    for line in text.lines():
        name = line.fields[0]
        if name.startswith(b"cpu"):
            yield from _cpu_times(line, name[3:], 1 / user_hz)
        elif (metric := _LINES.get(name)) and (number := line.number(1)) is not None:
            yield Reading(Channel(metric), (number,))


def _cpu_times(line: Line, cpu: bytes, scale: float) -> Iterator[Reading]:
    if cpu and not cpu.isdigit():
        return
    labels = (("cpu", cpu.decode("ascii")),) if cpu else ()
    for index, state in enumerate(STATES, 1):
        if (number := line.number(index)) is not None:
            yield Reading(Channel(f"cpu.{state}", labels), (number,), scale)
