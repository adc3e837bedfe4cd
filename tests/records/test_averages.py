"""Mean, median and quantiles are those of the standard library and of numpy, to the last bit."""

from __future__ import annotations

import statistics

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from unveil.records.averages import mean, median, quantile

FEW = st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=20)


@given(FEW)
def test_they_are_what_the_standard_library_says(values: list[float]) -> None:
    assert mean(values) == statistics.fmean(values)
    assert median(values) == statistics.median(values)


@given(FEW, st.floats(0, 1))
def test_quantiles_are_what_numpy_says(values: list[float], share: float) -> None:
    assert quantile(values, share) == np.quantile(values, share)
