"""Mutants: each is one change, and every change is there."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from unveil.matching.matcher import Matcher
from unveil.matching.mutants import mutants

if TYPE_CHECKING:
    from types import SimpleNamespace


def test_every_part_of_a_fingerprint_is_changed_once(build: SimpleNamespace) -> None:
    original = build.fingerprint(
        "a and not b and any of c*",
        build.feature("a", "gte", 10.0),
        build.fact("b", "in", ("x",), optional=True),
        build.share("c", "lt", 0.0),
        hold_s=3.0,
    )
    changes = dict(mutants(original))
    assert list(changes) == [
        "clause a: lt for gte",
        "clause a: optional is true",
        "clause a: 9 for 10",
        "clause a: 11 for 10",
        "clause b: not_in for in",
        "clause b: optional is false",
        "clause c: gte for lt",
        "clause c: optional is true",
        "condition: (not a) for a at offset 0",
        "condition: or for and at offset 2",
        "condition: nothing for not at offset 6",
        "condition: (not b) for b at offset 10",
        "condition: or for and at offset 12",
        "condition: all for any at offset 16",
        "for: 2s",
        "for: 4s",
    ]
    assert changes["condition: nothing for not at offset 6"].condition == "a and  b and any of c*"
    for mutant in changes.values():
        changed = [
            field.name for field in fields(mutant) if getattr(mutant, field.name) != getattr(original, field.name)
        ]
        assert len(changed) == 1
        Matcher([mutant])


def test_neither_a_boolean_nor_a_hold_of_nothing_can_be_moved(build: SimpleNamespace) -> None:
    changes = dict(mutants(build.fingerprint("on", build.fact("on", "eq", True))))
    assert list(changes) == [
        "clause on: neq for eq",
        "clause on: optional is true",
        "condition: (not on) for on at offset 0",
        "for: 1s",
    ]
