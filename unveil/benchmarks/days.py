"""What days of watching a healthy host would say: ``python -m unveil.benchmarks.days RECORDINGS... --days 1``.

Healthy stretches of one workload are watched one after the other in random order, again and again, until so much time
has passed in them: each with its detectors as the one before left them, as `unveil eval --history` does it and a
watcher after a restart. So no window has samples of two recordings, and what was alarming at an end is let go; episodes
that fire go on, as after a restart. Counting begins when an hour has passed; what fires then is told apart.

THE STRETCHES REPEAT. Minutes of recorded material become days, so this shows what the calibration and the life of
episodes do over days, at the default setting. It does not show what days of new material would bring, and no bound of
any confidence follows from it.

A stretch is a recording that is labelled healthy from its beginning to its end; with --lead-ins also the beginning of
others, until their label ends. A day takes five to ten minutes of CPU time, so a quarter of one is watched unless
--days says otherwise. The default rule needs no training, and none is done, as in a watcher.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.benchmarks.progress import recordings
from unveil.benchmarks.running import said
from unveil.cli import draw
from unveil.cli.eval_tables import counted
from unveil.detection.ensemble import EnsembleSettings
from unveil.engine.backtesting import Job, Seen, labels_of
from unveil.engine.replaying import LoadedKnowledge, RecordedWatch
from unveil.errors import BadInputError, UnveilError
from unveil.knowledge.backtest import DAY_S
from unveil.knowledge.evaluation import a_day, false_alarms, false_episodes
from unveil.knowledge.labels import labels_beside, read_workload
from unveil.records.match import EpisodeState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from unveil.engine.pipeline import Outcome
    from unveil.knowledge.backtest import Trace
    from unveil.knowledge.labels import Interval

WARM_UP_S = 3600.0
DAYS = 0.25
REPEATED = (
    "The stretches repeat: this shows what the calibration and the episodes' life do over days, not what days of new "
    "material would bring."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Healthy time at the beginning of a recording."""

    recording: Path
    workload: str
    healthy: Interval


@dataclass(slots=True)
class Watched:
    """What was said of a workload.

    Attributes:
        traces: the stretches that were watched, after warming up, in their order.
        levels: alarm level of the rule's only detector at the end of each of them.
        alarms: recording, second and strongest features of each window that turned anomalous.
        firing: fingerprint → its episodes that fired while warming up and went on when counting began.
        cpu_s: CPU time, warming up included.
    """

    traces: list[Trace] = field(default_factory=list)
    levels: list[float] = field(default_factory=list)
    alarms: list[tuple[str, float, tuple[str, ...]]] = field(default_factory=list)
    distinct_s: dict[Path, float] = field(default_factory=dict)
    firing: dict[str, int] = field(default_factory=dict)
    cpu_s: float = 0.0


def stretches(paths: Sequence[Path], *, known: Sequence[str], lead_ins: bool) -> dict[str, list[Stretch]]:
    """Return the healthy beginnings of recordings by workload.

    Args:
        known: names that a label may be.
        lead_ins: also of recordings that are not healthy to their end.

    Raises:
        BadInputError: there are none; or labels are wrong.
        UnreadableError: there is no recording, or no labels beside it.
    """
    found: dict[str, list[Stretch]] = {}
    for path in dict.fromkeys(paths):
        intervals = labels_of(Job(recording=str(path)), known)
        labels = labels_beside(path)
        first = next(iter(intervals), None)
        if labels is None or first is None or first.labels or first.from_s > 0:
            continue
        if lead_ins or first.to_s == float("inf"):
            workload = read_workload(labels)
            found.setdefault(workload, []).append(Stretch(recording=path, workload=workload, healthy=first))
    if not found:
        raise BadInputError("no recording is healthy from its beginning on")
    return dict(sorted(found.items()))


def in_turn(chosen: Sequence[Stretch], *, seed: int) -> Iterator[Stretch]:
    """Yield stretches without an end, all of them in a random order before any comes again."""
    draw_lots = random.Random(seed)  # noqa: S311  # an order, reproducible
    while True:
        yield from draw_lots.sample(chosen, k=len(chosen))


def watch_for(
    chosen: Sequence[Stretch], *, days: float, seed: int, kb: str = "", done: Callable[[int], None] = lambda _: None
) -> Watched:
    """Watch stretches of one workload until so many days have passed, after warming up.

    Args:
        done: told how many seconds have passed, after each stretch.

    Raises:
        UnreadableError: a recording cannot be read.
        BadInputError: a stretch is too short to have a window.
    """
    told, passed_s, before = Watched(), 0.0, None
    began_s = time.process_time()
    for stretch in in_turn(chosen, seed=seed):
        watch = _opened(stretch, before, kb=kb)
        counts = passed_s >= WARM_UP_S
        if counts and not told.traces:
            told.firing = dict(Counter(each.fingerprint for each in watch.pipeline.episodes.open))
        with closing(watch):
            trace = _watched(watch, stretch, told, counts=counts)
        lasted_s = false_episodes((trace,), ()).watched_s
        if not lasted_s:
            raise BadInputError(f"{stretch.recording} has no healthy window")
        told.distinct_s[stretch.recording] = lasted_s
        before, passed_s = watch, passed_s + lasted_s
        told.cpu_s = time.process_time() - began_s
        done(round(passed_s))
        if passed_s >= WARM_UP_S + days * DAY_S:
            break
    return told


