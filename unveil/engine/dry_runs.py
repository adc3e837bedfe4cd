"""Dry runs: a playbook in check mode, beside the lifecycle. Nothing is changed; what it says is told with its run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.engine.run_events import checked, reported
from unveil.errors import UnveilError

if TYPE_CHECKING:
    from unveil.engine.run_telling import RunTelling
    from unveil.execution.supervisor import ChildRun, RunSupervisor
    from unveil.records.run import Run


class DryRuns:
    """The dry runs under way, at most one a run."""

    def __init__(self, supervisor: RunSupervisor, telling: RunTelling) -> None:
        self._supervisor = supervisor
        self._telling = telling
        self._children: dict[str, ChildRun] = {}

    def start(self, run: Run) -> None:
        """Start one, unless it is under way already.

        Raises:
            RefusedError: the plan is not what was hashed, or its playbook may be written by others.
        """
        if run.id not in self._children:
            self._children[run.id] = self._supervisor.dry_run(run.plan)

    def second(self, now_s: float) -> tuple[str, ...]:
        """Look after all of them; return what a person should know of those that were given up."""
        troubles = []
        for identity, child in tuple(self._children.items()):
            try:
                self._follow(identity, child, now_s)
            except (UnveilError, OSError) as error:
                del self._children[identity]
                troubles.append(f"the dry run of {identity} is given up: {error}")
        return tuple(troubles)

    def _follow(self, identity: str, child: ChildRun, now_s: float) -> None:
        progress = child.poll()
        self._telling.tell(identity, now_s, *map(reported, progress.events))
        if progress.result is not None:
            self._telling.tell(identity, now_s, checked(progress.result))
            self._supervisor.discard(child)
            del self._children[identity]
