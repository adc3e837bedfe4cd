"""A draft lints clean, passes its own cases, and its cases notice every mutant, whatever it was drafted from."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unveil.errors import BadInputError
from unveil.features.catalogue import FEATURES
from unveil.knowledge.drafting import Author, draft
from unveil.knowledge.loading import load
from unveil.knowledge.mutation import mutate
from unveil.knowledge.testing import read_suite, run_suite
from unveil.records.attribution import Attribution, FeatureShare
from unveil.records.entity import HOST, Entity, EntityKind
from unveil.records.feature import FeatureId
from unveil.records.fingerprint import FeatureClause, Fingerprint
from unveil.records.subsystem import Subsystem
from unveil.records.verdict import State, Verdict
from unveil.records.window import WindowSummary

AUTHOR = Author(id="4bd2a9b0-4f0e-4d55-9a52-9a4f4a1f0c11", date="2026-11-29", owner='a "team": of #1')
POD, OTHER = Entity(EntityKind.CGROUP, "/pod1"), Entity(EntityKind.CGROUP, "/pod2")


def factor(name: str, sigma: float, *, entity: Entity = HOST, share: float = 0.2, unit: float = 10.0) -> FeatureShare:
    subsystem = Subsystem(name.partition(".")[0])
    return FeatureShare(
        feature=FeatureId(name, entity), subsystem=subsystem, share=share, value=100.0 + sigma * unit, expected=100.0,
        sigma=sigma,
    )  # fmt: skip


def window(*factors: FeatureShare) -> WindowSummary:
    return WindowSummary(
        watch=3, index=17, wall_s=1000.0, ticks_missed=0, verdict=Verdict(window=17, state=State.ANOMALOUS),
        attribution=Attribution(window=17, features=factors, subsystems={}),
    )  # fmt: skip


def proven(subsystem: Subsystem, seen: WindowSummary | None) -> Fingerprint:
    """Write a draft into a knowledge base of its own, hold it to everything, and return it as loaded."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "playbooks").mkdir()
        written = draft("some_draft", subsystem, AUTHOR, seen)
        place = root / "fingerprints" / str(subsystem)
        place.mkdir(parents=True)
        (place / "some_draft.yml").write_text(written.fingerprint)
        (place / "some_draft.test.yml").write_text(written.test)
        assert load(root).problems == ()
        suite, _ = read_suite(root)
        assert suite is not None
        report = run_suite(suite, {"some_draft"})
        assert report.failed == ()
        assert len(report.cases) >= 5
        fingerprint = suite.knowledge.fingerprint("some_draft")
        assert fingerprint is not None
        assert mutate(suite, fingerprint).survivors == ()
        assert (fingerprint.status, fingerprint.owner, fingerprint.date) == ("experimental", AUTHOR.owner, AUTHOR.date)
        return fingerprint


@pytest.mark.parametrize("subsystem", list(Subsystem))
def test_a_draft_from_nothing_asks_for_the_share_of_its_subsystem(subsystem: Subsystem) -> None:
    assert proven(subsystem, None).condition == f"led_by_{subsystem}"


def test_a_draft_from_a_window_asks_for_what_moved_it_on_the_entity_that_moved_most() -> None:
    seen = window(
        factor("memory.psi_some.rate", 8.0, share=0.3),
        factor("cpu.cgroup_usage.rate", -30.0, entity=POD, share=0.2),
        factor("memory.cgroup_anon.last", 4.0, entity=POD, share=0.1),
        factor("cpu.cgroup_usage.rate", 9.0, entity=OTHER, share=0.25),
        factor("cpu.busy.rate", 2.0, share=0.1),
        factor("cpu.iowait.rate", 9.0, share=0.01),
        factor("cpu.no_such.rate", 9.0),
    )
    fingerprint = proven(Subsystem.MEMORY, seen)
    assert fingerprint.group_by is EntityKind.CGROUP
    clauses = [clause for clause in fingerprint.clauses if isinstance(clause, FeatureClause)]
    assert [(each.feature, each.entity, each.operator, each.threshold) for each in clauses] == [
        ("memory.psi_some.rate", EntityKind.HOST, "up", 4.0),
        ("cpu.cgroup_usage.rate", None, "down", 15.0),
        ("memory.cgroup_anon.last", None, "up", 2.0),
    ]
    assert "window 3:17" in fingerprint.description


def test_a_window_that_nothing_moved_is_refused() -> None:
    with pytest.raises(BadInputError, match="nothing in window 3:17 is far"):
        draft("some_draft", Subsystem.CPU, AUTHOR, window(factor("cpu.busy.rate", 1.0)))


HOST_FEATURES = sorted(name for name, feature in FEATURES.items() if feature.per is EntityKind.HOST)
SIGMAS = st.floats(2.5, 1e6) | st.floats(-1e6, -2.5)


@settings(max_examples=8, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(HOST_FEATURES), SIGMAS, st.floats(1e-6, 1e12)),
        min_size=1, max_size=6, unique_by=lambda each: each[0],
    )
)  # fmt: skip
def test_whatever_moved_a_window_makes_a_sound_draft(moved: list[tuple[str, float, float]]) -> None:
    factors = (factor(name, sigma, share=0.1, unit=unit) for name, sigma, unit in moved)
    assert len(proven(Subsystem.STORAGE, window(*factors)).clauses) == min(4, len(moved))