def _opened(stretch: Stretch, before: RecordedWatch | None, *, kb: str) -> RecordedWatch:
    """Return a watch that goes on where the one before ended, as after a restart."""
    knowledge: LoadedKnowledge | None = before.knowledge if before else None
    watch = RecordedWatch(str(stretch.recording), kb=kb, settings=EnsembleSettings(), trains=False, knowledge=knowledge)
    if before is not None:
        watch.continue_with(before.pipeline.ensemble)
        firing = [each for each in before.pipeline.episodes.open if each.state is EpisodeState.FIRING]
        watch.pipeline.episodes.restore(firing, watch.started_s)
    return watch


def _watched(watch: RecordedWatch, stretch: Stretch, told: Watched, *, counts: bool) -> Trace:
    """Let a stretch pass; what was said of it is kept where it counts."""
    seen, alarming, level = Seen(watch), False, None
    for outcome in watch.outcomes():
        seen.take(outcome)
        window = seen.windows[-1]
        if window.end_s > stretch.healthy.to_s:
            break
        for vote in outcome.judgement.verdict.votes:
            level = vote.threshold if vote.detector in watch.pipeline.ensemble.rule.members else level
        if counts and window.anomalous and not alarming:
            told.alarms.append((str(stretch.recording), window.end_s, _strongest(outcome)))
        alarming = window.anomalous
    trace = seen.trace(str(stretch.recording), (stretch.healthy,))
    if counts:
        told.traces.append(trace)
        told.levels += [] if level is None else [level]
    return trace


def _strongest(outcome: Outcome) -> tuple[str, ...]:
    return tuple(f"{share.feature} {share.sigma:+.1f}" for share in outcome.attribution.features[:3])


def report(found: Mapping[str, Watched], fingerprints: Sequence[str]) -> int:
    """Print the tables; return 0 where no workload has more than one false episode a day."""
    rows: list[tuple[object, ...]] = []
    fired: list[tuple[object, ...]] = []
    within = True
    for workload, each in found.items():
        alarms, episodes = false_alarms(each.traces), false_episodes(each.traces, fingerprints)
        within = within and (episodes.a_day or 0.0) <= 1.0
        recorded_s = sum(each.distinct_s.values())
        rows.append(
            (
                workload or "-", f"{recorded_s / 3600:.3g}", len(each.distinct_s), f"{episodes.watched_s / DAY_S:.3g}",
                _rate(a_day(alarms.count, alarms.watched_s)), _rate(episodes.a_day), _moved(each.levels),
                f"{each.cpu_s:.0f} s",
            )
        )  # fmt: skip
        if episodes.count or each.firing:
            fired.append((workload or "-", counted(episodes.by_fingerprint), counted(each.firing)))
    columns = (
        "workload", "recorded hours>", "stretches>", "days watched>", "false alarms a day>", "false episodes a day>",
        "alarm level", "CPU>",
    )  # fmt: skip
    draw.table(columns, rows, title="Healthy stretches watched again and again, after an hour that is not counted")
    if fired:
        draw.table(("workload", "fired, how often", "firing when counting began"), fired)
    if alarms_at := [(workload, *alarm) for workload, each in found.items() for alarm in each.alarms]:
        draw.table(("workload", "recording", "times>", "began at>", "strongest features, in sigma"), _where(alarms_at))
    draw.line(REPEATED)
    draw.line(f"{'at most one' if within else 'MORE than one'} false episode a day")
    return 0 if within else 1


def _where(alarms: Sequence[tuple[str, str, float, tuple[str, ...]]]) -> list[tuple[object, ...]]:
    """Return where alarms began: one that comes with each repetition is one row."""
    often = Counter((workload, recording) for workload, recording, _, _ in alarms)
    rows: list[tuple[object, ...]] = []
    for (workload, recording), times in often.most_common():
        own = [(at_s, told) for name, path, at_s, told in alarms if (name, path) == (workload, recording)]
        begun = sorted(at_s for at_s, _ in own)
        span = f"{begun[0]:.0f} s" if len(own) == 1 else f"{begun[0]:.0f} to {begun[-1]:.0f} s"
        rows.append((workload or "-", recording, times, span, ", ".join(own[-1][1])))
    return rows


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _moved(levels: Sequence[float]) -> str:
    if not levels:
        return "-"
    return f"{levels[0]:.2f}, {min(levels):.2f} to {max(levels):.2f}, {levels[-1]:.2f}"


def main(argv: Sequence[str] | None = None) -> int:
    """Watch from the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m unveil.benchmarks.days", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("recordings", type=Path, nargs="+", help="or folders of them, with their labels beside them")
    parser.add_argument("--days", type=float, default=DAYS, help=f"of each workload (default: {DAYS:g})")
    parser.add_argument("--seed", type=int, default=0, help="of the order (default: 0)")
    parser.add_argument("--lead-ins", action="store_true", help="also the healthy beginnings of other recordings")
    parser.add_argument("--kb", default="", metavar="DIR", help="knowledge base (default: the shipped one)")
    asked = parser.parse_args(argv)
    try:
        if not 0 < asked.days <= 365:
            raise BadInputError(f"{asked.days:g} is no number of days", hint="more than none, at most 365")
        known = [each.name for each in LoadedKnowledge(asked.kb, 0.0).current.fingerprints]
        chosen = stretches(recordings(asked.recordings), known=known, lead_ins=asked.lead_ins)
        found = {}
        for workload, own in chosen.items():
            what = f"seconds of {draw.plain(workload) or 'a workload'}"
            with draw.progress(what, total=WARM_UP_S + asked.days * DAY_S) as advance:
                found[workload] = watch_for(own, days=asked.days, seed=asked.seed, kb=asked.kb, done=advance)
    except UnveilError as error:
        return said(error, "days")
    return report(found, known)


if __name__ == "__main__":
    sys.exit(main())
