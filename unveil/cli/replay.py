"""`unveil replay`: run a recording through the same code as a live host."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from unveil.cli import connect, draw

if TYPE_CHECKING:
    import argparse

    from unveil.engine.pipeline import Outcome

DESCRIPTION = """Run a recording through the same code as a live host, and print what it would have said.

One line for each window that is anomalous, matches, or changes an episode (--all: for every window). Exit 1 when an
episode fired, 0 when none did."""
EXAMPLE = "unveil replay slow-node.parquet"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("file", metavar="FILE", help="a recording made by `unveil record`, or `demo`")
    parser.add_argument("--kb", default="", metavar="DIR", help="knowledge base (default: the shipped one)")
    parser.add_argument("--rule", metavar="RULE", help="which detectors decide, e.g. 'zscore|mahalanobis' or '2of3'")
    parser.add_argument("--all", action="store_true", help="print every window")
    connect.add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Replay, printing as it goes."""
    from unveil.cli.demo import recording_named
    from unveil.detection.ensemble import EnsembleSettings
    from unveil.engine.replaying import RecordedWatch
    from unveil.records.codec import encode

    settings = EnsembleSettings(rule=arguments.rule) if arguments.rule else None
    watch = RecordedWatch(recording_named(arguments.file), kb=arguments.kb, settings=settings)
    told: list[Any] = []
    states: Counter[str] = Counter()
    fired = 0
    try:
        for outcome in watch.outcomes():
            states[outcome.summary.verdict.state] += 1
            fired += sum(episode.state == "firing" for episode in outcome.changed)
            if arguments.json:
                told.append({"window": encode(outcome.summary), "episodes": encode(outcome.changed)})
            elif arguments.all or _notable(outcome):
                draw.line(describe(outcome), style=draw.COLOURS.get(outcome.summary.verdict.state, ""))
    finally:
        watch.close()
    if arguments.json:
        draw.print_json(told)
    else:
        counts = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
        windows = sum(states.values())
        told_of = f"{windows} windows: {counts}" if windows else "no window: one needs three whole seconds"
        draw.line(f"{told_of}; {draw.several(fired, 'episode')} fired")
    return 1 if fired else 0


def _notable(outcome: Outcome) -> bool:
    return bool(outcome.changed or outcome.matches or outcome.summary.verdict.state == "anomalous")


def describe(outcome: Outcome) -> str:
    """Return one line for a window: when, what the verdict was, what moved it, what matched."""
    summary = outcome.summary
    verdict = summary.verdict
    line = f"{draw.clock(summary.wall_s)} window {summary.index:>4} {verdict.state:9} severity {verdict.severity:5.2f}"
    top = summary.attribution.features[:3] if verdict.state == "anomalous" else ()
    words = [line, " ".join(f"{each.feature} {each.sigma:+.0f} sigma" for each in top)]
    words += [f"matches {match.fingerprint} on {draw.plain(match.entity)}" for match in outcome.matches]
    words += [f"episode {episode.id} {episode.state}" for episode in outcome.changed]
    return "; ".join(word for word in words if word)
