"""`unveil kb tune`: what another threshold of one clause would find, and what it would cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from unveil.cli import draw, kb_recordings
from unveil.cli.kb_open import unknown_fingerprint, usable_knowledge
from unveil.errors import BadInputError, RefusedError, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from unveil.knowledge.backtest import Score
    from unveil.records.fingerprint import Clause, Fingerprint

DESCRIPTION = """Watch recordings with a row of thresholds for one clause, and draw for each what the fingerprint would
find, how soon, and how often it would be wrong; suggest one with room on both sides. Nothing is written without
--write, and then only the number, and only when the file still lints."""
EXAMPLE = "unveil kb tune reduced_huge_page_coverage uncovered --recordings recordings/"
BAR = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("fingerprint", metavar="FINGERPRINT", help="its name")
    parser.add_argument("clause", metavar="CLAUSE", help="one that compares with a number")
    kb_recordings.add_recordings(parser)
    parser.add_argument(
        "--values", type=_values, metavar="A,B,C", help="thresholds to try (default: around the own one)"
    )
    parser.add_argument("--write", action="store_true", help="write the suggestion into the file")


def _values(text: str) -> tuple[float, ...]:
    from argparse import ArgumentTypeError
    from math import isfinite

    try:
        values = sorted({float(part) for part in text.split(",")})
    except ValueError:
        values = []
    if not values or not all(map(isfinite, values)) or len(values) > 100:
        raise ArgumentTypeError(f"{text!r} is no list of numbers, like 0.1,0.2,0.5")
    return tuple(values)


def run(arguments: argparse.Namespace) -> int:
    """Try, draw, suggest, and write when asked to."""
    from unveil.engine.backtesting import Job
    from unveil.knowledge.backtest import report
    from unveil.knowledge.tuning import candidates, clause_of, suggest, threshold_of, variant_name
    from unveil.records.codec import encode

    knowledge = usable_knowledge(arguments.kb)
    fingerprint = knowledge.fingerprint(arguments.fingerprint)
    if fingerprint is None:
        raise unknown_fingerprint(arguments.fingerprint, (each.name for each in knowledge.fingerprints))
    clause = clause_of(fingerprint, arguments.clause)
    own = threshold_of(clause)
    values = candidates(clause) if arguments.values is None else tuple(sorted({*arguments.values, own}))
    paths = kb_recordings.labelled(arguments.recordings)
    if not paths:
        raise BadInputError(
            "none of these recordings has labels", hint="RUN.labels.yml beside RUN.parquet says what was so when"
        )
    tuned = (fingerprint.name, clause.name, values)
    jobs = [Job(recording=path, kb=arguments.kb or "", tuned=tuned) for path in paths]
    names = [variant_name(fingerprint.name, number) for number in range(len(values))]
    scores = report(kb_recordings.watch(jobs, arguments), names).scores[:-1]
    value, why = suggest(values, scores, own)
    if arguments.json:
        rows = [{**encode(score), "fingerprint": fingerprint.name, "threshold": each}
                for each, score in zip(values, scores, strict=True)]  # fmt: skip
        draw.print_json({"own": own, "suggested": value, "why": why, "tried": rows})
    else:
        _draw(values, scores, own, value)
        told = "no suggestion" if value is None else f"suggested: {value:g} (now {own:g})"
        draw.line(f"{told}: {why}", style="bold")
    if arguments.write and value is not None and value != own:
        path = _write(fingerprint, clause, value, arguments.kb)
        if not arguments.json:
            draw.line(f"{path} is written; next: `unveil kb test {fingerprint.name}`, then `unveil kb diff`")
    return 0


def _draw(values: Sequence[float], scores: Sequence[Score], own: float, suggested: float | None) -> None:
    """Draw one line a threshold: what is found to the right, what is false beside it."""
    most = max(1, *(score.false_fires + score.other_fires for score in scores))
    rows = []
    for value, score in zip(values, scores, strict=True):
        wrong = score.false_fires + score.other_fires
        found = score.found / score.intervals if score.intervals else 0.0
        mark = "own" if value == own else ""
        rows.append(
            (
                f"{value:g}",
                f"{mark}{'  <- suggested' if value == suggested else ''}".strip(),
                f"{score.found} of {score.intervals}" if score.intervals else "-",
                "-" if score.first_median_s is None else f"{score.first_median_s:.1f} s",
                "-" if score.coverage is None else f"{score.coverage:.0%}",
                wrong,
                "█" * round(found * BAR) + "░" * (BAR - round(found * BAR)),
                "▒" * round(wrong / most * BAR) if wrong else "",
            )
        )
    draw.table(("threshold>", "", "found>", "first>", "covers>", "wrong>", "found ", "wrong "), rows)


def _write(fingerprint: Fingerprint, clause: Clause, value: float, kb: str | None) -> Path:
    """Write another threshold, or nothing when the file would not lint with it."""
    from unveil.knowledge.linting import lint
    from unveil.knowledge.tuning import rewritten
    from unveil.knowledge.yaml_positions import read_yaml
    from unveil.records.problem import Gravity

    if kb is None:
        raise UsageError("--write needs --kb", hint="the shipped knowledge base is replaced with the package")
    path = (Path(kb) / fingerprint.path).resolve()
    before = path.read_bytes()
    text = rewritten(read_yaml(str(path), before), before.decode(), clause, value)
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(text, encoding="utf-8")
    fresh.chmod(path.stat().st_mode)
    fresh.replace(path)
    errors = [each for each in lint(kb, [path]) if each.gravity is Gravity.ERROR]
    if errors:
        path.write_bytes(before)
        raise RefusedError(f"it was put back, it would not lint: {errors[0]}")
    return path
