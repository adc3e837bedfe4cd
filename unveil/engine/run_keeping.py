"""RunKeeping: runs in the journal. What has to be done whatever the disk says is done, and written when it can be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.errors import UnwritableError

if TYPE_CHECKING:
    from unveil.engine.reserve import Reserve
    from unveil.records.run import Run
    from unveil.store.journal import Journal


class RunKeeping:
    """Keeps runs, before a step is taken where that is possible.

    A step that begins something must be on the disk first (`keep`). One that ends or undoes something must not wait for
    the disk (`keep_anyway`): it spends the reserve, and when even that does not help it is owed and written later.
    """

    def __init__(self, journal: Journal, reserve: Reserve) -> None:
        self._journal = journal
        self._reserve = reserve
        self._owed: dict[str, Run] = {}

    def keep(self, run: Run) -> None:
        """Journal a run as it stands, or raise UnwritableError."""
        self._journal.put_run(run)
        self._owed.pop(run.id, None)

    def keep_anyway(self, run: Run) -> None:
        """Journal a run as it stands, now or as soon as the disk takes it."""
        try:
            self.keep(run)
        except UnwritableError:
            self._owed[run.id] = run
            if self._reserve.spend():
                self.catch_up()

    @property
    def owes(self) -> bool:
        """Return whether a run is further than the journal says."""
        return bool(self._owed)

    def newest(self, run: Run) -> Run:
        """Return a run as it stands, whether or not that is in the journal."""
        return self._owed.get(run.id, run)

    def catch_up(self) -> tuple[str, ...]:
        """Write what is owed, and then make the reserve whole again; return what a person should know."""
        troubles = []
        for run in tuple(self._owed.values()):
            try:
                self.keep(run)
            except UnwritableError as error:
                troubles.append(f"run {run.id} is {run.state}, which is not in the journal yet: {error}")
        if not self._owed:
            self._reserve.hold()
        return tuple(troubles)
