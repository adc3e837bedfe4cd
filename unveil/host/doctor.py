"""What can be measured on this host, at what cost, what cannot and why. What ``unveil doctor`` draws."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

import numpy as np

from unveil.host.active_source import allowed_ns
from unveil.host.capabilities import Capability, host_capabilities
from unveil.host.catalogue import GIVEN_BY
from unveil.host.sampler import BUDGET_NS
from unveil.host.snapshot import survey
from unveil.host.source import SourceState

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from unveil.host.root import HostRoot
    from unveil.host.source import SourceHealth
    from unveil.records.fact import FactTable

_SICK = (SourceState.FAILED, SourceState.STALE)
_TICKS = 21  # at their real pace: two seconds, as warm caches would tell too little


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsentFact:
    """A fact that is absent for one or more entities for the same reason.

    Attributes:
        entities: as text, sorted: ``nic:eth0``.
    """

    name: str
    reason: str
    entities: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """The findings.

    Attributes:
        sources: every source with its tier, state, cost and reason.
        core_share: share of one core that reading and parsing all of them takes at their pace.
        facts_cpu_s: CPU time of reading all facts once.
        metrics: names of the metrics that have a channel with a value.
        facts: names of the facts that are told for at least one entity.
        absent: facts that are not told, with reasons. A limit that is not set is an answer and not listed.
    """

    root: str
    kernel: str | None
    sources: tuple[SourceHealth, ...]
    core_share: float
    facts_cpu_s: float
    metrics: tuple[str, ...]
    facts: tuple[str, ...]
    absent: tuple[AbsentFact, ...]
    capabilities: tuple[Capability, ...]

    @property
    def sick(self) -> tuple[SourceHealth, ...]:
        """Return the sources that should work and do not."""
        return tuple(source for source in self.sources if source.state in _SICK)

    @property
    def too_dear(self) -> dict[str, str]:
        """Return the sources whose reading costs more than a watcher lets it, and what follows."""
        return {
            source.name: f"{cost_us / 1e3:.1f} ms a reading; a watcher reads it less often"
            for source in self.sources
            if (cost_us := source.read_us + source.parse_us) > allowed_ns(source.period_s, BUDGET_NS) / 1e3
        }

    def in_state(self, state: SourceState) -> tuple[SourceHealth, ...]:
        """Return the sources in a state: measured (``ok``), ``absent``, ``failed`` or ``stale``."""
        return tuple(source for source in self.sources if source.state is state)


@dataclass(frozen=True, slots=True, kw_only=True)
class Blind:
    """A fingerprint that can only answer *unknown* here, and what it lacks.

    Attributes:
        missing: names of metrics and facts.
        sources: names of the sources that would give the metrics, and ``facts``.
    """

    fingerprint: str
    missing: tuple[str, ...]
    sources: tuple[str, ...]


def examine(root: HostRoot, *, gpus: bool | None = None, pause_s: float = 0.1) -> Examination:
    """Read every source and fact for about two seconds and say what came of it.

    Args:
        gpus: whether to ask this machine's NVIDIA driver; by default only for this machine's own root.
        pause_s: time between two ticks; 0 for a quick look that understates the cost.
    """
    seen = survey(root, gpus=gpus, pause_s=pause_s, ticks=_TICKS)
    with_value = {
        channel.metric
        for block in seen.blocks
        for channel, told in zip(block.layout.channels, np.any(np.isfinite(block.values), axis=0).tolist(), strict=True)
        if told
    }
    ansible = which("ansible-playbook") or which("ansible-playbook", path=str(Path(sys.executable).parent))
    kernel = seen.table.value("cpu.kernel")
    return Examination(
        root=root.path,
        kernel=kernel if isinstance(kernel, str) else None,
        sources=seen.sources,
        core_share=sum((source.read_us + source.parse_us) / 1e6 / source.period_s for source in seen.sources),
        facts_cpu_s=seen.facts_cpu_s,
        metrics=tuple(sorted(with_value)),
        facts=tuple(sorted({fact.name for fact in seen.table.facts if fact.value is not None})),
        absent=absent_facts(seen.table),
        capabilities=(*host_capabilities(root, seen.table), _ansible(ansible)),
    )


def _ansible(path: str | None) -> Capability:
    return Capability(
        name="ansible-playbook",
        there=path is not None,
        detail=path or "not found",
        hint="" if path else "fixes can be planned here, not applied: install ansible-core beside unveil",
    )


def absent_facts(table: FactTable) -> tuple[AbsentFact, ...]:
    """Return the absent facts of a table by name and reason."""
    groups: dict[tuple[str, str], list[str]] = {}
    for fact in table.facts:
        if fact.value is None and fact.reason != "unlimited":
            groups.setdefault((fact.name, fact.reason or ""), []).append(str(fact.entity))
    return tuple(
        AbsentFact(name=name, reason=reason, entities=tuple(sorted(entities)))
        for (name, reason), entities in sorted(groups.items())
    )


def blind(required: Mapping[str, Collection[str]], available: Collection[str]) -> tuple[Blind, ...]:
    """Return the fingerprints that lack something they cannot do without, sorted by name.

    Args:
        required: names of the features and facts that each fingerprint needs (optional clauses left out).
        available: names of the features and facts that this host gives.
    """
    there = frozenset(available)
    return tuple(
        Blind(fingerprint=name, missing=missing, sources=_sources_of(missing))
        for name, needs in sorted(required.items())
        if (missing := tuple(sorted(set(needs) - there)))
    )


def _sources_of(names: Iterable[str]) -> tuple[str, ...]:
    """Return which sources would give some metrics; a metric that several give names the first, a fact none."""
    found = {next((source for source, metrics in GIVEN_BY.items() if name in metrics), "facts") for name in names}
    return tuple(sorted(found))
