"""The host's ordinary windows, newest and older."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from unveil.detection.history import Ring, ThinnedRing


@given(st.integers(1, 8), st.lists(st.integers(0, 1000), max_size=40), st.integers(0, 12))
def test_a_ring_holds_the_newest_rows_in_order(capacity, values, count):
    ring = Ring(capacity, 1)
    displaced = [row for value in values if (row := ring.push(np.array([value]))) is not None]
    assert ring.newest()[:, 0].tolist() == values[-capacity:]
    assert ring.newest(count)[:, 0].tolist() == (values[-capacity:][-count:] if count else [])
    assert [row[0] for row in displaced] == values[: max(len(values) - capacity, 0)]


def test_a_thinned_ring_reaches_far_back():
    ring = ThinnedRing(10, 1, thinning=5)
    for value in range(70):
        ring.push(np.array([value]))
    assert ring.near()[:, 0].tolist() == list(range(60, 70))
    assert ring.far()[:, 0].tolist() == [10, 15, 20, 25, 30, 35, 40, 45, 50, 55]
    assert len(ring) == 20


def test_columns_move_with_their_rows():
    ring = Ring(3, 2)
    for row in ([1, 2], [3, 4]):
        ring.push(np.array(row))
    moved = ring.realigned(np.array([1, -1, 0]))
    assert np.array_equal(moved.newest(), [[2, np.nan, 1], [4, np.nan, 3]], equal_nan=True)
    assert Ring(3, 0).realigned(np.array([-1])).newest().shape == (0, 1)


def test_refilling_keeps_the_newest():
    ring = Ring(3, 1)
    ring.refill(np.arange(5.0).reshape(-1, 1))
    assert ring.newest()[:, 0].tolist() == [2, 3, 4]
    ring.push(np.array([9]))
    assert ring.newest()[:, 0].tolist() == [3, 4, 9]


def test_distances_are_kept_to_a_two_thousandth_and_never_become_infinite():
    distances = np.random.default_rng(1).normal(size=(50, 4)) * [1e-3, 0.05, 1.0, 300.0]
    ring = ThinnedRing(30, 4, thinning=1)
    for row in distances:
        ring.push(row)
    assert np.allclose(ring.rows(), distances, rtol=1 / 2000, atol=1e-7)
    ring.push(np.array([1e30, -1e30, np.nan, 0.0]))
    assert np.isfinite(ring.near()[-1][:2]).all()
    assert np.isnan(ring.near()[-1][2])
    assert ring.realigned(np.array([1, 0])).near().dtype == np.float16


def test_a_ring_that_was_cleared_begins_anew():
    ring = Ring(3, 1)
    ring.refill(np.arange(3.0).reshape(-1, 1))
    ring.clear()
    assert ring.newest().shape == (0, 1)
    assert ring.realigned(np.array([0, -1])).newest().shape == (0, 2)
    assert ring.push(np.array([9])) is None
    assert ring.newest()[:, 0].tolist() == [9]
