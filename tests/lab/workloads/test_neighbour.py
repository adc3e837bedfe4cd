"""A modest neighbour does ordinary things, and each of them ends."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from unveil.lab.workloads import neighbour

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_what_it_writes_is_gone_again_and_what_it_holds_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(neighbour, "MEGABYTE", 1 << 10)
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    for do in (neighbour.archive, neighbour.log, neighbour.remember):
        do(random.Random(1))
    assert list(tmp_path.iterdir()) == []
