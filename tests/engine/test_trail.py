"""The trail of newest windows: bounded, and what was seen stays as it was."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unveil.engine.trail import LAYOUT_BYTES, MAX_BYTES, MAX_WINDOWS, Trail
from unveil.matching.clauses import Evidence
from unveil.matching.plan import SeenReference
from unveil.records.entity import HOST
from unveil.records.fact import FactTable
from unveil.records.feature import FeatureId, FeatureLayout, FeatureVector

LAYOUT = FeatureLayout((FeatureId("a"), FeatureId("b")))


def evidence(window: int, *values: float, layout: FeatureLayout = LAYOUT) -> Evidence:
    vector = FeatureVector(window=window, wall_s=float(window), layout=layout, values=np.array(values))
    return Evidence(vector=vector, facts=FactTable())


def test_a_series_ends_where_one_looks_and_what_is_absent_stays_absent() -> None:
    trail = Trail()
    for window in range(6):
        trail.push(evidence(window, float(window), np.nan))
    assert trail.series("a", HOST, until=3, limit=2) == [(2, 2.0), (3, 3.0)]
    assert trail.series("b", HOST, limit=1) == [(5, None)]
    assert trail.series("no_such", HOST, limit=1) == [(5, None)]
    assert trail.mean("a", HOST, until=3, over=2) == 2.5
    assert trail.mean("b", HOST, until=3, over=2) is None
    assert trail.evidence(4) is not None
    assert trail.evidence(9) is None


def test_it_is_bounded_by_windows_and_by_bytes() -> None:
    trail = Trail()
    for window in range(MAX_WINDOWS + 50):
        trail.push(evidence(window, 0.0, 0.0))
    assert len(trail.series("a", HOST, limit=10_000)) == MAX_WINDOWS
    wide = FeatureLayout(tuple(FeatureId(str(number)) for number in range(100_000)))
    for window in range(400, 420):
        trail.push(evidence(window, *np.ones(100_000), layout=wide))
    assert len(trail.series("0", HOST, limit=10_000)) == MAX_BYTES // (800_000 + 100_000 // 8)


def test_names_that_change_each_second_leave_a_shorter_trail() -> None:
    trail = Trail()
    for window in range(MAX_WINDOWS):
        layout = FeatureLayout(tuple(FeatureId(f"{window}.{number}") for number in range(1000)))
        trail.push(evidence(window, *np.ones(1000), layout=layout))
    kept = sum(trail.evidence(window) is not None for window in range(MAX_WINDOWS))
    assert kept == MAX_BYTES // (8 * 1000 + 1000 // 8 + LAYOUT_BYTES * 1000)


def test_what_a_window_was_judged_by_comes_back_to_the_last_bit_and_what_is_absent_takes_no_room() -> None:
    trail = Trail()
    layout = FeatureLayout(tuple(FeatureId(str(number)) for number in range(300)))
    values = np.random.default_rng(1).normal(size=(40, 300))
    values[:, 50:] = np.nan
    values[20:, 10] = np.nan
    values[:, 20:35] = 0.0
    values[7, 5] = 0.0
    for window, row in enumerate(values):
        trail.push(evidence(window, *row, layout=layout))
    for window, row in enumerate(values):
        back = trail.evidence(window)
        assert back is not None
        assert np.array_equal(back.vector.values, row, equal_nan=True)
        assert back.vector.window == window
    for feature in (5, 10, 20, 34, 35, 49, 50):
        told = [np.nan if value is None else value for _, value in trail.series(str(feature), HOST)]
        assert np.array_equal(told, values[:, feature], equal_nan=True)
    assert trail._size < LAYOUT_BYTES * 300 + 40 * 35 * 8 + 40 * 7 + 2 * 50 * 2 + 1


def test_what_was_expected_is_kept_once_until_it_is_something_else() -> None:
    trail = Trail()
    for window in range(6):
        seen = SeenReference({("a", HOST): (float(window // 3), 0.1)})
        trail.push(replace(evidence(window, 1.0, 2.0), expected=seen))
    kept = [trail.evidence(window) for window in range(6)]
    expected = [each.expected for each in kept if each is not None]
    assert [each.lookup("a", HOST) for each in expected if each is not None] == [(0.0, 0.1)] * 3 + [(1.0, 0.1)] * 3
    assert len({id(each) for each in expected}) == 2
