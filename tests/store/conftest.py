"""Records as a watcher would write them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from unveil.records.attribution import Attribution
from unveil.records.entity import HOST
from unveil.records.match import Answer, Episode, EpisodeState, Match
from unveil.records.remediation import VerificationRule
from unveil.records.run import Plan, Run, RunState, Step
from unveil.records.subsystem import Subsystem
from unveil.records.verdict import State, Verdict
from unveil.records.window import Sighting, WindowSummary
from unveil.store.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = Journal(tmp_path / "state" / "journal.db")
    yield journal
    journal.close()


@pytest.fixture
def window() -> Callable[..., WindowSummary]:
    def make(index: int, *, watch: int = 1, state: State = State.NORMAL, matched: bool = False) -> WindowSummary:
        return WindowSummary(
            watch=watch,
            index=index,
            wall_s=1000.0 + index,
            ticks_missed=0,
            verdict=Verdict(window=index, state=state),
            attribution=Attribution(window=index, features=(), subsystems=dict.fromkeys(Subsystem, 1 / 6)),
            sightings=(Sighting(fingerprint="f", entity="host", answer="match"),) if matched else (),
        )

    return make


@pytest.fixture
def episode() -> Episode:
    match = Match(
        window=1, wall_s=1001, fingerprint="f", entity=HOST, answer=Answer.MATCH, clauses=(), bindings={"host": ""}
    )
    return Episode(
        id="e0123456789ab", fingerprint="f", revision="1", entity=HOST, state=EpisodeState.FIRING, started_s=1000,
        fired_s=1001, last_s=1001, cleared_s=None, windows=2, last=match,
    )  # fmt: skip


@pytest.fixture
def run() -> Run:
    plan = Plan(
        remediation="m", remediation_revision="1", playbook="p", fingerprint="f", episode="e0123456789ab", entity=HOST,
        variables={}, untrusted=(), changes=(),
        verification=VerificationRule(within_s=1.0, settings_hold_s=1.0, clear_s=1.0),
        timeout_s=60.0, mode="manual", impact="low", reversible=True, rollback_triggers=(), baseline={},
        created_s=1002.0,
        hash="00",
    )  # fmt: skip
    first = Step(at_s=1002, state=RunState.PLANNED, cause="operator", actor="uid:0")
    return replace(Run(id="r0123456789ab", plan=plan, steps=(first,), saved={}, written={}))
