from __future__ import annotations

from unveil.features.catalogue import FEATURES
from unveil.features.relations import HOST_RELATIONS, PART_RELATIONS


def test_relations_are_for_fingerprints_and_leave_trained_models_as_they_are() -> None:
    assert {each.name for each in (*HOST_RELATIONS, *PART_RELATIONS)} <= set(FEATURES)
    assert not any(each.detect for each in (*HOST_RELATIONS, *PART_RELATIONS))


def test_each_relation_is_a_ratio_that_is_absent_where_there_is_nothing_to_relate_to() -> None:
    for each in (*HOST_RELATIONS, *PART_RELATIONS):
        assert each.formula.denominator, each.name
