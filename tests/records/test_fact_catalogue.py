from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unveil.records.fact_catalogue import FACTS

if TYPE_CHECKING:
    from unveil.records.fact import FactKind


@pytest.mark.parametrize("kind", FACTS.values(), ids=lambda kind: kind.name)
def test_an_entry_is_complete(kind: FactKind) -> None:
    subsystem, _, name = kind.name.partition(".")
    assert subsystem == kind.subsystem
    assert name.replace("_", "").isalnum()
    assert name == name.lower()
    assert kind.type in {"text", "number", "boolean", "list"}
    assert kind.meaning
    assert not kind.unit or kind.type == "number"


def test_facts_of_one_kind_of_entity_carry_its_name_where_it_could_be_mistaken() -> None:
    assert FACTS["network.nic_node"].per == "nic"
    assert FACTS["interconnect.cgroup_home_node"].per == "cgroup"
    assert FACTS["memory.thp_enabled"].per == "host"
