"""What `unveil eval` shows: its tables, as title, columns (``>`` on the right) and rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.knowledge.evaluation import AFTER, AFTER_INERT, PLACES, Counts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from unveil.knowledge.comparison import AtShare, Named, Standing
    from unveil.knowledge.evaluation import DetectionScore

HOUR_S = 3600.0
Table = tuple[str, tuple[str, ...], list[tuple[object, ...]]]


def score_tables(scores: Sequence[DetectionScore], workloads: Mapping[str, str]) -> list[Table]:
    """Return the tables of what each combination did as a watcher.

    Args:
        workloads: recording → what ran.
    """
    rated = len({each.allowed for each in scores}) > 1  # else the rate is in none of the names
    found: list[Table] = [
        (
            "Detection: windows in the time of a fault against those in healthy time",
            (
                "rule", "F1>", "95 %>", "precision>", "recall>", "false>", "false alarms a day (95 %)>", "first>",
                "faults>",
            ),
            [
                (
                    _name(each, rated=rated), _number(each.counts.f1), _interval(each.f1_low, each.f1_high),
                    _share(each.counts.precision), _share(each.counts.recall), _share(each.counts.false_share),
                    _a_day(each), "-" if each.first_s is None else f"{each.first_s:.1f} s",
                    f"{each.seen} of {each.faults}",
                )
                for each in scores
            ],
        ),
        (
            "Table 2 of the paper: what was detected (D) and what a fingerprint matched (S)",
            ("rule", "hit rate>", "coverage>", "agreement>", "contamination>"),
            [
                (
                    _name(each, rated=rated),
                    *map(_share, (each.hit_rate, each.coverage, each.agreement, each.contamination)),
                )
                for each in scores
            ],
        ),
    ]  # fmt: skip
    labels = sorted({label for each in scores for label in each.by_label})
    if labels:
        rows: list[tuple[object, ...]] = [
            (_name(each, rated=rated), *(_share(each.by_label[label].recall) for label in labels)) for each in scores
        ]
        found.append(("Recall of each fault", ("rule", *(f"{label}>" for label in labels)), rows))
        rows = [
            (_name(each, rated=rated), *(_seconds(each.first_by_label[label]) for label in labels)) for each in scores
        ]
        found.append(("Time to the first alarm of each fault", ("rule", *(f"{label}>" for label in labels)), rows))
    found.append(_each_place(scores, rated=rated))
    found.append(_false_alarms(scores, rated=rated))
    found.append(_false_episodes(scores, rated=rated))
    found += [_each_match(each, _name(each, rated=rated)) for each in scores[:1]]  # S is the same for all of them
    found += _each_workload(scores, workloads, rated=rated)
    found.append(_each_recording(scores, rated=rated))
    return found


def _each_place(scores: Sequence[DetectionScore], *, rated: bool) -> Table:
    places = [place for place in PLACES if any(_healthy(each.false_by_place[place]) for each in scores)]
    rows: list[tuple[object, ...]] = [
        (
            _name(each, rated=rated),
            *(f"{own.false} of {_healthy(own)}" for own in (each.false_by_place[place] for place in places)),
        )
        for each in scores
    ]
    return "Healthy windows that alarmed, by where they are", ("rule", *(f"{place}>" for place in places)), rows


def _false_alarms(scores: Sequence[DetectionScore], *, rated: bool) -> Table:
    rows: list[tuple[object, ...]] = [
        (
            _name(each, rated=rated), f"{own.watched_s / HOUR_S:.3g}", own.count,
            own.by_place[AFTER], own.by_place[AFTER_INERT], _few(each.false_a_day), _few(each.false_most),
        )
        for each in scores
        for own in (each.false_alarms,)
    ]  # fmt: skip
    columns = (
        "rule",
        "hours>",
        "false alarms>",
        "of which outlast a fault>",
        "an inert one>",
        "a day>",
        "at most (95 %)>",
    )
    return "False alarms: runs of anomalous windows in the healthy hours that were judged", columns, rows


def _false_episodes(scores: Sequence[DetectionScore], *, rated: bool) -> Table:
    rows: list[tuple[object, ...]] = [
        (
            _name(each, rated=rated), f"{own.watched_s / HOUR_S:.3g}", own.count, _few(own.a_day), _few(own.most),
            counted(own.by_fingerprint), counted(own.outlasting),
        )
        for each in scores
        for own in (each.false_episodes,)
    ]  # fmt: skip
    columns = ("rule", "hours>", "false episodes>", "a day>", "at most (95 %)>", "of", "began in a fault")
    return "False episodes: fingerprints that fired in the healthy hours that were watched", columns, rows


def counted(by_name: Mapping[str, int]) -> str:
    """Return names with how many each has, the most first."""
    order = sorted(by_name.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{name} {count}" for name, count in order) or "-"


def _few(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _healthy(counts: Counts) -> int:
    return counts.false + counts.quiet


def _each_match(score: DetectionScore, name: str) -> Table:
    rows: list[tuple[object, ...]] = []
    for label, each in score.matched.items():
        rows.append((label, each.windows, each.detected, each.matched, each.both, counted(each.by_fingerprint)))
    columns = ("in the time of", "windows>", "D>", "S>", "both>", "matched by, in how many windows")
    return f"What matched (S), beside what {name} detected (D)", columns, rows


def _each_workload(scores: Sequence[DetectionScore], workloads: Mapping[str, str], *, rated: bool) -> list[Table]:
    """Return F1 and false alarms by workload; nothing where there is only one."""
    names = sorted({workload for workload in workloads.values() if workload})
    if len(names) < 2:
        return []
    rows: list[tuple[object, ...]] = []
    for each in scores:
        own = {
            name: sum((c for recording, c in each.by_recording.items() if workloads.get(recording) == name), Counts())
            for name in names
        }
        told = (f"{_number(counts.f1)} / {_share(counts.false_share)}" for counts in own.values())
        rows.append((_name(each, rated=rated), *told))
    columns = ("rule", *(f"{name}>" for name in names))
    return [("Each workload: F1 / healthy windows that alarmed", columns, rows)]


def _each_recording(scores: Sequence[DetectionScore], *, rated: bool) -> Table:
    rows: list[tuple[object, ...]] = []
    for recording in scores[0].by_recording if scores else ():
        counts = [each.by_recording[recording] for each in scores]
        told = (f"{_share(each.recall)} / {_share(each.false_share)}" for each in counts)
        rows.append((recording, counts[0].found + counts[0].missed, counts[0].false + counts[0].quiet, *told))
    columns = ("recording", "faulty>", "healthy>", *(f"{_name(each, rated=rated)}>" for each in scores))
    return "Each recording: windows, faulty ones found / healthy ones that alarmed", columns, rows


def compared_tables(standings: Sequence[Standing], named: Sequence[Named], *, ours: str, view: str = "") -> list[Table]:
    """Return the tables of all detectors against one past; their titles tell the view unless it is the host's own."""
    found = [*comparison_tables(standings, ours=ours), naming_table(named, ours=ours)]
    return [(f"{title}, {view}" if view else title, columns, rows) for title, columns, rows in found]


