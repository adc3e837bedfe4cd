"""An entity as text comes back as the entity, whatever a tenant called it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.records.entity import HOST, Entity, EntityKind, parse_entity


@given(st.sampled_from([kind for kind in EntityKind if kind is not EntityKind.HOST]), st.text())
def test_text_and_back(kind: EntityKind, key: str) -> None:
    assert parse_entity(str(Entity(kind, key))) == Entity(kind, key)


def test_the_host_is_a_word_of_its_own() -> None:
    assert str(HOST) == "host"
    assert parse_entity("host") == HOST


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="galaxy"):
        parse_entity("galaxy:m31")
