"""Which features are compared, and on what scale."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.detection.detector_input import LINEAR_FLOOR, LOG_FLOOR, Trait, select
from unveil.records.feature import FeatureId, FeatureLayout
from unveil.records.subsystem import Subsystem

LAYOUT = FeatureLayout((FeatureId("cpu.skewed.rate"), FeatureId("cpu.left.out"), FeatureId("gpu.share.mean")))
TRAITS = {
    "cpu.skewed.rate": Trait(subsystem=Subsystem.CPU, log=True),
    "gpu.share.mean": Trait(subsystem=Subsystem.GPU, log=False, judged=False, floor=None),
}
SCOPE = select(LAYOUT, lambda feature: TRAITS.get(feature.name))


def test_only_features_with_a_trait_are_taken_in_the_layouts_order() -> None:
    assert SCOPE.names == ("cpu.skewed.rate", "gpu.share.mean")
    assert SCOPE.subsystems == (Subsystem.CPU, Subsystem.GPU)
    assert SCOPE.judged.tolist() == [True, False]
    assert SCOPE.floor.tolist() == [LOG_FLOOR, LINEAR_FLOOR]
    np.testing.assert_array_equal(SCOPE.take(np.array([1.0, 2.0, 3.0])), [1.0, 3.0])


def test_infinities_are_absent() -> None:
    assert np.isnan(SCOPE.take(np.array([np.inf, 0.0, -np.inf]))).all()


@given(st.floats(-1e12, 1e12), st.floats(-1e12, 1e12))
def test_the_way_back_is_the_inverse(skewed: float, share: float) -> None:
    values = np.array([skewed, share])
    np.testing.assert_allclose(SCOPE.backward(SCOPE.forward(values)), values, rtol=1e-9, atol=1e-9)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_no_value_is_too_large_to_be_compared(value: float) -> None:
    assert np.isfinite(SCOPE.forward(np.array([value, value]))).all()


def test_the_digest_tells_names_and_scales_apart() -> None:
    other = select(
        LAYOUT, lambda feature: Trait(subsystem=Subsystem.CPU, log=False) if "share" in feature.name else None
    )
    assert SCOPE.digest != other.digest
    assert SCOPE.digest == select(LAYOUT, lambda feature: TRAITS.get(feature.name)).digest


def test_an_empty_scope_is_possible() -> None:
    nothing = select(LAYOUT, lambda _: None)
    assert nothing.take(np.zeros(3)).shape == (0,)
    assert nothing.names == ()


@pytest.mark.parametrize("floor", [0.01, 5.0])
def test_a_features_own_floor_wins(floor: float) -> None:
    scope = select(LAYOUT, lambda _: Trait(subsystem=Subsystem.CPU, log=True, floor=floor))
    assert scope.floor.tolist() == [floor] * 3


def test_one_event_more_is_never_farther_than_one_sigma() -> None:
    scope = select(LAYOUT, lambda _: Trait(subsystem=Subsystem.CPU, log=True, counted=True))
    few, some, many = 0.0, 3.0, 1000.0
    centre = scope.forward(np.array([few, some, many]))
    one_more = scope.forward(np.array([few, some, many]) + 1) - centre
    np.testing.assert_allclose(scope.least(centre), np.maximum(one_more, LOG_FLOOR))


def test_a_level_moves_by_a_part_of_itself_and_without_a_centre_the_floor_is_all_there_is() -> None:
    scope = select(LAYOUT, lambda _: Trait(subsystem=Subsystem.CPU, log=False))
    np.testing.assert_allclose(scope.least(np.array([300.0, 0.0, np.nan])), [9.0, LINEAR_FLOOR, LINEAR_FLOOR])
