from __future__ import annotations

from unveil.records.fact_catalogue import FACTS


def test_an_entry_is_complete() -> None:
    for kind in FACTS.values():
        subsystem, _, name = kind.name.partition(".")
        assert subsystem == kind.subsystem, kind.name
        assert name.replace("_", "").isalnum(), kind.name
        assert name == name.lower(), kind.name
        assert kind.type in {"text", "number", "boolean", "list"}, kind.name
        assert kind.meaning, kind.name
        assert not kind.unit or kind.type == "number", kind.name


def test_facts_of_one_kind_of_entity_carry_its_name_where_it_could_be_mistaken() -> None:
    assert FACTS["network.nic_node"].per == "nic"
    assert FACTS["interconnect.cgroup_home_node"].per == "cgroup"
    assert FACTS["memory.thp_enabled"].per == "host"
