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

    from unveil.engine.client import Watcher
    from unveil.knowledge.hygiene import Seen
    from unveil.knowledge.knowledge_base import KnowledgeBase

DESCRIPTION = """List fingerprints that never or always fire, that another one repeats or shadows, whose date is old,
that are deprecated or hidden by a filter, and that are blind on this host.

Firing is judged by the journal of this host where there is one, and by --recordings. One that never fired is called
silent only when the journal tells of --silent-after days; before that it is too early to tell. Exit 1 when something is
found that is not of this host: each is a question to an owner, not an error."""
EXAMPLE = "unveil kb hygiene --kb . --recordings recordings/"
PAGE = 500
DAY_S = 86400.0


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
    parser.add_argument(
        "--silent-after", type=_days, default=14.0, metavar="DAYS",
        help="how long must have been watched before one that never fired is called silent (default: 14)",
    )  # fmt: skip
    parser.add_argument("--no-host", action="store_true", help="do not look at this host and its journal")
    add_host_root(parser)
    connect.add_state_dir(parser)


def _days(text: str) -> float:
    from argparse import ArgumentTypeError

    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 36500:
        raise ArgumentTypeError(f"{text!r} is no number of days")
    return value


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
        silent_after_s=arguments.silent_after * DAY_S,
    )
    told = [each for each in findings if each.kind is not Kind.EARLY]
    fingerprints = draw.several(len(knowledge.fingerprints), "fingerprint")
    if arguments.json:
        draw.print_json(encode(findings))
    elif told:
        draw.table(("", "fingerprint", "why"), ((str(each.kind), each.fingerprint, each.what) for each in told))
        about = len({each.fingerprint for each in told})
        draw.line(f"{draw.several(len(told), 'finding')} about {about} of {fingerprints}")
    else:
        draw.line(f"no findings about {fingerprints}", style="green")
    if not arguments.json:
        _draw_reach(seen, len(findings) - len(told), arguments.silent_after)
    return 1 if any(each.kind is not Kind.BLIND for each in told) else 0


def _draw_reach(seen: list[Seen], early: int, days: float) -> None:
    """Say how long was watched, and what that is too short for."""
    if not seen:
        draw.line("Nothing tells how often they fire: no journal, and no --recordings.", style="dim")
    for each in seen:
        if each.watched_s is not None:
            short = f": too early to tell of {draw.several(early, 'fingerprint')} that never fired" if early else ""
            asked = f" ({days:g} days are asked, --silent-after)" if early else ""
            draw.line(f"{each.place.capitalize()} tells of {draw.span(each.watched_s)}{short}{asked}", style="dim")


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
        hits, watched_s = watcher.call("hits"), watched_s_of(watcher)
        matched: Counter[str] = Counter()
        windows, before = 0, None
        while windows < arguments.windows and (page := watcher.call("windows", limit=PAGE, before=before)):
            for window in page:
                matched.update({each["fingerprint"] for each in window["sightings"] if each["answer"] == "match"})
            windows += len(page)
            before = [page[-1]["watch"], page[-1]["index"]]
    except (WatcherAbsentError, UnreadableError):
        return []
    place = "this host's journal"
    return [Seen(place=place, windows=windows, matched=matched, fired=set(hits), watched_s=watched_s)]


def watched_s_of(watcher: Watcher) -> float:
    """Return how long the watches of a journal were, all together: what was between them nobody saw."""
    total = 0.0
    for each in watcher.call("audit")["watches"]:
        ended_s = each["ended_s"]
        if ended_s is None:  # it goes on, or was killed: until its newest window
            newest = watcher.call("windows", limit=1, before=[each["watch"] + 1, 0])
            own = bool(newest) and newest[0]["watch"] == each["watch"]
            ended_s = newest[0]["wall_s"] if own else each["started_s"]
        total += max(0.0, ended_s - each["started_s"])
    return total


def _missing(knowledge: KnowledgeBase, arguments: argparse.Namespace) -> dict[str, tuple[str, ...]]:
    from unveil.engine.needs import needs
    from unveil.host.doctor import blind, examine
    from unveil.host.root import HostRoot

    found = examine(HostRoot(host_root(arguments)), pause_s=0.0)
    required = {fingerprint.name: needs(fingerprint) for fingerprint in knowledge.fingerprints}
    return {each.fingerprint: each.missing for each in blind(required, {*found.metrics, *found.facts})}
