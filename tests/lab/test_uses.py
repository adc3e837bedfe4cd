"""What a workload uses is read of either version of cgroups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unveil.lab.place import container
from unveil.lab.uses import Meter

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.lab.place import Place


@pytest.mark.parametrize(
    ("version", "cpu", "disk"),
    [
        (1, ("cpuacct.usage", "9000000000"), ("blkio.throttle.io_service_bytes", "254:0 Read 1003\n254:0 Write 4\n")),
        (2, ("cpu.stat", "usage_usec 8000000"), ("io.stat", "254:0 rbytes=1003 wbytes=4 rios=9\n254:1 rbytes=0")),
    ],
)
def test_what_is_used_is_what_was_counted_since(
    version: int, cpu: tuple[str, str], disk: tuple[str, str], build: Callable[[int], Place]
) -> None:
    place = build(version)
    meter = Meter(place)
    for name, text in (cpu, disk):
        (place.scratch / container("a") / name).write_text(text)
    uses = meter.uses()
    assert (uses.anonymous["a"], uses.cached["b"]) == (5, 7)
    assert uses.read["a"] / uses.cores["a"] == pytest.approx(1000 / 6)
    assert (uses.written["a"], uses.cores["b"], uses.received["a"]) == (0, 0, 0)
