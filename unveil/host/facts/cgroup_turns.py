"""Turns: of many cgroups only some are read each time; of the others what was read before stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from unveil.host.facts.sheet import FactSheet

AT_A_TIME = 16
"""Cgroups that are read each time: with one reading in ten seconds, each of 64 has its turn every forty."""


class CgroupTurns:
    """What was read of cgroups, and whose turn it is."""

    def __init__(self) -> None:
        self._sheets: dict[str, FactSheet] = {}
        self._paths: tuple[str, ...] = ()
        self._follow: frozenset[str] | None = None
        self._parts = 1
        self._turn = 0

    def forget(self) -> None:
        """Have all of them read the next time."""
        self._sheets.clear()
        self._follow = None

    def paths(self, find: Callable[[], tuple[str, ...]], follow: Collection[str]) -> tuple[str, ...]:
        """Return the paths of all cgroups: found again when a round is over, or others are followed than before."""
        if self._turn % self._parts == 0 or self._follow != frozenset(follow):
            self._paths, self._follow = find(), frozenset(follow)
        return self._paths

    def due(self, keys: tuple[str, ...]) -> frozenset[str]:
        """Return which of these cgroups are to be read now: those whose turn it is, and those that are new."""
        self._sheets = {key: sheet for key, sheet in self._sheets.items() if key in keys}
        self._parts = max(1, -(-len(keys) // AT_A_TIME))
        mine = keys[self._turn % self._parts :: self._parts]
        self._turn += 1
        return frozenset(mine).union(key for key in keys if key not in self._sheets)

    def keep(self, key: str, sheet: FactSheet) -> None:
        """Keep what has just been read of a cgroup."""
        self._sheets[key] = sheet

    def tell(self, key: str, sheet: FactSheet) -> None:
        """Write down on the sheet of all what was last read of a cgroup."""
        own = self._sheets[key]
        sheet.adopt(own.facts(), own.settings)
