"""Watched: what the commands know of a watch, be it over a live host or over a recording."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.engine.history import History
    from unveil.engine.pipeline import Pipeline
    from unveil.knowledge.knowledge_base import KnowledgeBase
    from unveil.records.entity import Entity
    from unveil.records.fact import FactTable
    from unveil.records.knowledge import KnowledgeState
    from unveil.records.match import Episode
    from unveil.records.remediation import Mode, Remediation
    from unveil.records.run import Plan, Run
    from unveil.remediation.verification import Progress
    from unveil.store.journal import Journal
    from unveil.store.queries import Queries


class Knowledge(Protocol):
    """The knowledge base in use."""

    current: KnowledgeBase
    state: KnowledgeState

    def rescan(self) -> None:
        """Look at the files again, or refuse."""


class Runs(Protocol):
    """Whoever carries plans out, or refuses to."""

    @property
    def active(self) -> int:
        """Return how many runs are not settled."""
        ...

    def newest(self, run: Run) -> Run:
        """Return a run as it stands, also where that is not in the journal yet."""
        ...

    def propose(self, plan: Plan, *, actor: str) -> Run:
        """Journal a plan as a run that waits."""
        ...

    def approve(self, run: Run, *, plan_hash: str, actor: str) -> Run:
        """Approve exactly the plan that was shown."""
        ...

    def apply(self, run: Run, *, plan_hash: str, actor: str) -> Run:
        """Start an approved plan."""
        ...

    def cancel(self, run: Run, *, actor: str) -> Run:
        """Stop a run, and put back what it changed."""
        ...

    def roll_back(self, run: Run, *, actor: str) -> Run:
        """Put back what a run changed."""
        ...

    def expect(self, mode: Mode) -> None:
        """Be ready to start a playbook soon, unless nothing may ever be done."""

    def dry_run(self, run: Run) -> None:
        """Let Ansible go through a plan in check mode."""
        ...

    def progress(self, identity: str) -> Progress | None:
        """Return how far the verification of a run is, None when it is not being verified."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounds:
    """What a plan for an episode is drawn from.

    Attributes:
        facts: the state of the host.
        read: content of a managed setting by its address, None where it cannot be read.
        baseline: a feature right before, None where it is absent.
    """

    facts: FactTable
    read: Callable[[str], str | None]
    baseline: Callable[[str, Entity], float | None]


class Gpus(Protocol):
    """Whoever reads the GPUs, and holds their handles for it."""

    def health(self) -> object:
        """Return how the reading stands, a record."""
        ...

    def release(self) -> None:
        """Give all handles back, without waiting."""

    def resume(self) -> None:
        """Take them again."""


class Readable(Protocol):
    """Managed settings that can be read."""

    def peek(self, address: str) -> str | None:
        """Return the content of a setting, None where it cannot be read."""
        ...


class Watched(Protocol):
    """What is asked about."""

    host: str
    journal: Journal
    queries: Queries
    history: History
    pipeline: Pipeline

    @property
    def knowledge(self) -> Knowledge:
        """Return the knowledge base in use."""
        ...

    @property
    def runs(self) -> Runs:
        """Return who carries plans out."""
        ...

    @property
    def settings(self) -> Readable:
        """Return the managed settings."""
        ...

    @property
    def facts(self) -> FactTable:
        """Return the facts as last read."""
        ...

    @property
    def gpus(self) -> Gpus | None:
        """Return who holds the GPUs; None when nobody does."""
        ...

    def grounds(self, episode: Episode) -> Grounds:
        """Return what a plan for an episode is drawn from: the present; of a recording, the episode's own time."""
        ...

    def clock(self) -> float:
        """Return the wall clock, seconds since the epoch; of the recording in a replay."""
        ...

    def mode(self, remediation: Remediation) -> Mode:
        """Return how far automation may go with a remediation here."""
        ...

    def status(self) -> dict[str, Any]:
        """Return how the watch and its host are, as plain JSON."""
        ...
