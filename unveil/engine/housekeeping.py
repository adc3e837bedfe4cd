"""Housekeeping: what the watch does besides judging, once a second or less, and a new knowledge base at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from unveil.engine.allocator import Code, give_back

if TYPE_CHECKING:
    from unveil.engine.metrics_link import MetricsLink
    from unveil.engine.watch import Watch
    from unveil.records.knowledge import KnowledgeState

PRUNE_S = 60.0
COST_S = 10.0
CODE_S = 30.0


@dataclass(slots=True)
class _Due:
    """What happens seldom, and when it is due next, on a clock that nobody sets."""

    prune_ns: int = 0
    cost_ns: int = 0
    code_ns: int = 0


class Housekeeping:
    """Looks after the parts of a watch. No window waits for it."""

    def __init__(self, watch: Watch, metrics: MetricsLink | None) -> None:
        """Make one.

        Args:
            metrics: the child that tells a monitoring system, None when nobody asked for it.
        """
        self._watch = watch
        self._metrics = metrics
        self._due = _Due()
        self._code = Code()
        self._revision = 0  # of the reference
        self._run_through = True  # code that the loop will not run for a while

    def second(self, now_ns: int) -> None:
        """Do what is due a second after the last time."""
        watch = self._watch
        wall_s = watch.clock()
        if watch.observation.facts_due(now_ns):
            watch.observation.refresh_facts(now_ns)
        self.take_up(now_ns)
        if complaint := watch.training.poll(wall_s):
            watch.complain(complaint)
        if self._metrics is not None:
            self._metrics.poll(now_ns, watch.meter.families)
        if now_ns >= self._due.cost_ns:
            self._due.cost_ns = now_ns + int(1e9 * COST_S)
            watch.cost.mark()
            self._now_holds(watch.knowledge.look_at_grants(wall_s))
        if now_ns >= self._due.prune_ns:
            self._due.prune_ns = now_ns + int(1e9 * PRUNE_S)
            watch.journalling.attempt(lambda: self._prune(wall_s), wall_s)
        self._let_go(now_ns)

    def take_up(self, _now_ns: int) -> None:
        """Go over to the knowledge base that was loaded meanwhile, if there is one: a look at a queue else."""
        watch = self._watch
        wall_s = watch.clock()
        state, replaced = watch.knowledge.poll(wall_s)
        if replaced:
            current = watch.knowledge.current
            ended = watch.pipeline.replace_knowledge(
                current.fingerprints,
                generation=current.generation,
                wall_s=wall_s,
                correlations=current.correlations,
                filters=current.filters,
            )
            watch.journalling.episodes(ended, wall_s)
        self._now_holds(state)

    def _now_holds(self, state: KnowledgeState | None) -> None:
        """Write down what holds now, if that is something else than before, and let in whom it names."""
        if state is not None:
            self._watch.open_door()
            self._watch.journalling.knowledge(state)

    def _let_go(self, now_ns: int) -> None:
        """Give memory back once the reference was made anew and its detectors fitted: for a minute nobody needs it."""
        reference = self._watch.pipeline.ensemble.reference
        before, self._revision = self._revision, 0 if reference is None else reference.revision
        if before != self._revision:
            self._run_through = True  # the detectors are fitted with the next window
        elif self._run_through and now_ns >= self._due.code_ns:
            self._due.code_ns = now_ns + int(1e9 * CODE_S)
            self._run_through = False
            self._code.let_go()
            give_back()

    def _prune(self, wall_s: float) -> None:
        config = self._watch.config
        self._watch.journal.prune(
            now_s=wall_s,
            ordinary_s=3600 * config.ordinary_hours,
            notable_s=86400 * config.notable_days,
            max_bytes=int(1e6 * config.journal_mb),
        )
