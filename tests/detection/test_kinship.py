"""Features that say the same share one voice."""

from __future__ import annotations

import numpy as np
import pytest

from unveil.detection.kinship import voices


def rows(width: int, count: int = 400) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(count, width))


def test_independent_features_have_a_whole_voice_each() -> None:
    loud, still = voices(rows(5))
    assert loud == pytest.approx(np.ones(5))
    assert not still.any()


def test_copies_share_one_voice_whatever_their_sign() -> None:
    z = rows(2)
    loud, _ = voices(np.column_stack([z[:, 0], -z[:, 0], z[:, 0], z[:, 1]]))
    assert loud == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1.0], rel=1e-5)


def test_a_feature_that_never_moved_has_its_own_voice_and_is_told() -> None:
    z = rows(3)
    z[:, 1] = 0.0
    loud, still = voices(z)
    assert still.tolist() == [False, True, False]
    assert loud[1] == 1.0


def test_one_common_glitch_makes_no_kin() -> None:
    z = rows(2)
    z[7] = 1e18
    loud, _ = voices(z)
    assert loud == pytest.approx(np.ones(2))


@pytest.mark.parametrize("count", [0, 1])
def test_nothing_to_correlate_is_no_error(count: int) -> None:
    loud, still = voices(np.zeros((count, 4)))
    assert loud == pytest.approx(np.ones(4))
    assert still.all()
