"""What travels as JSON comes back equal."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from unveil.records.codec import decode, encode, text
from unveil.records.entity import Entity, EntityKind
from unveil.records.match import Answer, ClauseResult, Episode, EpisodeState, Match
from unveil.records.remediation import Improvement, VerificationRule
from unveil.records.run import Plan, Run, RunState, SettingChange, Step
from unveil.records.verdict import State, Verdict, Vote

CLAUSE = ClauseResult(
    name="low", subject="feature memory.x.last", operator="lt", threshold="0.1", value=0.02, answer=Answer.MATCH
)
MATCH = Match(
    window=3, wall_s=10.0, fingerprint="f", entity=Entity(EntityKind.CGROUP, "/a:b"), answer=Answer.MATCH,
    clauses=(CLAUSE,), bindings={"cgroup": "/a:b"},
)  # fmt: skip
PLAN = Plan(
    remediation="r", remediation_revision="1", playbook="p", fingerprint="f", episode="e1", entity=MATCH.entity,
    variables={"irqs": ("1", "2"), "n": 3.0, "ok": True, "name": "x"}, untrusted=("name",),
    changes=(SettingChange(address="file:/x", before="a\n", after=None, reason="why"),),
    verification=VerificationRule(
        within_s=60, settings_hold_s=3, clear_s=6, improve=(Improvement(feature="a.b.c", direction="up", effect=0.1),)
    ),
    timeout_s=60, mode="manual", impact="low", reversible=True, rollback_triggers=("operator",),
    baseline={"a.b.c": 1.5}, created_s=1.0, hash="00",
)  # fmt: skip


@pytest.mark.parametrize(
    "record",
    [
        MATCH,
        Verdict(
            window=1, state=State.ANOMALOUS,
            votes=(Vote(detector="z", score=3.0, threshold=2.0, p_value=None, anomalous=True),),
        ),
        Episode(
            id="e1", fingerprint="f", revision="r", entity=MATCH.entity, state=EpisodeState.FIRING, started_s=1,
            fired_s=2, last_s=3, cleared_s=None, windows=4, last=MATCH,
        ),
        Run(
            id="r1", plan=PLAN, steps=(Step(at_s=1, state=RunState.PLANNED, cause="c", actor="a"),), saved={"x": "y"},
            written={},
        ),
    ],
)  # fmt: skip
def test_a_record_survives_the_journey(record: object) -> None:
    assert decode(type(record), json.loads(json.dumps(encode(record)))) == record


def test_an_array_is_refused_rather_than_mangled() -> None:
    with pytest.raises(TypeError, match="does not travel"):
        encode(object())


@pytest.mark.parametrize(
    "record",
    [
        MATCH,
        PLAN,
        replace(CLAUSE, value=float("nan")),
        replace(PLAN, baseline={"a.b.c": float("inf")}),
        Run(id="r1", plan=PLAN, steps=(Step(at_s=1, state=RunState.PLANNED, cause="ä\n", actor="a"),), saved={},
            written={}),
    ],
)  # fmt: skip
def test_the_text_of_a_record_is_that_of_its_value(record: object) -> None:
    assert text(record) == json.dumps(encode(record), separators=(",", ":"), ensure_ascii=False)


def test_text_of_an_array_is_refused() -> None:
    with pytest.raises(TypeError, match="does not travel"):
        text(object())
