"""A vector answers by name, and absent is None."""

from __future__ import annotations

import numpy as np

from unveil.records.entity import Entity, EntityKind
from unveil.records.feature import FeatureId, FeatureLayout, FeatureVector

GPU = Entity(EntityKind.GPU, "GPU-1")


def test_a_value_is_found_by_name_and_entity_and_nan_is_absent() -> None:
    layout = FeatureLayout((FeatureId("a.b.c"), FeatureId("a.b.c", GPU), FeatureId("a.b.d")))
    vector = FeatureVector(window=1, wall_s=2.0, layout=layout, values=np.array([1.0, 2.0, np.nan]))
    assert vector.get("a.b.c") == 1.0
    assert vector.get("a.b.c", GPU) == 2.0
    assert vector.get("a.b.d") is None
    assert vector.get("a.b.e") is None


def test_a_name_says_which_entity_unless_it_is_the_host() -> None:
    assert str(FeatureId("a.b.c")) == "a.b.c"
    assert str(FeatureId("a.b.c", GPU)) == "a.b.c[gpu:GPU-1]"
