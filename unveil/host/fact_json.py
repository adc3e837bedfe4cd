"""FactTable to plain JSON values and back, for recordings (the table itself holds an index that must not travel)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unveil.records.codec import decode, encode
from unveil.records.fact import Fact, FactTable

if TYPE_CHECKING:
    from collections.abc import Mapping


def encode_facts(table: FactTable) -> dict[str, Any]:
    """Return the JSON value of a table: its facts in their order, and the raw texts of its settings."""
    return {"facts": [encode(fact) for fact in table.facts], "settings": dict(table.settings)}


def decode_facts(value: Mapping[str, Any]) -> FactTable:
    """Return the table that ``encode_facts`` wrote.

    Raises:
        TypeError, ValueError, KeyError: the value is no such table.
    """
    return FactTable(
        tuple(decode(Fact, fact) for fact in value["facts"]),
        {str(address): str(text) for address, text in value["settings"].items()},
    )
