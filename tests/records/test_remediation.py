"""What is asked of a feature, in words that every screen uses."""

from __future__ import annotations

import pytest

from unveil.records.remediation import Improvement


@pytest.mark.parametrize(
    ("improve", "before", "said"),
    [
        (True, None, "up by at least 20 %"),
        (True, 3.0, "up by at least 20 %"),
        (False, -3.0, "up by at most 20 %"),
        (True, 0.0, "up by at least 0.2"),
    ],
)
def test_a_change_is_a_share_of_what_was_there_and_a_number_where_nothing_was(
    improve: bool, before: float | None, said: str
) -> None:
    assert Improvement(feature="f", direction="up", effect=0.2).demand(improve=improve, before=before) == said
