"""One generation answers by name, and says what it is."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from unveil.knowledge.knowledge_base import KnowledgeBase, Loaded, state_of
from unveil.knowledge.loading import load
from unveil.records.problem import Gravity, Problem

if TYPE_CHECKING:
    from pathlib import Path


def test_names_lead_to_records_and_fixes(kb: Path) -> None:
    base = load(kb, generation=4).knowledge
    assert base is not None
    assert base.fingerprint("quota_throttling") is base.fingerprints[1]
    assert base.remediation("raise_quota") is base.remediations[0]
    assert base.fixes("quota_throttling") == base.remediations
    assert base.fixes("power_limit_low") == ()
    assert (base.fingerprint("nothing"), base.remediation("nothing"), base.fixes("nothing")) == (None, None, ())
    state = state_of(base, 5.0)
    assert (state.generation, state.fingerprints, state.remediations, state.stale_since_s) == (4, 2, 1, None)


def test_a_generation_does_not_change() -> None:
    base = KnowledgeBase(generation=1, digest="", root="/")
    with pytest.raises(dataclasses.FrozenInstanceError):
        base.generation = 2  # type: ignore[misc]  # the point of the test


def test_only_errors_keep_a_folder_from_being_used() -> None:
    told = [Problem(file="f", line=1, column=1, check="K001", what="x", gravity=gravity) for gravity in Gravity]
    assert Loaded(knowledge=None, problems=tuple(told)).errors == (told[0],)
