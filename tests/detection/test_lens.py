"""What a detector sees of a window."""

from __future__ import annotations

import numpy as np

from unveil.detection.lens import Lens


def test_it_shows_sigmas_of_its_own_features_and_leaves_out_what_the_scope_lacks():
    lens = Lens(positions=np.array([2, 0]), own=np.array([0, 2]), scale=np.array([2.0, 1.0, 0.5]))
    seen = lens.look(np.array([1.0, 7.0, -4.0]))
    assert seen[[0, 2]].tolist() == [-2.0, 2.0]
    assert np.isnan(seen[1])
