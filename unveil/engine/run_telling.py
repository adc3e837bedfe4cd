"""RunTelling: what a run reports goes into the journal, now or as soon as the disk takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.errors import UnwritableError

if TYPE_CHECKING:
    from unveil.engine.run_events import Event
    from unveil.store.journal import Journal

MOST_OWED = 1000  # events of one run that are kept meanwhile, the newest


class RunTelling:
    """Events are for the eye: unlike a step, one that cannot be written must not stop a run."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._owed: dict[str, tuple[tuple[float, Event], ...]] = {}

    def tell(self, run: str, at_s: float, *events: Event) -> None:
        """Journal events of a run, after those that could not be written before."""
        rows = (*self._owed.pop(run, ()), *((at_s, event) for event in events))
        if not rows:
            return
        try:
            self._journal.append_run_events(run, rows)
        except UnwritableError:
            self._owed[run] = rows[-MOST_OWED:]

    def catch_up(self) -> None:
        """Try again to write what is owed."""
        for run in tuple(self._owed):
            self.tell(run, 0.0)
