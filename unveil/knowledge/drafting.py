"""``kb new``: a fingerprint and its cases to begin from, which lint clean and pass as they are written.

From a window that the journal kept, the draft asks for what moved that window's verdict; without one, for the share of
its subsystem. Either is a symptom: what a draft cannot know is the cause, and it says so where a person has to write.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from unveil.errors import BadInputError
from unveil.knowledge.catalogues import catalogues
from unveil.records.entity import HOST, EntityKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from unveil.records.attribution import FeatureShare
    from unveil.records.entity import Entity
    from unveil.records.subsystem import Subsystem
    from unveil.records.window import WindowSummary

MAX_CLAUSES = 4
LEAST_SHARE = 0.05
LEAST_SIGMA = 2.5
HOLD_S = 5

_SCHEMA = "# yaml-language-server: $schema=../../schemas/{}.schema.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Texts of the two files, for ``fingerprints/SUBSYSTEM/NAME.yml`` and ``NAME.test.yml`` beside it."""

    fingerprint: str
    test: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """What a draft is told: an id that was never used, today's date, and who answers for it."""

    id: str
    date: str
    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """One clause, and values on both sides of its threshold.

    Attributes:
        clause: its body in YAML's flow style.
        input: key of a case that holds its value, ``features`` or ``shares``.
        reference: what the host's own past expects, in YAML; empty when it does not matter.
        seen: a value that holds by far; enough and short: values just on either side of the threshold.
    """

    name: str
    clause: str
    input: str
    subject: str
    reference: str
    seen: float
    enough: float
    short: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Signature:
    """What the draft asks of which kind of entity; *source* is the window that it is from, or empty."""

    group_by: EntityKind
    asked: tuple[_Asked, ...]
    source: str


def draft(
    name: str,
    subsystem: Subsystem,
    author: Author,
    window: WindowSummary | None = None,
    *,
    recording: str | None = None,
) -> Draft:
    """Return a draft.

    Args:
        name: of the fingerprint; what is not admitted as one is found by the lint afterwards.
        window: what it shall recognise.
        recording: what the window is from, instead of a journal.

    Raises:
        BadInputError: nothing in the window is far enough from what the host's past makes expected.
    """
    if window is None:
        signature = _Signature(group_by=EntityKind.HOST, asked=(_share(subsystem),), source="")
    else:
        entity, factors = _factors(window)
        signature = _Signature(
            group_by=entity.kind,
            asked=tuple(_deviation(each) for each in factors),
            source=f"window {window.index} of a recording" if recording else f"window {window.watch}:{window.index}",
        )
    return Draft(
        fingerprint="".join(f"{line}\n" for line in _fingerprint(name, subsystem, author, signature)),
        test="".join(f"{line}\n" for line in _test(name, signature)),
    )


def _factors(window: WindowSummary) -> tuple[Entity, list[FeatureShare]]:
    """Return what moved a window: its strongest factors on one entity and on the host, and that entity."""
    known = catalogues().features
    strong = [
        each
        for each in window.attribution.features
        if each.share >= LEAST_SHARE
        and each.feature.name in known
        and isfinite(each.sigma)
        and abs(each.sigma) >= LEAST_SIGMA
        and each.value != each.expected
    ]
    weight: dict[Entity, float] = {}
    for each in strong:
        weight[each.feature.entity] = weight.get(each.feature.entity, 0.0) + each.share
    if not weight:
        raise BadInputError(
            f"nothing in window {window.watch}:{window.index} is far from what is expected of this host",
            hint="choose a window that is anomalous; `unveil episodes` and `unveil tui` show them",
        )
    parts = {entity: share for entity, share in weight.items() if entity != HOST}
    entity = max(parts, key=lambda each: parts[each]) if parts else HOST
    kept = [each for each in strong if each.feature.entity in (entity, HOST)]
    return entity, kept[:MAX_CLAUSES]


def _deviation(factor: FeatureShare) -> _Asked:
    way = "up" if factor.value > factor.expected else "down"
    _, metric, stat = factor.feature.name.split(".", 2)
    by_sigma = float(min(100, max(2, int(abs(factor.sigma) / 2))))
    # The detectors may have compared on a log scale; a case compares as the matcher does, so its sigma is made to fit.
    step = (factor.value - factor.expected) / abs(factor.sigma)
    note = f"It was {factor.sigma:+.1f} sigma and {factor.share:.0%} of the verdict. Say why just this number."
    return _Asked(
        name=f"{metric}_{stat.replace('.', '_')}_{way}",
        clause=f"{{feature: {factor.feature.name}, deviates: {way}, by_sigma: {by_sigma:g}, note: {_quoted(note)}}}",
        input="features",
        subject=factor.feature.name,
        reference=f"{{expected: {factor.expected:.12g}, sigma: {abs(step):.12g}}}",
        seen=factor.value,
        enough=factor.expected + 1.05 * by_sigma * step,
        short=factor.expected + 0.95 * by_sigma * step,
    )


