"""Windows, episodes and runs of a host that is made up, for the scripted watcher to tell of."""

from __future__ import annotations

from dataclasses import replace

from unveil.records.attribution import Attribution, FeatureShare
from unveil.records.entity import Entity, EntityKind
from unveil.records.feature import FeatureId
from unveil.records.match import Answer, ClauseResult, Episode, EpisodeState, Match
from unveil.records.remediation import Improvement, VerificationRule
from unveil.records.run import Plan, Run, RunState, SettingChange, Step
from unveil.records.subsystem import Subsystem
from unveil.records.verdict import State, Verdict, Vote
from unveil.records.window import Sighting, WindowSummary

START_S = 1_764_000_000.0
HOST_NAME = "gpu-node-17"
HOSTILE = "/pods/[bold red]x[/]\x1b[2J\u202egnp"
TENANT = Entity(EntityKind.CGROUP, "/kubepods/pod1")


def window(index: int, *, severity: float = 0.3, matched: str = "", watch: int = 1) -> WindowSummary:
    anomalous = severity > 2
    shares = dict.fromkeys(Subsystem, 0.05) | {Subsystem.MEMORY: 0.75}
    feature = FeatureShare(
        feature=FeatureId("memory.page_faults.rate"), subsystem=Subsystem.MEMORY, share=0.7, value=9000.0,
        expected=120.0, sigma=14.2,
    )  # fmt: skip
    other = replace(feature, feature=FeatureId("memory.thp_fault_alloc.rate"), share=0.3, sigma=-6.0, value=1.0)
    state = State.ANOMALOUS if anomalous else State.UNKNOWN if index < 5 else State.NORMAL
    vote = Vote(detector="zscore", score=severity, threshold=2.0, p_value=0.01, anomalous=anomalous)
    return WindowSummary(
        watch=watch,
        index=index,
        wall_s=START_S + index,
        ticks_missed=0,
        verdict=Verdict(
            window=index, state=state, votes=(vote,), rule="zscore|mahalanobis", severity=severity,
            reason="warming up" if index < 5 else "",
        ),
        attribution=Attribution(window=index, features=(feature, other) if anomalous else (), subsystems=shares),
        sightings=(Sighting(fingerprint=matched, entity=str(TENANT), answer="match"),) if matched else (),
        knowledge=3,
    )  # fmt: skip


def episode(
    identity: str = "e00000000000a",
    *,
    entity: Entity = TENANT,
    state: EpisodeState = EpisodeState.FIRING,
    fingerprint: str = "reduced_huge_page_coverage",
    at: int = 58,
) -> Episode:
    clauses = (
        ClauseResult(
            name="small_pages", subject="feature memory.cgroup_huge_share.last", operator="lt", threshold="0.1",
            value=0.02, answer=Answer.MATCH,
        ),
        ClauseResult(
            name="thp_off", subject="fact memory.thp_enabled", operator="in", threshold="never, madvise",
            value="madvise", answer=Answer.MATCH,
        ),
        ClauseResult(
            name="faulting", subject="feature memory.page_faults.rate", operator="up", threshold="2 sigma",
            value=None, answer=Answer.UNKNOWN, reason="no reference yet",
        ),
    )  # fmt: skip
    last = Match(
        window=at, wall_s=START_S + at, fingerprint=fingerprint, entity=entity, answer=Answer.MATCH, clauses=clauses,
        bindings={"cgroup": entity.key},
    )  # fmt: skip
    return Episode(
        id=identity, fingerprint=fingerprint, revision="r1", entity=entity, state=state, started_s=START_S + 40,
        fired_s=START_S + 46, last_s=START_S + at, cleared_s=START_S + at if state == "cleared" else None, windows=18,
        last=last,
    )  # fmt: skip


def planned_run(of: Episode, identity: str = "r0123456789ab", *, impact: str = "low", settings: int = 1) -> Run:
    changes = [
        SettingChange(
            address="file:/sys/kernel/mm/transparent_hugepage/enabled", before="always [madvise] never", after="always"
        )
    ]
    changes += [
        SettingChange(address=f"irq:{40 + n}/smp_affinity_list", before="0", after=f"{n}") for n in range(settings - 1)
    ]
    plan = Plan(
        remediation="restore_huge_pages", remediation_revision="x", playbook="/kb/apply.yml",
        fingerprint=of.fingerprint, episode=of.id, entity=of.entity,
        variables={"cgroup": of.entity.key, "tenant": "evil[red]\x1b[31m"}, untrusted=("tenant",),
        changes=tuple(changes),
        verification=VerificationRule(
            within_s=60, settings_hold_s=3, clear_s=6,
            improve=(Improvement(feature="memory.cgroup_huge_share.last", direction="up", effect=0.1),),
        ),
        timeout_s=60, mode="manual", impact=impact, reversible=True, rollback_triggers=("verify_failed",),
        baseline={"memory.cgroup_huge_share.last": 0.02}, created_s=START_S + 59, hash="f00dcafe" * 8,
    )  # fmt: skip
    step = Step(at_s=START_S + 59, state=RunState.PLANNED, cause="planned", actor="uid:0 pid:1")
    return Run(id=identity, plan=plan, steps=(step,), saved={}, written={})
