"""How fast CPUs run: ``scaling_cur_freq``, of one CPU every ten seconds, another one each time.

Trap 5: one such read took 20 ms on Linux 4.15, and serially for all CPUs of a large host two seconds. Trap 6: before
5.19, x86 measured by an interrupt to the CPU in question, so that looking woke what was idle and made it look busy;
since then it gives what the last timer tick found. So older kernels are left alone, and newer ones are asked for one
CPU at a time. Which CPU it was is not told: it is a sample of the host, and says little about a single CPU.

Source: arch/x86/kernel/cpu/aperfmperf.c, Documentation/admin-guide/pm/cpufreq.rst.
"""

from __future__ import annotations

import re
from functools import partial

from unveil.errors import SourceAbsentError
from unveil.host.parsers.number import parse_number
from unveil.host.source import SLOWEST, Feed, Source, Surroundings
from unveil.host.sources.cpu_sysfs import CPUS, online_cpus, spread
from unveil.records.metric import Kind, declare

FIRST_HARMLESS = (5, 19)
MOST_CPUS = 64

_FILE = "cpufreq/scaling_cur_freq"
_MHZ_PER_KHZ = 1e-3

METRICS = (
    declare(
        "cpu.frequency",
        Kind.GAUGE,
        "MHz",
        "frequency of one CPU, another one each time",
        source=f"/{CPUS}/cpu*/{_FILE}",
    ),
)


def _feeds(surroundings: Surroundings) -> tuple[Feed, ...]:
    root = surroundings.root
    try:
        release = root.read("proc/sys/kernel/osrelease").decode("ascii", "replace")
    except OSError:
        release = ""
    version = re.match(r"([0-9]{1,3})\.([0-9]{1,3})", release)
    if version is None or (int(version[1]), int(version[2])) < FIRST_HARMLESS:
        raise SourceAbsentError("before Linux 5.19, asking for the frequency of a CPU wakes it")
    paths = (f"{CPUS}/cpu{cpu}/{_FILE}" for cpu in spread(online_cpus(root), MOST_CPUS))
    turns = tuple(path for path in paths if root.exists(path))
    if not turns:
        raise SourceAbsentError("no driver manages the frequency of CPUs, as is usual in a virtual machine")
    parser = partial(parse_number, metric="cpu.frequency", scale=_MHZ_PER_KHZ)
    return (Feed(path=turns[0], parser=parser, kept=False, turns=turns),)


SOURCE = Source(name="cpufreq", pace=SLOWEST, metrics=METRICS, feeds=_feeds)
