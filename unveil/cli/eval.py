"""`unveil eval`: how each combination of detectors does on labelled recordings."""

from __future__ import annotations

import os
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.cli import draw
from unveil.cli.demo import recording_named
from unveil.cli.kb_open import usable_knowledge
from unveil.cli.kb_recordings import recordings
from unveil.errors import UnwritableError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from unveil.knowledge.evaluation import DetectionScore

DESCRIPTION = """Watch labelled recordings once for each combination of detectors, and compare: precision, recall and F1
over windows, false alarms a day, time to the first alarm, the recall of each fault, and the four figures of the
paper's Table 2 (hit rate, coverage, agreement, healthy contamination). Thresholds are never taken from what is
judged: each window is held against what the host did before it. A recording of minutes is a short past: give longer
healthy ones of the same host with --history, and they are watched before each.

Beside RUN.parquet stands RUN.labels.yml, as for `unveil kb backtest`."""
EXAMPLE = "unveil eval recordings/*.parquet --markdown evaluation.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("recordings", nargs="+", metavar="RECORDING",
                        help="made by `unveil record`, a folder of them, or `demo`")  # fmt: skip
    parser.add_argument("--kb", metavar="DIR", help="knowledge base (default: the shipped one)")
    parser.add_argument(
        "--rule", action="append", metavar="RULE",
        help="a combination, e.g. 'zscore|mahalanobis' or 2of3; may be repeated (default: each, and the paper's)",
    )  # fmt: skip
    parser.add_argument(
        "--false-alarms-per-day", action="append", type=_rate, metavar="N",
        help="that the thresholds are set for; may be given several times (default: 24)",
    )  # fmt: skip
    parser.add_argument(
        "--history", action="append", metavar="RECORDING",
        help="watch this one before each, without scoring it; may be given several times, oldest first",
    )  # fmt: skip
    parser.add_argument("--jobs", type=int, choices=range(1, 1025), default=os.cpu_count() or 1, metavar="N",
                        help="processes (default: one a CPU)")  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="of the models (default: 0, so two runs agree)")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write the tables there")
    parser.add_argument("--html", type=Path, metavar="FILE", help="also write a page with tables and figures there")
    parser.add_argument("--json", action="store_true", help="print the result for a machine")


def _rate(text: str) -> float:
    from argparse import ArgumentTypeError

    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 86_400:
        raise ArgumentTypeError(f"{text!r} is no number of false alarms a day")
    return value


def run(arguments: argparse.Namespace) -> int:
    """Watch, score, print."""
    from unveil.detection.catalogue import DETECTORS
    from unveil.detection.rule import parse_rule
    from unveil.engine.backtesting import Job, watch_all
    from unveil.knowledge.evaluation import score
    from unveil.records.codec import encode

    for wanted in filter(None, (arguments.markdown, arguments.html)):  # before minutes are spent
        if wanted.is_dir() or not wanted.parent.is_dir():
            raise UnwritableError(f"{wanted} cannot be written", hint="name a file in a folder that is there")
    known = tuple(kind.name for kind in DETECTORS)
    rules = [parse_rule(text, known).text for text in arguments.rule or _every(known)]
    rates = arguments.false_alarms_per_day or [24.0]
    names = [fingerprint.name for fingerprint in usable_knowledge(arguments.kb).fingerprints]
    paths = recordings(arguments.recordings)
    asked = [(rule, rate) for rate in rates for rule in rules]
    jobs = [
        Job(
            recording=recording,
            kb=arguments.kb or "",
            rule=rule,
            seed=arguments.seed,
            false_alarms_per_day=rate,
            history=tuple(map(recording_named, arguments.history or ())),
        )
        for rule, rate in asked
        for recording in paths
    ]
    with draw.progress("watching recordings", total=len(jobs), quiet=arguments.json) as advance:
        traces = watch_all(jobs, processes=arguments.jobs, done=advance)
    each = len(paths)
    groups = [traces[at : at + each] for at in range(0, len(traces), each)]
    scores = [score(rule, rate, group, names) for (rule, rate), group in zip(asked, groups, strict=True)]
    if arguments.json:
        draw.print_json({"recordings": [trace.recording for trace in traces[:each]], "scores": encode(scores)})
    else:
        for title, columns, rows in tables(scores):
            draw.table(columns, rows, title=title)
    from unveil.cli import eval_report

    if arguments.markdown:
        arguments.markdown.write_text(eval_report.markdown(tables(scores), traces[:each]), encoding="utf-8")
    if arguments.html:
        arguments.html.write_text(eval_report.html(tables(scores), scores, groups), encoding="utf-8")
    return 0


PAPERS = 3  # detectors of the paper; they come first


def _every(known: tuple[str, ...]) -> list[str]:
    """Return each detector, and each OR and each *k of n* of the paper's."""
    papers = known[:PAPERS]
    ors = ["|".join(chosen) for size in range(2, PAPERS + 1) for chosen in combinations(papers, size)]
    return [*known, *ors, *(f"{needed}of{PAPERS}" for needed in range(2, PAPERS + 1))]


Table = tuple[str, tuple[str, ...], list[tuple[object, ...]]]


def tables(scores: Sequence[DetectionScore]) -> list[Table]:
    """Return what is shown, as title, columns (``>`` on the right) and rows."""
    rated = len({each.allowed for each in scores}) > 1  # else the rate is in none of the names
    found: list[Table] = [
        (
            "Detection: windows in the time of a fault against those in healthy time",
            ("rule", "F1>", "95 %>", "precision>", "recall>", "false>", "false a day (95 %)>", "first>", "faults>"),
            [
                (
                    _name(each, rated=rated), _number(each.counts.f1), _interval(each), _share(each.counts.precision),
                    _share(each.counts.recall), _share(each.counts.false_share), _a_day(each),
                    "-" if each.first_s is None else f"{each.first_s:.1f} s", f"{each.seen} of {each.faults}",
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
    found.append(_each_recording(scores, rated=rated))
    return found


def _each_recording(scores: Sequence[DetectionScore], *, rated: bool) -> Table:
    rows: list[tuple[object, ...]] = []
    for recording in scores[0].by_recording if scores else ():
        counts = [each.by_recording[recording] for each in scores]
        told = (f"{_share(each.recall)} / {_share(each.false_share)}" for each in counts)
        rows.append((recording, counts[0].found + counts[0].missed, counts[0].false + counts[0].quiet, *told))
    columns = ("recording", "faulty>", "healthy>", *(f"{_name(each, rated=rated)}>" for each in scores))
    return "Each recording: windows, faulty ones found / healthy ones that alarmed", columns, rows


def _name(score: DetectionScore, *, rated: bool) -> str:
    return f"{score.rule} @ {score.allowed:g} a day" if rated else score.rule


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _interval(score: DetectionScore) -> str:
    return "-" if score.f1_low is None else f"{score.f1_low:.2f} to {score.f1_high:.2f}"


def _a_day(score: DetectionScore) -> str:
    if score.false_a_day is None:
        return "-"
    return f"{score.false_a_day:.3g} ({score.false_low:.2g} to {score.false_high:.2g})"
