"""Centre and spread of columns with gaps."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from unveil.detection.spread import CLIP, median, spread, standardise

VALUES = st.one_of(st.just(np.nan), st.floats(-1e6, 1e6, width=32))


@given(arrays(np.float32, st.tuples(st.integers(1, 60), st.integers(1, 4)), elements=VALUES))
def test_the_median_is_that_of_the_values_that_are_there(rows):
    found = median(rows, least=1)
    for column, centre in zip(rows.T, found, strict=True):
        there = column[~np.isnan(column)].astype(np.float64)
        assert np.isnan(centre) if not len(there) else np.isclose(centre, np.median(there), rtol=1e-6)


@given(arrays(np.float32, st.tuples(st.integers(1, 60), st.integers(1, 4)), elements=VALUES))
def test_a_spread_is_absent_or_not_negative_and_never_beyond_the_farthest(rows):
    for column, found in zip(rows.T, spread(rows), strict=True):
        there = column[~np.isnan(column)]
        if len(there) < 20:
            assert np.isnan(found)
        else:
            assert 0 <= found <= np.abs(there).max() * (1 + 1e-6)


def test_one_glitch_does_not_widen_the_spread():
    rows = np.random.default_rng(0).normal(size=(100, 1)).astype(np.float32)
    before = spread(rows)[0]
    rows[50] = 41.0  # log1p of 1e18
    assert spread(rows)[0] < before * 1.2


def test_what_is_absent_or_has_no_scale_is_neutral_and_nothing_exceeds_the_bound():
    z = standardise(np.array([np.nan, 3.0, 1e30, -1e30]), np.array([1.0, np.nan, 1.0, 1e-3]))
    assert z.tolist() == [0.0, 0.0, CLIP, -CLIP]


def test_no_rows_have_neither_centre_nor_spread():
    assert np.isnan(median(np.empty((0, 3)))).all()
    assert np.isnan(spread(np.empty((0, 3)))).all()


def test_rows_are_left_as_they_are_whatever_their_memory_order():
    rows = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    for order in ("C", "F"):
        given_rows = np.array(rows, order=order)
        median(given_rows)
        spread(given_rows)
        assert (given_rows == rows).all()
