"""`unveil eval`: how each combination of detectors does on labelled recordings."""

from __future__ import annotations

import os
import sys
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.cli import draw
from unveil.cli.demo import recording_named
from unveil.cli.kb_open import usable_knowledge
from unveil.cli.kb_recordings import recordings
from unveil.errors import BadInputError, UnreadableError, UnwritableError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from unveil.engine.backtesting import Job
    from unveil.engine.views import View
    from unveil.knowledge.comparison import Combination

DESCRIPTION = """Watch labelled recordings once for each combination of detectors, and compare: precision, recall and F1
over windows, false alarms a day, time to the first alarm, the recall of each fault, and the four figures of the
paper's Table 2 (hit rate, coverage, agreement, healthy contamination). Thresholds are never taken from what is
judged: each window is held against what the host did before it. A recording of minutes is a short past: give longer
healthy ones of the same host with --history, and they are watched before each that has their workload.

Then all detectors are held against one and the same past and compared at equal shares of false alarms, with the cost
of a window; --peers has other people's in it, too. docs/DETECTION.md has the definitions.

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
        "--at", action="append", type=_share, metavar="SHARE",
        help="share of healthy windows that may alarm when detectors are compared (default: 0.005, 0.01 and 0.02)",
    )  # fmt: skip
    parser.add_argument(
        "--history", action="append", metavar="RECORDING",
        help="watch this one before each, without scoring it; may be given several times, oldest first",
    )  # fmt: skip
    parser.add_argument(
        "--view", action="append", choices=("all", "host", "guest"),
        help="from where recordings are looked at: host leaves out what a hypervisor does not see of a guest, guest "
        "has the cgroup that it would run in; may be given several times (default: all)",
    )  # fmt: skip
    parser.add_argument("--peers", action="store_true",
                        help="also PyOD's ECOD, COPOD, HBOS, LOF and autoencoder, and a VAE after Prodigy")  # fmt: skip
    parser.add_argument("--jobs", type=int, choices=range(1, 1025), default=os.cpu_count() or 1, metavar="N",
                        help="processes (default: one a CPU)")  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="of the models (default: 0, so two runs agree)")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write the tables there")
    parser.add_argument("--html", type=Path, metavar="FILE", help="also write a page with tables and figures there")
    parser.add_argument("--json", action="store_true", help="print the result for a machine")


def _rate(text: str) -> float:
    return _between(text, 86_400, "number of false alarms a day")


def _share(text: str) -> float:
    return _between(text, 0.5, "share of healthy windows")


def _between(text: str, most: float, what: str) -> float:
    from argparse import ArgumentTypeError

    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= most:
        raise ArgumentTypeError(f"{text!r} is no {what}")
    return value


def run(arguments: argparse.Namespace) -> int:
    """Watch, score, print."""
    from unveil.cli import eval_report, eval_tables
    from unveil.detection.catalogue import DETECTORS
    from unveil.detection.rule import DEFAULT_RULE, parse_rule
    from unveil.engine.backtesting import watch_all
    from unveil.engine.comparing import ComparingJob, compare_all
    from unveil.engine.views import View
    from unveil.knowledge.comparison import named, standings
    from unveil.knowledge.evaluation import score
    from unveil.records.codec import encode

    _writable(arguments.markdown, arguments.html)  # before minutes are spent
    known = tuple(kind.name for kind in DETECTORS)
    rules = [parse_rule(text, known).text for text in arguments.rule or every_rule(known)]
    rates = arguments.false_alarms_per_day or [24.0]
    views = [View(name) for name in dict.fromkeys(arguments.view or (View.ALL,))]
    fingerprints = [fingerprint.name for fingerprint in usable_knowledge(arguments.kb).fingerprints]
    others = _peers() if arguments.peers else ()
    plain = _jobs(arguments)
    asked = [(view, rule, rate) for view in views for rate in rates for rule in rules]
    jobs = [_by(job, *each) for each in asked for job in plain]
    with draw.progress("watching recordings", total=len(jobs), quiet=arguments.json) as advance:
        traces = watch_all(jobs, processes=arguments.jobs, done=advance)
    comparing = [ComparingJob(watched=_by(job, v, "", rates[0]), peers=bool(others)) for v in views for job in plain]
    with draw.progress("comparing detectors", total=len(comparing), quiet=arguments.json) as advance:
        runs = compare_all(comparing, processes=arguments.jobs, done=advance)
    each = len(plain)
    groups = [traces[at : at + each] for at in range(0, len(traces), each)]
    scores = [
        score(rule, rate, group, fingerprints, view=view.told)
        for (view, rule, rate), group in zip(asked, groups, strict=True)
    ]
    chosen = combinations_of(DEFAULT_RULE, rules, known, others)
    compared = []
    for number, view in enumerate(views):
        seen = runs[number * each : (number + 1) * each]
        stood = standings(seen, chosen, arguments.at or [0.005, 0.01, 0.02], ours=DEFAULT_RULE)
        compared.append((view.told, seen, stood, named(seen, chosen[0])))
    tables = eval_tables.score_tables(scores, {each.recording: each.workload for each in runs})
    for told, _, stood, attributed in compared:
        tables += eval_tables.compared_tables(stood, attributed, ours=DEFAULT_RULE, view=told)
    if arguments.json:
        answers = [{"comparison": encode(stood), "attribution": encode(told)} for _, _, stood, told in compared]
        more = {"views": dict(zip(views[1:], answers[1:], strict=True))} if views[1:] else {}
        recorded = [trace.recording for trace in traces[:each]]
        draw.print_json({"recordings": recorded, "scores": encode(scores), **answers[0], **more})
    else:
        for title, columns, rows in tables:
            draw.table(columns, rows, title=title)
    if arguments.markdown:
        arguments.markdown.write_text(eval_report.markdown(tables, traces[:each]), encoding="utf-8")
    if arguments.html:
        _, seen, stood, attributed = compared[0]  # figures are of the first view; the tables have all
        page = eval_report.html(tables, scores, groups, seen, (chosen, stood, attributed))
        arguments.html.write_text(page, encoding="utf-8")
    return 0


def _writable(*wanted: Path | None) -> None:
    for path in filter(None, wanted):
        if path.is_dir() or not path.parent.is_dir():
            raise UnwritableError(f"{path} cannot be written", hint="name a file in a folder that is there")


def _jobs(arguments: argparse.Namespace) -> list[Job]:
    """Return each recording with its history: those of its own workload, and those that name none.

    Raises:
        BadInputError: a recording is its own history.
    """
    from unveil.engine.backtesting import Job
    from unveil.knowledge.labels import labels_beside, read_workload

    def workload(path: str) -> str:
        labels = labels_beside(Path(path))
        return "" if labels is None else read_workload(labels)

    history = [(path, workload(path)) for path in map(recording_named, arguments.history or ())]
    jobs = []
    for path in recordings(arguments.recordings):
        if any(Path(path).resolve() == Path(past).resolve() for past, _ in history):
            raise BadInputError(f"{path} is its own history", hint="what is scored must not have been seen before")
        own = workload(path)
        past = tuple(each for each, theirs in history if theirs in ("", own) or not own)
        jobs.append(Job(recording=path, kb=arguments.kb or "", seed=arguments.seed, history=past))
    return jobs


def _by(job: Job, view: View, rule: str, rate: float) -> Job:
    from dataclasses import replace

    return replace(job, view=view, rule=rule, false_alarms_per_day=rate)


def _peers() -> tuple[str, ...]:
    """Return the names of the peers that are here; say which are not.

    Raises:
        UnreadableError: none is.
    """
    from unveil.engine.peers import HINT, peers

    found, absent = peers()
    if not found:
        raise UnreadableError("other people's detectors are not installed", hint=HINT)
    for name, reason in absent.items():
        print(f"{name} is left out: {reason} ({HINT})", file=sys.stderr)
    return tuple(kind.name for kind in found)


def combinations_of(
    ours: str, rules: Sequence[str], known: tuple[str, ...], others: Sequence[str]
) -> list[Combination]:
    """Return what is compared: ours first, then what was asked for, then other people's."""
    from unveil.detection.rule import parse_rule
    from unveil.knowledge.comparison import Combination

    parsed = (parse_rule(text, known) for text in dict.fromkeys((ours, *rules)))
    return [
        *(Combination(name=rule.text, members=rule.members, needed=rule.needed) for rule in parsed),
        *(Combination(name=name, members=(name,)) for name in others),
    ]


PAPERS = 3  # detectors of the paper; they come first


def every_rule(known: tuple[str, ...]) -> list[str]:
    """Return each detector, and each OR and each *k of n* of the paper's."""
    papers = known[:PAPERS]
    ors = ["|".join(chosen) for size in range(2, PAPERS + 1) for chosen in combinations(papers, size)]
    return [*known, *ors, *(f"{needed}of{PAPERS}" for needed in range(2, PAPERS + 1))]
