"""Sampler: reads the host at 10 Hz and hands out what it read, parsed, once a second.

``tick`` only reads: files stay open, texts are kept as they are. ``collect`` parses a second's worth at once, which is
what makes it cheap: caches are warm, and one numpy call takes all numbers out of all texts of a pace.
``python -m unveil.benchmarks.sampling`` tells what both cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.host.active_source import ActiveSource
from unveil.host.catalogue import SOURCES
from unveil.host.cgroups import CgroupTrees
from unveil.host.grid import Grid
from unveil.host.pace_reader import PaceReader
from unveil.host.source import FAST, PACES, Surroundings
from unveil.host.sources.watcher import LATE, MISSED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from unveil.host.root import HostRoot
    from unveil.host.source import Pace, Source, SourceHealth
    from unveil.records.sample import SampleBlock

MOST_FILES = 512
"""Files that are kept open, of all sources together; the usual limit of a process is 1024."""
BUDGET_NS = 5_000_000
"""CPU time of one reading of a source, beyond which it is read less often."""

_SECOND = 1_000_000_000
_LOOK_S = 2.0  # for files that come and go; no oftener than they are read
_LOOK_EVERYWHERE = 30  # looks, after which the other sources' files have been looked for, too, each at another one
_JUDGE_NS = 10 * _SECOND
_LEARNING_SHARE = 0.005  # of a core, that texts which look different may cost


class Sampler:
    """The sources of one host at work.

    Not thread-safe. Neither ``tick`` nor ``collect`` raises for what the host does: a file that is gone makes its
    channels absent, and ``health`` says why.
    """

    def __init__(
        self,
        root: HostRoot,
        *,
        sources: Iterable[Source] = SOURCES,
        interval_ns: int = 100_000_000,
        budget_ns: int = BUDGET_NS,
    ) -> None:
        """Find and open all files, and learn what they look like.

        Args:
            interval_ns: time from one tick to the next, which the caller keeps.
            budget_ns: CPU time one reading of a source may take.
        """
        self._budget_ns = budget_ns
        self._grid = Grid(interval_ns)
        self._surroundings = Surroundings(root=root, cgroups=CgroupTrees(root))
        self._surroundings.cgroups.walk(-(1 << 62))  # what is there already is not new
        self._sources = [ActiveSource(source, self._surroundings) for source in sources]
        self._readers = [
            PaceReader(
                pace, max(1, round(pace.period_s * _SECOND / interval_ns)), (LATE, MISSED) if pace is FAST else ()
            )
            for pace in PACES
        ]
        ticks = max(1, round(_LOOK_S * _SECOND / interval_ns))
        self._look_every = ticks
        self._look_due = ticks
        self._seldom_due = 0  # number of the tick at which more is to be done than to read the fast pace
        self._looks = 0
        self._last_ns = -1
        self._judge_ns = 0
        for source in self._sources:
            source.look(self._room())
        self._deal(PACES)

    def tick(self, now_ns: int) -> None:
        """Read what is due.

        Args:
            now_ns: CLOCK_MONOTONIC in nanoseconds; a tick that is not later than the last one is ignored.
        """
        if now_ns <= self._last_ns:
            return
        self._last_ns = now_ns
        grid = self._grid
        number = grid.place(now_ns)
        fast = self._readers[0]
        if number >= fast.due:
            fast.read(number, now_ns, (grid.late_ns / 1e9, float(grid.missed)))
        if number >= self._seldom_due:
            self._read_seldom(number, now_ns)

    def _read_seldom(self, number: int, now_ns: int) -> None:
        """Look for files that came or went, and read the slower paces."""
        if number >= self._look_due:
            self._look_due = number - number % self._look_every + self._look_every
            self._look(now_ns)
        for reader in self._readers[1:]:
            if number >= reader.due:
                reader.read(number, now_ns)
        self._seldom_due = min(self._look_due, *(reader.due for reader in self._readers[1:]))

    def collect(self, now_ns: int) -> tuple[SampleBlock, ...]:
        """Return what was read since the last time, by pace, oldest first. Called once a second.

        Several blocks of one pace mean that its channels changed in between.

        Args:
            now_ns: CLOCK_MONOTONIC in nanoseconds.
        """
        blocks = [block for reader in self._readers for block in reader.collect()]
        if now_ns - self._judge_ns >= _JUDGE_NS:
            learning_ns = int(_LEARNING_SHARE * min(now_ns - self._judge_ns, 2 * _JUDGE_NS))
            self._judge_ns = now_ns
            paces = [source.pace for source in self._sources]
            moved = [source for source in self._sources if source.judge(self._budget_ns, learning_ns)]
            if moved:
                self._deal({*paces, *(source.pace for source in moved)})
        return tuple(blocks)

    def health(self) -> tuple[SourceHealth, ...]:
        """Return how each source is doing, in the order they were given."""
        return tuple(source.health() for source in self._sources)

    def cgroups(self) -> tuple[str, ...]:
        """Return the keys of the cgroups that are followed, sorted."""
        return self._surroundings.cgroups.keys()

    def close(self) -> None:
        """Close all files."""
        for source in self._sources:
            source.close()

    def _look(self, now_ns: int) -> None:
        """Look for files that came or went."""
        self._looks += 1
        cgroups = self._surroundings.cgroups
        cgroups.walk(now_ns)
        changed: set[Pace] = set()
        for number, source in enumerate(self._sources):
            turn = self._looks % max(1, round(source.pace.period_s / _LOOK_S)) == 0
            if turn:
                source.reopen()
            others = turn and source.source.changing and source.changes != cgroups.changes
            if others or (self._looks + number) % _LOOK_EVERYWHERE == 0:
                source.changes = cgroups.changes
                if source.look(self._room() + source.kept):
                    changed.add(source.pace)
        if changed:
            self._deal(changed)

    def _room(self) -> int:
        return max(0, MOST_FILES - sum(source.kept for source in self._sources))

    def _deal(self, paces: Collection[Pace]) -> None:
        """Give the readers of some paces their sources anew."""
        for reader in self._readers:
            if reader.pace in paces:
                reader.use([source for source in self._sources if source.pace is reader.pace])
