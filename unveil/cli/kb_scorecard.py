"""`unveil kb scorecard`: how far each fingerprint is proven."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unveil.cli import connect, draw, kb_recordings
from unveil.cli.kb_open import unknown_fingerprint
from unveil.errors import UnreadableError, WatcherAbsentError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from unveil.knowledge.scorecard import Card
    from unveil.knowledge.testing import Suite
    from unveil.records.fingerprint import Fingerprint

DESCRIPTION = """One line a fingerprint: its status, its cases and the share of mutants that they notice, what labelled
recordings say of it, what people marked in this host's journal, its look-alikes, references and fixes; and what keeps
it from being called stable. Exit 1 when one is called stable that lacks something, or a case fails."""
EXAMPLE = "unveil kb scorecard --kb . --recordings recordings/"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("names", nargs="*", metavar="FINGERPRINT", help="only these")
    kb_recordings.add_recordings(parser)
    parser.add_argument("--no-recordings", action="store_true", help="watch no recording")
    parser.add_argument("--no-mutants", action="store_true", help="make no mutants")
    connect.add_state_dir(parser)


def run(arguments: argparse.Namespace) -> int:
    """Measure, and print the cards."""
    from unveil.engine.recorded_cases import watch_cases
    from unveil.knowledge.scorecard import cards
    from unveil.knowledge.testing import run_suite
    from unveil.records.codec import encode

    suite = suite_of(arguments)
    names = set(arguments.names) or None
    fingerprints = suite.fingerprints(names)
    if unknown := (names or set()) - {each.name for each in fingerprints}:
        raise unknown_fingerprint(min(unknown), (each.name for each in suite.fingerprints(None)))
    found = cards(
        fingerprints,
        run_suite(suite, names, watch_cases),
        () if arguments.no_mutants else mutants_of(suite, fingerprints, quiet=arguments.json),
        () if arguments.no_recordings else _scores(suite, arguments),
        _hits(arguments),
    )
    if arguments.json:
        draw.print_json([{**encode(each), "lacks": list(each.lacks)} for each in found])
    else:
        _draw(found)
    return 1 if any(each.failed or (each.status == "stable" and each.lacks) for each in found) else 0


def suite_of(arguments: argparse.Namespace) -> Suite:
    """Return the knowledge base with its cases.

    Raises:
        UnreadableError: it cannot be loaded.
    """
    from unveil.knowledge.content import knowledge_root
    from unveil.knowledge.testing import read_suite

    root = knowledge_root(arguments.kb)
    suite, problems = read_suite(root)
    if suite is None:
        raise UnreadableError(f"{problems[0]}", hint=f"`unveil kb lint --kb {root}` lists everything")
    return suite


def mutants_of(suite: Suite, fingerprints: Sequence[Fingerprint], *, quiet: bool) -> tuple[Any, ...]:
    """Return what the cases of each fingerprint notice."""
    from unveil.knowledge.mutation import mutate

    results = []
    with draw.progress("mutating fingerprints", total=len(fingerprints), quiet=quiet) as advance:
        for number, fingerprint in enumerate(fingerprints, 1):
            results.append(mutate(suite, fingerprint))
            advance(number)
    return tuple(results)


def _scores(suite: Suite, arguments: argparse.Namespace) -> tuple[Any, ...]:
    """Return the figures of a backtest; recordings without labels are left out."""
    from unveil.engine.backtesting import Job
    from unveil.knowledge.backtest import report

    jobs = [Job(recording=path, kb=arguments.kb or "") for path in kb_recordings.labelled(arguments.recordings)]
    names = [each.name for each in suite.knowledge.fingerprints]
    return report(kb_recordings.watch(jobs, arguments), names).scores


def _hits(arguments: argparse.Namespace) -> dict[str, Any] | None:
    try:
        hits: dict[str, Any] = connect.watcher_or_journal(arguments).call("hits")
    except (WatcherAbsentError, UnreadableError):
        return None
    return hits


def _draw(found: Sequence[Card]) -> None:
    journal = any(each.seen is not None for each in found)
    draw.table(
        ("fingerprint", "status", "cases>", "look-alikes>", "mutants>", "found>", "false>",
         *(("seen>", "wrong>") if journal else ()), "refs>", "fixes>", "lacks"),
        (
            (
                each.fingerprint,
                each.status,
                f"{each.cases - each.failed} of {each.cases}" if each.failed else each.cases,
                each.look_alikes,
                "-" if each.mutation is None else f"{each.mutation:.0f} %",
                f"{each.found} of {each.intervals}" if each.intervals else "-",
                each.false_fires,
                *((each.seen or 0, each.wrong or 0) if journal else ()),
                each.references,
                len(each.fixes),
                ", ".join(each.lacks),
            )
            for each in found
        ),
    )  # fmt: skip
    cases = sum(each.cases for each in found)
    shown = [each for each in found if each.found]
    draw.line(f"{draw.several(len(found), 'fingerprint')}, {cases} cases; found on recordings: {len(shown)}")
