"""Settings of a host, as plain files; tests/lab/test_lab.py changes this kernel's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unveil.lab import on_host
from unveil.lab.changes import Changes
from unveil.lab.place import Place

if TYPE_CHECKING:
    from pathlib import Path

    from unveil.lab.uses import Uses


@pytest.mark.parametrize("kept", ["ratio", "bytes"])
def test_the_dirty_limits_are_put_back_as_what_they_were(kept: str, tmp_path: Path, uses: Uses) -> None:
    for name in ("dirty", "dirty_background"):
        for part in ("ratio", "bytes"):
            (tmp_path / f"{name}_{part}").write_text("20\n" if part == kept else "0\n")
    place = Place(folders={}, scratch=tmp_path, changes=Changes(tmp_path / "journal"))
    with on_host.small_dirty_limit(place, uses, folder=tmp_path):
        assert (tmp_path / "dirty_bytes").read_text() == str(2 << 20)
        assert (tmp_path / "dirty_background_bytes").read_text() == str(1 << 20)
    assert (tmp_path / f"dirty_{kept}").read_text().strip() == "20"
