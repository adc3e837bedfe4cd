"""Names lead to what kind of entity has them."""

from __future__ import annotations

from unveil.knowledge.catalogues import catalogues
from unveil.records.entity import EntityKind


def test_a_name_leads_to_its_kind_of_entity() -> None:
    known = catalogues()
    assert known.kind_of("feature", "cpu.idle.rate") is EntityKind.HOST
    assert known.kind_of("feature", "gpu.util.mean") is EntityKind.GPU
    assert known.kind_of("fact", "cpu.cgroup_quota") is EntityKind.CGROUP
    assert known.kind_of("fact", "gpu.util.mean") is None
    assert known.kind_of("feature", "nothing") is None
