"""KnowledgeBase: one generation of everything a site knows, validated, immutable.

Holds records only and imports neither YAML nor JSON Schema: the watcher has this module, the loader has those.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from unveil.records.knowledge import KnowledgeState
from unveil.records.problem import Gravity
from unveil.records.site import Profiles

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unveil.records.correlation import Correlation
    from unveil.records.fact import FactValue
    from unveil.records.fingerprint import Fingerprint
    from unveil.records.problem import Problem
    from unveil.records.remediation import Remediation
    from unveil.records.site import Filter


@dataclass(frozen=True, kw_only=True)
class KnowledgeBase:
    """Fingerprints, remediations and what the site adds.

    Attributes:
        generation: grows by one with each that was published.
        digest: sha256 over all files that it was made of.
        root: the folder, symbolic links resolved; where playbooks are run from.
        fingerprints, remediations, filters, correlations: sorted by name.
        site: values of the site by name.
        groups: host → groups of Ansible's inventory that it belongs to.
    """

    generation: int
    digest: str
    root: str
    fingerprints: tuple[Fingerprint, ...] = ()
    remediations: tuple[Remediation, ...] = ()
    filters: tuple[Filter, ...] = ()
    correlations: tuple[Correlation, ...] = ()
    site: Mapping[str, FactValue] = field(default_factory=dict)
    profiles: Profiles = field(default_factory=Profiles)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @cached_property
    def _fingerprints(self) -> dict[str, Fingerprint]:
        return {each.name: each for each in self.fingerprints}

    @cached_property
    def _remediations(self) -> dict[str, Remediation]:
        return {each.name: each for each in self.remediations}

    def fingerprint(self, name: str) -> Fingerprint | None:
        """Return a fingerprint by name."""
        return self._fingerprints.get(name)

    def remediation(self, name: str) -> Remediation | None:
        """Return a remediation by name."""
        return self._remediations.get(name)

    def fixes(self, fingerprint: str) -> tuple[Remediation, ...]:
        """Return the remediations of a fingerprint in its order of preference."""
        found = self.fingerprint(fingerprint)
        names = () if found is None else found.remediations
        return tuple(self._remediations[name] for name in names if name in self._remediations)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What came of loading a folder.

    Attributes:
        knowledge: None when a problem is an error.
        problems: errors, warnings and remarks, sorted by file and line.
        digest: of the files that were read, also when they could not be used.
    """

    knowledge: KnowledgeBase | None
    problems: tuple[Problem, ...] = ()
    digest: str = ""

    @property
    def errors(self) -> tuple[Problem, ...]:
        """Return what kept the folder from being used."""
        return tuple(problem for problem in self.problems if problem.gravity is Gravity.ERROR)


def state_of(
    knowledge: KnowledgeBase, at_s: float, *, stale_since_s: float | None = None, problems: tuple[str, ...] = ()
) -> KnowledgeState:
    """Return what journal, screens and metrics say of a generation in use."""
    return KnowledgeState(
        generation=knowledge.generation,
        digest=knowledge.digest,
        at_s=at_s,
        fingerprints=len(knowledge.fingerprints),
        remediations=len(knowledge.remediations),
        stale_since_s=stale_since_s,
        problems=problems,
    )
