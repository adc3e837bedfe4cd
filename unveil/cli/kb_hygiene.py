"""`unveil kb hygiene`: what in the knowledge base is dead weight."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any

from unveil.cli import connect, draw, kb_recordings
from unveil.cli.kb_open import usable_knowledge
from unveil.cli.snapshot import add_host_root, host_root
from unveil.errors import UnreadableError, WatcherAbsentError

if TYPE_CHECKING:
    import argparse

    from unveil.knowledge.hygiene import Seen
    from unveil.knowledge.knowledge_base import KnowledgeBase

DESCRIPTION = """List fingerprints that never or always fire, that another one repeats or shadows, whose date is old,
that are deprecated or hidden by a filter, and that are blind on this host.

Firing is judged by the journal of this host where there is one, and by --recordings. Exit 1 when something is found
that is not of this host: each is a question to an owner, not an error."""
EXAMPLE = "unveil kb hygiene --kb . --recordings recordings/"
PAGE = 500


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    kb_recordings.add_recordings(parser)
    parser.add_argument(
        "--max-age", type=int, default=365, metavar="DAYS", help="from when on a date is old (default: 365)"
    )
    parser.add_argument(
        "--windows", type=int, default=3600, metavar="N",
        help="newest windows of the journal that are looked at (default: 3600, an hour)",
    )  # fmt: skip
    parser.add_argument("--no-host", action="store_true", help="do not look at this host and its journal")
    add_host_root(parser)
    connect.add_state_dir(parser)


def run(arguments: argparse.Namespace) -> int:
    """Look through, and print the findings."""
    from unveil.knowledge.hygiene import Kind, look_through, seen_of
    from unveil.records.codec import encode

    knowledge = usable_knowledge(arguments.kb)
    seen = [] if arguments.no_host else _journal(arguments)
    if arguments.recordings:
        seen.append(seen_of(_traces(arguments)))
    findings = look_through(
        knowledge,
        today=datetime.now().astimezone().date(),
        max_age_days=arguments.max_age,
        seen=seen,
        missing={} if arguments.no_host else _missing(knowledge, arguments),
    )
    fingerprints = draw.several(len(knowledge.fingerprints), "fingerprint")
    if arguments.json:
        draw.print_json(encode(findings))
    elif findings:
        draw.table(("", "fingerprint", "why"), ((str(each.kind), each.fingerprint, each.what) for each in findings))
        about = len({each.fingerprint for each in findings})
        draw.line(f"{draw.several(len(findings), 'finding')} about {about} of {fingerprints}")
    else:
        draw.line(f"no findings about {fingerprints}", style="green")
    if not arguments.json and not seen:
        draw.line("Nothing tells how often they fire: no journal, and no --recordings.", style="dim")
    return 1 if any(each.kind is not Kind.BLIND for each in findings) else 0


def _traces(arguments: argparse.Namespace) -> Any:
    from unveil.engine.backtesting import Job

    paths = kb_recordings.recordings(arguments.recordings)
    return kb_recordings.watch(
        [Job(recording=path, kb=arguments.kb or "", labelled=False) for path in paths], arguments
    )


def _journal(arguments: argparse.Namespace) -> list[Seen]:
    """Return what this host's journal has seen; nothing where there is none."""
    from unveil.knowledge.hygiene import Seen

    try:
        watcher = connect.watcher_or_journal(arguments)
        hits = watcher.call("hits")
        matched: Counter[str] = Counter()
        windows, before = 0, None
        while windows < arguments.windows and (page := watcher.call("windows", limit=PAGE, before=before)):
            for window in page:
                matched.update({each["fingerprint"] for each in window["sightings"] if each["answer"] == "match"})
            windows += len(page)
            before = [page[-1]["watch"], page[-1]["index"]]
    except (WatcherAbsentError, UnreadableError):
        return []
    return [Seen(place="this host's journal", windows=windows, matched=matched, fired=set(hits))]


def _missing(knowledge: KnowledgeBase, arguments: argparse.Namespace) -> dict[str, tuple[str, ...]]:
    from unveil.engine.needs import needs
    from unveil.host.doctor import blind, examine
    from unveil.host.root import HostRoot

    found = examine(HostRoot(host_root(arguments)), pause_s=0.0)
    required = {fingerprint.name: needs(fingerprint) for fingerprint in knowledge.fingerprints}
    return {each.fingerprint: each.missing for each in blind(required, {*found.metrics, *found.facts})}
