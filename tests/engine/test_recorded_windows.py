"""A window of a recording is asked for by its number, or as what nothing explains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unveil.engine.recorded_windows import recorded_window
from unveil.errors import BadInputError

if TYPE_CHECKING:
    from pathlib import Path


def test_a_window_of_a_recording_is_one_of_its_numbers(recording: Path, kb: Path) -> None:
    assert recorded_window(str(recording), "2", kb=str(kb)).index == 2
    with pytest.raises(BadInputError, match="has no window 99999"):
        recorded_window(str(recording), "99999", kb=str(kb))
    with pytest.raises(BadInputError, match="no anomalous window"):
        recorded_window(str(recording), "unmatched", kb=str(kb))


@pytest.mark.parametrize("which", ["x", "-1", "1:2", ""])
def test_what_is_no_number_is_bad_input(recording: Path, which: str) -> None:
    with pytest.raises(BadInputError, match="is no window of a recording"):
        recorded_window(str(recording), which)
