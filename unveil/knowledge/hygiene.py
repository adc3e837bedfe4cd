"""``kb hygiene``: what in a knowledge base is dead weight. Pure: everything that is held against it is an argument.

A finding is a question to its owner, not an error: a fingerprint that never fired may wait for the one bad day.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from unveil.knowledge.fingerprint_changes import MAX_CLAUSES, asked
from unveil.matching.condition import NO, UNKNOWN, YES, parse_condition
from unveil.matching.filters import SUPPRESS
from unveil.records.plain_text import several, span

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from unveil.knowledge.backtest import Trace
    from unveil.knowledge.knowledge_base import KnowledgeBase
    from unveil.records.fingerprint import Fingerprint

ALWAYS = 0.9
"""Share of windows from which on a fingerprint says nothing any more."""
ENOUGH_WINDOWS = 60
"""Fewer windows tell nothing about always and never."""
SILENT_AFTER_S = 14 * 86400.0
"""Over less of a host's life one that never fired is no finding: most faults come once in weeks."""
EVERYWHERE = "*"
ENOUGH_MATCHES = 20
"""Fewer matches beside another fingerprint may be chance."""
SHOWN = 3  # of what a host lacks


class Kind(StrEnum):
    """What may be wrong with a fingerprint."""

    NEVER = "never fires"
    EARLY = "too early to tell"
    ALWAYS = "always fires"
    DUPLICATE = "duplicate"
    SHADOWED = "shadowed"
    STALE = "stale"
    UNOWNED = "unowned"
    DEPRECATED = "deprecated"
    DISABLED = "disabled"
    BLIND = "blind here"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing to ask the owner of a fingerprint about."""

    kind: Kind
    fingerprint: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Where fingerprints were held against windows: a journal, or recordings.

    Attributes:
        place: its name, for the messages.
        windows: how many windows there were.
        matched: fingerprint → windows that matched; what is not in it matched in none.
        fired: names of those that fired.
        beside: fingerprint → others that matched in each window in which it did.
        watched_s: how long was watched by chance: over such a time a fingerprint may well have had nothing to say. None
            for what was chosen to be watched.
    """

    place: str
    windows: int
    matched: Mapping[str, int]
    fired: Collection[str]
    beside: Mapping[str, Collection[str]] = field(default_factory=dict)
    watched_s: float | None = None


def seen_of(traces: Sequence[Trace]) -> Seen:
    """Return what recordings have seen."""
    matched: dict[str, int] = defaultdict(int)
    beside: dict[str, frozenset[str]] = {}
    for trace in traces:
        for window in trace.windows:
            for name in window.matched:
                matched[name] += 1
                beside[name] = (beside.get(name, window.matched) & window.matched) - {name}
    return Seen(
        place=several(len(traces), "recording"),
        windows=sum(len(trace.windows) for trace in traces),
        matched=dict(matched),
        fired={fire.fingerprint for trace in traces for fire in trace.fires},
        beside=beside,
    )


def look_through(
    knowledge: KnowledgeBase,
    *,
    today: date,
    max_age_days: int,
    seen: Sequence[Seen] = (),
    missing: Mapping[str, Sequence[str]] | None = None,
    silent_after_s: float = SILENT_AFTER_S,
) -> tuple[Finding, ...]:
    """Return every finding, by kind and name.

    Args:
        max_age_days: from when on a date is old.
        seen: what was watched.
        missing: fingerprint → what this host does not have of what it reads.
        silent_after_s: how long must have been watched before one that never fired is called silent.
    """
    fingerprints = knowledge.fingerprints
    found = [
        *_about(fingerprints, today, max_age_days),
        *_overlaps(fingerprints),
        *_disabled(knowledge, today),
        *(each for place in seen for each in _watched(fingerprints, place, silent_after_s)),
        *(
            Finding(kind=Kind.BLIND, fingerprint=name, what=f"this host has no {_some(lacks)}")
            for name, lacks in (missing or {}).items()
        ),
    ]
    order = tuple(Kind)
    return tuple(sorted(found, key=lambda each: (order.index(each.kind), each.fingerprint, each.what)))


def _some(names: Sequence[str]) -> str:
    """Return the first few of some names, and how many there are beyond."""
    more = len(names) - SHOWN
    return f"{', '.join(names[:SHOWN])}{f' and {more} more' if more > 0 else ''}"


