"""A remediation, an episode, a host's facts and windows, small and real in shape."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from unveil.records.entity import HOST, Entity, EntityKind
from unveil.records.fact import Fact, FactTable
from unveil.records.feature import FeatureId, FeatureLayout, FeatureVector
from unveil.records.match import Answer, Episode, EpisodeState, Match
from unveil.records.remediation import (
    Improvement,
    Limits,
    Mode,
    Remediation,
    Variable,
    VerificationRule,
    WantedSetting,
)
from unveil.remediation import planner

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.records.run import Plan

NIC = Entity(EntityKind.NIC, "eth0")
SETTINGS = {
    "irq:24/smp_affinity_list": "0-3",
    "irq:25/smp_affinity_list": "4-7",
    "sysctl:vm.dirty_ratio": "20",
    "sysctl:vm.dirty_bytes": "0",
}


@pytest.fixture
def remediation() -> Remediation:
    """Give a remediation of a NIC, with every kind of origin."""
    return Remediation(
        name="pin_nic_irqs",
        id="9a7d1b2c-3e4f-4a5b-8c6d-7e8f9a0b1c2d",
        title="Pin",
        status="stable",
        description="",
        remediates=("nic_far",),
        playbook="/kb/playbooks/pin_nic_irqs/apply.yml",
        timeout_s=60.0,
        variables=(
            Variable(name="nic", type="string", origin="match.nic", pattern="[a-z0-9]{1,15}"),
            Variable(name="irqs", type="list", origin="fact.network.nic_irqs", pattern="[0-9]+"),
            Variable(name="local_cpus", type="string", origin="fact.network.nic_local_cpus", pattern="[0-9,-]+"),
            Variable(name="share", type="number", origin="site.share", default=0.5, minimum=0.0, maximum=1.0),
            Variable(name="tenant", type="string", origin="fact.cpu.cgroup_name", untrusted=True, max_length=20),
        ),
        settings=(
            WantedSetting(address="irq:{{ item }}/smp_affinity_list", value="{{ local_cpus }}", for_each="irqs"),
            WantedSetting(address="sysctl:vm.dirty_ratio", value="{{ 30 }}", coupled=("sysctl:vm.dirty_bytes",)),
        ),
        mode=Mode.AUTO,
        impact="low",
        reversible=True,
        interrupts_workload=False,
        requires_reboot=False,
        preconditions=("still_matching", "no_silence"),
        limits=Limits(cooldown_s=600.0, max_attempts=2, attempts_within_s=86400.0, max_hosts=4),
        verification=VerificationRule(
            within_s=45.0,
            settings_hold_s=3.0,
            clear_s=5.0,
            improve=(Improvement(feature="network.irq_remote_share.rate", direction="down", effect=0.5),),
            must_not_worsen=(Improvement(feature="cpu.idle.rate", direction="down", effect=0.5),),
        ),
        rollback_triggers=("apply_failed", "verify_failed", "canceled", "timeout", "operator"),
        rollback_available_s=86400.0,
        revision="abc",
    )


@pytest.fixture
def episode() -> Episode:
    """Give a firing episode of one NIC."""
    match = Match(
        window=9,
        wall_s=100.0,
        fingerprint="nic_far",
        entity=NIC,
        answer=Answer.MATCH,
        clauses=(),
        bindings={"nic": "eth0"},
    )
    return Episode(
        id="e000000000001",
        fingerprint="nic_far",
        revision="1",
        entity=NIC,
        state=EpisodeState.FIRING,
        started_s=90.0,
        fired_s=96.0,
        last_s=100.0,
        cleared_s=None,
        windows=10,
        last=match,
    )


@pytest.fixture
def facts() -> FactTable:
    """Give the facts of that host."""
    return FactTable(
        facts=(
            Fact(name="network.nic_irqs", entity=NIC, value=("24", "25")),
            Fact(name="network.nic_local_cpus", entity=NIC, value="4-7"),
            Fact(name="cpu.count", value=8.0),
            Fact(name="cpu.cgroup_quota", value=None, reason="unlimited", setting="cgroup:/pod1/cpu.max"),
        ),
        settings=dict(SETTINGS),
    )


@pytest.fixture
def drawn(remediation: Remediation, episode: Episode, facts: FactTable) -> Callable[..., Plan]:
    """Draw a plan; keywords replace fields of the remediation, ``facts``, ``site``, ``episode`` or ``read``."""

    def draw(**changes: Any) -> Plan:
        given = {name: changes.pop(name) for name in ("facts", "site", "episode", "read", "ceiling") if name in changes}
        table = given.get("facts", facts)
        return planner.plan(
            replace(remediation, **changes),
            given.get("episode", episode),
            facts=table,
            site=given.get("site", {}),
            read=given.get("read", table.settings.get),
            baseline=vector_of({"network.irq_remote_share.rate": 0.8, "cpu.idle.rate": 0.6}).get,
            now_s=101.0,
            ceiling=given.get("ceiling", Mode.AUTO),
        )

    return draw


def vector_of(values: dict[str, float | None], *, window: int = 0, wall_s: float = 100.0) -> FeatureVector:
    """Return a vector; network features are the NIC's, all others the host's."""
    ids = tuple(FeatureId(name, NIC if name.startswith("network.") else HOST) for name in values)
    numbers = [math.nan if value is None else value for value in values.values()]
    return FeatureVector(
        window=window, wall_s=wall_s, layout=FeatureLayout(ids), values=np.array(numbers, dtype=np.float64)
    )


@pytest.fixture
def vector() -> Callable[..., FeatureVector]:
    """Make a vector."""
    return vector_of
