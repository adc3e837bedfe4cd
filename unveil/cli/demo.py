"""`unveil demo`: the whole journey on a recording that comes with unveil."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unveil.cli import connect, draw
from unveil.cli.explain import draw_match
from unveil.cli.replay import describe
from unveil.cli.run_story import draw_plan

if TYPE_CHECKING:
    import argparse

    from unveil.engine.pipeline import Outcome
    from unveil.engine.replaying import RecordedWatch

DESCRIPTION = """Show the whole journey on a recording of a real host and a real fault, without touching this one:
windows, the first anomalous one with what moved it, the fingerprint that matched with its clauses and values, and the
plan with what it would change."""
EXAMPLE = "unveil demo"
BARS = " ▁▂▃▄▅▆▇█"
WIDTH = 76


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    connect.add_json(parser)


def recording() -> str:
    """Return the path of the recording that is shipped."""
    return str(resources.files("unveil.demo") / "recording.parquet")


def recording_named(name: str) -> str:
    """Return the path of a recording; ``demo``, unless a file is called so, is the one that is shipped."""
    return recording() if name == "demo" and not Path(name).exists() else name


def run(arguments: argparse.Namespace) -> int:
    """Replay the shipped recording and tell its story."""
    from unveil.engine.replaying import RecordedWatch

    watch = RecordedWatch(recording())
    try:
        story = _tell(watch, quiet=arguments.json)
    finally:
        watch.close()
    if arguments.json:
        draw.print_json(story)
    return 0


def _tell(watch: RecordedWatch, *, quiet: bool) -> dict[str, Any]:
    from unveil.records.codec import encode

    if not quiet:
        draw.line("1. A recording of a real host", style="bold")
        draw.line(f"   {draw.plain(watch.metadata.get('note', ''), 400)}\n")
    outcomes: list[Outcome] = []
    anomalous: Outcome | None = None
    episode: dict[str, Any] | None = None
    planned: dict[str, Any] | None = None
    with draw.progress("judging windows", total=None, quiet=quiet) as advance:
        for outcome in watch.outcomes():
            outcomes.append(outcome)
            advance(len(outcomes))
            if anomalous is None and outcome.summary.verdict.state == "anomalous":
                anomalous = outcome
            fired = next((each for each in outcome.changed if each.state == "firing"), None)
            if planned is None and fired is not None:
                episode = encode(fired)
                planned = watch.call("plan", episode=fired.id)
    if not quiet:
        _draw_windows(outcomes)
        _draw_anomaly(anomalous)
        _draw_match(episode)
        _draw_plan(planned)
    return {
        "windows": [encode(outcome.summary) for outcome in outcomes],
        "first_anomalous": None if anomalous is None else encode(anomalous.summary),
        "episode": episode,
        "plan": planned,
    }


def _draw_windows(outcomes: list[Outcome]) -> None:
    severities = [outcome.summary.verdict.severity for outcome in outcomes]
    top = max(severities, default=0.0) or 1.0
    traces = {"severity": "", "anomalous": "", "matches": ""}
    step = max(1, -(-len(outcomes) // WIDTH))
    for begin in range(0, len(outcomes), step):
        chunk = outcomes[begin : begin + step]
        level = max(outcome.summary.verdict.severity for outcome in chunk)
        traces["severity"] += BARS[round(level / top * (len(BARS) - 1))]
        states = {outcome.summary.verdict.state for outcome in chunk}
        traces["anomalous"] += "!" if "anomalous" in states else "·" if "normal" in states else " "
        traces["matches"] += "M" if any(outcome.matches for outcome in chunk) else "·"
    draw.line(f"   {len(outcomes)} windows of 3 s, one each second (blank: still learning what is normal here)")
    for name, trace in traces.items():
        draw.line(f"   {name:9} {trace}", style="yellow" if name == "anomalous" else "")


def _draw_anomaly(anomalous: Outcome | None) -> None:
    draw.line("\n2. The first window that is unlike this host's own past", style="bold")
    if anomalous is None:
        draw.line("   none")
        return
    summary = anomalous.summary
    draw.line(f"   {describe(anomalous).split(';')[0]}")
    votes = ", ".join(
        f"{vote.detector} {vote.score:.2f} {'>' if vote.anomalous else '<='} {vote.threshold:.2f}"
        for vote in summary.verdict.votes
    )
    draw.line(f"   detectors: {votes} (rule {summary.verdict.rule})")
    shares = sorted(summary.attribution.subsystems.items(), key=lambda item: -item[1])
    draw.line("   subsystems: " + ", ".join(f"{name} {share:.0%}" for name, share in shares if share >= 0.005))
    draw.table(
        ("top factor", "share>", "value>", "expected>", "sigmas>"),
        (
            (
                str(each.feature),
                f"{each.share:.1%}",
                draw.quantity(each.value),
                draw.quantity(each.expected),
                f"{each.sigma:+.1f}",
            )
            for each in summary.attribution.features[:6]
        ),
    )


def _draw_match(episode: dict[str, Any] | None) -> None:
    draw.line("3. The fingerprint that explains it", style="bold")
    if episode is None:
        draw.line("   none")
        return
    draw_match(episode["last"])


def _draw_plan(planned: dict[str, Any] | None) -> None:
    draw.line("4. What would be done about it; on a live host: verified by effect, or undone", style="bold")
    if planned is None:
        draw.line("   nothing")
        return
    draw_plan(planned)
    draw.line("\nNothing was changed. Next: `unveil doctor`, then `unveil watch` and `unveil tui` on this host.")
