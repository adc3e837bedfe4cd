"""Mean and median are those of the standard library, to the last bit."""

from __future__ import annotations

import statistics

from hypothesis import given
from hypothesis import strategies as st

from unveil.records.averages import mean, median

FEW = st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=20)


@given(FEW)
def test_they_are_what_the_standard_library_says(values: list[float]) -> None:
    assert mean(values) == statistics.fmean(values)
    assert median(values) == statistics.median(values)
