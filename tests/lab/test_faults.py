"""The table of faults; tests/lab/test_lab.py lays every one on this kernel."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from unveil.lab.changes import ImpossibleError
from unveil.lab.faults import FAULTS, HEALTHY

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.lab.place import Place
    from unveil.lab.uses import Uses

ROOT = Path(__file__).parents[2]


def test_every_fault_has_a_title_and_a_label_that_is_a_fingerprint_or_a_subsystem() -> None:
    names = {path.stem for path in (ROOT / "fingerprints").rglob("*.yml")}
    for name, fault in FAULTS.items():
        assert fault.title
        assert not fault.label or fault.label in names
        assert bool(fault.label or fault.subsystem) is (name not in HEALTHY)


@pytest.mark.parametrize("name", ["slow_link", "packet_loss", "offloads_off", "io_throttle"])
def test_where_nothing_is_used_nothing_is_limited(name: str, build: Callable[[int], Place], uses: Uses) -> None:
    with pytest.raises(ImpossibleError, match="next to nothing"), FAULTS[name].inject(build(2), uses):
        raise AssertionError("it was injected")