def comparison_tables(standings: Sequence[Standing], *, ours: str) -> list[Table]:
    """Return the tables of all detectors at equal shares of false alarms."""
    if not standings:
        return []
    shares = [each.share for each in standings[0].at]
    main = max(len(shares) - 2, 0)
    columns = (
        "detectors", *(f"F1 at {share:.1%} (95 %)>" for share in shares), f"{ours} less this, at {shares[main]:.1%}>",
        "calibrated: F1>", "false>", "µs a window>",
    )  # fmt: skip
    rows: list[tuple[object, ...]] = [
        (
            each.combination, *(_at(at) for at in each.at), _behind(each.at[main], own=each.combination == ours),
            _number(each.calibrated.f1), _share(each.calibrated.false_share),
            "-" if each.cost_us is None else f"{each.cost_us:,.0f}",
        )
        for each in standings
    ]  # fmt: skip
    found: list[Table] = [("All detectors held against one past, at equal shares of false alarms", columns, rows)]
    precise: list[tuple[object, ...]] = [
        (each.combination, *(f"{_share(at.counts.precision)} / {_share(at.counts.recall)}" for at in each.at))
        for each in standings
    ]
    found.append(("Precision / recall at these shares", ("detectors", *(f"{s:.1%}>" for s in shares)), precise))
    workloads = [name for name in standings[0].by_workload if name]
    if len(workloads) > 1:
        told: list[tuple[object, ...]] = [
            (
                each.combination,
                *(f"{_number(c.f1)} / {_share(c.false_share)}" for c in (each.by_workload[name] for name in workloads)),
            )
            for each in standings
        ]
        title = f"The same for each workload: F1 / false alarms, at the threshold that is {shares[main]:.1%} over all"
        found.append((title, ("detectors", *(f"{name}>" for name in workloads)), told))
    return found


def naming_table(named: Sequence[Named], *, ours: str) -> Table:
    """Return which subsystem the detected windows of each fault name first."""
    rows: list[tuple[object, ...]] = []
    for each in named:
        order = sorted(each.first.items(), key=lambda pair: -pair[1])
        told = ", ".join(f"{name} {count / each.windows:.0%}" for name, count in order) or "-"
        rows.append((each.label, each.right or "-", each.windows, _share(each.right_share), told))
    columns = ("fault", "belongs to", "detected windows>", "that name it first>", "named first")
    return f"Attribution by {ours}: the subsystem with the largest share", columns, rows


def _at(at: AtShare) -> str:
    interval = _interval(at.f1_low, at.f1_high)
    return _number(at.counts.f1) if interval == "-" else f"{_number(at.counts.f1)} ({interval})"


def _behind(at: AtShare, *, own: bool) -> str:
    if own:
        return ""
    return "-" if at.behind_low is None else f"{at.behind_low:+.2f} to {at.behind_high:+.2f}"


def _name(score: DetectionScore, *, rated: bool) -> str:
    return f"{score.label} @ {score.allowed:g} a day" if rated else score.label


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} s"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _interval(low: float | None, high: float | None) -> str:
    return "-" if low is None or high is None else f"{low:.2f} to {high:.2f}"


def _a_day(score: DetectionScore) -> str:
    if score.false_a_day is None:
        return "-"
    return f"{score.false_a_day:.3g} ({score.false_low:.2g} to {score.false_high:.2g})"
