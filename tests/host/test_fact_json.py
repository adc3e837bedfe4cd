"""A table of facts survives JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.host.fact_json import decode_facts, encode_facts
from unveil.records.entity import HOST, Entity, EntityKind
from unveil.records.fact import Fact, FactTable

TEXT = st.text(st.characters(), max_size=12)  # lone surrogates too: names of cgroups are bytes
VALUES = st.one_of(
    TEXT, st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.lists(TEXT, max_size=3).map(tuple)
)
ENTITIES = st.one_of(st.just(HOST), st.builds(Entity, st.sampled_from([EntityKind.CGROUP, EntityKind.NIC]), TEXT))
FACTS = st.builds(
    Fact,
    name=TEXT,
    entity=ENTITIES,
    value=st.none() | VALUES,
    reason=st.none() | TEXT,
    setting=st.none() | TEXT,
)


@given(st.lists(FACTS, max_size=5), st.dictionaries(TEXT, TEXT, max_size=3))
def test_every_fact_and_setting_comes_back(facts: list[Fact], settings: dict[str, str]) -> None:
    back = decode_facts(json.loads(json.dumps(encode_facts(FactTable(tuple(facts), settings)))))
    assert back.facts == tuple(facts)
    assert back.settings == settings
    for fact in facts:
        assert back.find(fact.name, fact.entity) is not None, "the index is made again"


@pytest.mark.parametrize("value", [{}, {"facts": []}, {"facts": [{}], "settings": {}}, {"facts": 3, "settings": {}}])
def test_what_is_no_table_is_refused(value: dict[str, object]) -> None:
    with pytest.raises((TypeError, ValueError, KeyError)):
        decode_facts(value)