def _about(fingerprints: Sequence[Fingerprint], today: date, max_age_days: int) -> Iterator[Finding]:
    for each in fingerprints:
        try:
            age_days = (today - date.fromisoformat(each.date)).days
        except ValueError:
            age_days = None
        if age_days is None or age_days > max_age_days:
            what = "has no date" if age_days is None else f"nobody looked at it since {each.date}, {age_days} days ago"
            yield Finding(kind=Kind.STALE, fingerprint=each.name, what=what)
        if not each.owner.strip():
            yield Finding(kind=Kind.UNOWNED, fingerprint=each.name, what="nobody answers for its false alarms")
        if each.status == "deprecated":
            what = "is still evaluated; delete it when nothing refers to it"
            yield Finding(kind=Kind.DEPRECATED, fingerprint=each.name, what=what)


def _overlaps(fingerprints: Sequence[Fingerprint]) -> Iterator[Finding]:
    """Yield those of which another one says the same, or fires whenever they do."""
    clauses = {each.name: frozenset(map(asked, each.clauses)) for each in fingerprints}
    holders: dict[str, set[str]] = defaultdict(set)  # what is asked → who asks it, so that few pairs are compared
    for name, own in clauses.items():
        for text in own:
            holders[text].add(name)
    by_name = {each.name: each for each in fingerprints}
    for narrow in fingerprints:
        own = clauses[narrow.name]
        near = {name for text in own for name in holders[text] if clauses[name] <= own} - {narrow.name}
        for wide in (by_name[name] for name in sorted(near)):
            if wide.group_by != narrow.group_by or len(own) > MAX_CLAUSES or not _implies(narrow, wide):
                continue
            same = clauses[wide.name] == own and _implies(wide, narrow)
            if same and narrow.name < wide.name:
                what = f"{wide.name} asks the same"
                yield Finding(kind=Kind.DUPLICATE, fingerprint=narrow.name, what=what)
            elif not same and wide.hold_s <= narrow.hold_s:
                what = f"whenever it fires, {wide.name} does, too"
                yield Finding(kind=Kind.SHADOWED, fingerprint=narrow.name, what=what)


def _implies(narrow: Fingerprint, wide: Fingerprint) -> bool:
    """Return whether *wide* matches whatever *narrow* matches; its clauses are among those of the other."""
    texts = sorted({asked(clause) for clause in narrow.clauses})
    rows = np.array(list(product((NO, UNKNOWN, YES), repeat=len(texts))), dtype=np.int8)
    columns = {text: rows[:, number] for number, text in enumerate(texts)}
    return not bool(np.any((_answers(narrow, columns) == YES) & (_answers(wide, columns) != YES)))


def _answers(fingerprint: Fingerprint, columns: Mapping[str, NDArray[np.int8]]) -> NDArray[np.int8]:
    expression = parse_condition(fingerprint.condition).bind([clause.name for clause in fingerprint.clauses])
    return expression.evaluate({clause.name: columns[asked(clause)] for clause in fingerprint.clauses})


def _disabled(knowledge: KnowledgeBase, today: date) -> Iterator[Finding]:
    for each in knowledge.filters:
        if each.effect != SUPPRESS or each.expires < today.isoformat():
            continue
        where = (
            "everywhere" if EVERYWHERE in each.hosts and EVERYWHERE in each.entities else "on some hosts or entities"
        )
        for name in each.fingerprints:
            what = f"the filter {each.name} hides it {where} until {each.expires}: {each.reason}"
            yield Finding(kind=Kind.DISABLED, fingerprint=name, what=what)


def _watched(fingerprints: Sequence[Fingerprint], seen: Seen, silent_after_s: float) -> Iterator[Finding]:
    if seen.windows < ENOUGH_WINDOWS:
        return
    for each in fingerprints:
        matched = seen.matched.get(each.name, 0)
        if not matched and each.name not in seen.fired:
            early = seen.watched_s is not None and seen.watched_s < silent_after_s
            long = f"{seen.windows} windows" if seen.watched_s is None else f"{span(seen.watched_s)} watched"
            what = f"{'not yet' if early else 'never'} in {seen.place} ({long})"
            yield Finding(kind=Kind.EARLY if early else Kind.NEVER, fingerprint=each.name, what=what)
        elif matched >= ALWAYS * seen.windows:
            what = f"in {matched} of {seen.windows} windows of {seen.place}"
            yield Finding(kind=Kind.ALWAYS, fingerprint=each.name, what=what)
        elif matched >= ENOUGH_MATCHES and (others := sorted(seen.beside.get(each.name, ()))):
            what = f"in each of its {matched} windows of {seen.place} {', '.join(others)} matched, too"
            yield Finding(kind=Kind.SHADOWED, fingerprint=each.name, what=what)