def _share(subsystem: Subsystem) -> _Asked:
    note = "A symptom that any fault of the subsystem shows. Ask for what is special about this one instead."
    return _Asked(
        name=f"led_by_{subsystem}",
        clause=f"{{share: {subsystem}, gte: 0.5, note: {_quoted(note)}}}",
        input="shares",
        subject=str(subsystem),
        reference="",
        seen=0.8,
        enough=0.54,
        short=0.46,
    )


def _fingerprint(name: str, subsystem: Subsystem, author: Author, signature: _Signature) -> Iterator[str]:
    asked = signature.asked
    title = f"Draft: {name.replace('_', ' ')}"
    journal = "" if "recording" in signature.source else " of a journal"
    origin = f" from {signature.source}{journal}" if signature.source else ""
    yield _SCHEMA.format("fingerprint")
    yield "apiVersion: unveil/v1"
    yield "kind: Fingerprint"
    yield f"name: {name}"
    yield f"id: {author.id}"
    yield f"title: {_quoted(title)}"
    yield "status: experimental"
    yield "level: low"
    yield "description: |"
    yield f"  A draft{origin}: say what is wrong, why it costs, and how it shows."
    yield "  Ask for its cause as well, by a fact that names the setting: a symptom alone is a guess."
    yield f"owner: {_quoted(author.owner)}"
    yield f"date: {_quoted(author.date)}"
    yield f"tags: [subsystem.{subsystem}]"
    yield f"group_by: {signature.group_by}"
    yield "signature:"
    yield "  clauses:"
    for each in asked:
        yield f"    {each.name}: {each.clause}"
    yield f"  condition: {' and '.join(each.name for each in asked)}"
    yield f"  for: {HOLD_S}s"
    yield "  keep_firing_for: 15s"
    yield "falsepositives:"
    yield "  - Whatever else moves the same features; name each look-alike here, and write a case for it."
    if names := [each.subject for each in asked if each.input == "features"]:
        yield f"fields: [{', '.join(dict.fromkeys(names))}]"


def _test(name: str, signature: _Signature) -> Iterator[str]:
    asked, source = signature.asked, signature.source
    yield _SCHEMA.format("fingerprint_test")
    yield "apiVersion: unveil/v1"
    yield "kind: FingerprintTest"
    yield f"fingerprint: {name}"
    yield "cases:"
    seen, enough = {each.name: each.seen for each in asked}, {each.name: each.enough for each in asked}
    yield from _case(asked, f"as in {source}" if source else "the subsystem leads by far", "match", HOLD_S, seen)
    yield from _case(asked, "just enough of everything", "match", HOLD_S, enough)
    yield from _case(asked, "not yet, one window before it held long enough", "no_match", HOLD_S - 1, seen)
    for each in asked:
        short = {**seen, each.name: each.short}
        yield from _case(asked, f"just too little of {each.name}", "no_match", HOLD_S, short)
        yield from _case(asked, f"without what {each.name} reads", "unknown", HOLD_S, {**seen, each.name: None})


def _case(
    asked: tuple[_Asked, ...], name: str, expect: str, at_s: int, values: Mapping[str, float | None]
) -> Iterator[str]:
    yield f"  - name: {_quoted(name)}"
    yield f"    expect: {expect}"
    yield f"    at: {at_s}s"
    for key in ("features", "shares"):
        told = {each.subject: values[each.name] for each in asked if each.input == key}
        present = {subject: "_" if value is None else f"{value:.12g}" for subject, value in told.items()}
        if key == "shares":  # there is no missing share, only no attribution
            present = {subject: value for subject, value in present.items() if value != "_"}
        if present:
            yield f"    {key}: {{{', '.join(f'{subject}: {value}' for subject, value in present.items())}}}"
    if references := [f"{each.subject}: {each.reference}" for each in asked if each.reference]:
        yield f"    reference: {{{', '.join(references)}}}"


def _quoted(text: str) -> str:
    """Return a text as a double-quoted scalar: JSON's strings are YAML's, and nothing in one ends it early."""
    return json.dumps(text)
