"""Checks over several files: names and ids used once, links that lead somewhere, values that are there."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unveil.knowledge.checks import finding, nearest
from unveil.knowledge.parse import day_s
from unveil.matching.companions import REACHABLE
from unveil.records.entity import EntityKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from unveil.knowledge.yaml_positions import Document, Path
    from unveil.records.problem import Problem

_DAY_S = 86400.0
_NOTICE_DAYS = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """All documents of the right form, by name.

    Attributes:
        tests: by the fingerprint or correlation they name.
        complete: whether every file was of the right form; else a missing link may only mean a broken file, which
            has been told already.
    """

    fingerprints: Mapping[str, Document] = field(default_factory=dict)
    remediations: Mapping[str, Document] = field(default_factory=dict)
    filters: Mapping[str, Document] = field(default_factory=dict)
    correlations: Mapping[str, Document] = field(default_factory=dict)
    tests: Mapping[str, Document] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    profiles: Document | None = None
    broken: frozenset[str] = frozenset()


def check_links(shelf: Shelf, *, now_s: float) -> Iterator[Problem]:
    """Yield what does not fit together.

    Args:
        now_s: seconds since the epoch, for filters that expire.
    """
    for name, document in shelf.fingerprints.items():
        yield from _fingerprint(shelf, name, document)
        yield from _tested(shelf, name, document)
    for name, document in shelf.correlations.items():
        for index, wanted in enumerate(document.data["correlation"]["fingerprints"]):
            yield from _link(shelf, document, ("correlation", "fingerprints", index), "fingerprint", wanted)
        yield from _tested(shelf, name, document)
    for name, document in shelf.remediations.items():
        yield from _remediation(shelf, name, document)
    for document in shelf.filters.values():
        for index, name in enumerate(document.data["fingerprints"]):
            if name not in shelf.correlations:
                yield from _link(shelf, document, ("fingerprints", index), "fingerprint", name)
        yield from _expiry(document, now_s)
    tested = {**shelf.fingerprints, **shelf.correlations}
    for name, document in shelf.tests.items():
        what = "fingerprint" if "fingerprint" in document.data else "correlation"
        yield from _link(shelf, document, (what,), what, name)
        beside = tested.get(name)
        if beside is not None and posixpath.dirname(beside.file) != posixpath.dirname(document.file):
            said = f"the test of {name!r} does not stand beside it"
            yield finding("K103", document, (what,), said, f"move it to {posixpath.dirname(beside.file)}")
    if shelf.profiles is not None:
        for index, profile in enumerate(shelf.profiles.data.get("profiles", ())):
            for name in profile.get("remediations", {}):
                path = ("profiles", index, "remediations", name)
                yield from _link(shelf, shelf.profiles, path, "remediation", name, on_key=True)
        yield from _freezes(shelf.profiles)
        yield from _roles(shelf.profiles)


def check_unique(documents: list[Document]) -> Iterator[Problem]:
    """Yield names, ids and titles that stand in two documents (K102, K107), at the later one."""
    first: dict[tuple[str, str], Document] = {}
    for document in documents:
        kind = document.data["kind"]
        episodes = "Fingerprint" if kind == "Correlation" else kind  # both name episodes
        for key, scope, check in (("name", episodes, "K102"), ("id", "", "K102"), ("title", kind, "K107")):
            if key not in document.data:
                continue
            value = document.data[key]
            other = first.setdefault((f"{key} {scope}", value.lower()), document)
            if other is not document:
                line, _ = other.at((key,))
                yield finding(check, document, (key,), f"{key} {value!r} is taken by {other.file}:{line}")


def _link(
    shelf: Shelf, document: Document, path: Path, what: str, name: str, *, on_key: bool = False
) -> Iterator[Problem]:
    known = {
        "fingerprint": shelf.fingerprints, "correlation": shelf.correlations, "remediation": shelf.remediations,
    }[what]  # fmt: skip
    if name not in known and name not in shelf.broken:
        yield finding("K401", document, path, f"there is no {what} {name!r}", nearest(name, known), on_key=on_key)


def _fingerprint(shelf: Shelf, name: str, document: Document) -> Iterator[Problem]:
    for index, wanted in enumerate(document.data.get("remediations", ())):
        path = ("remediations", index)
        yield from _link(shelf, document, path, "remediation", wanted)
        fix = shelf.remediations.get(wanted)
        if fix is not None and fix.data["mode"] == "auto" and _only_relative(document):
            what = f"it only compares with what is usual here, and {wanted!r} acts by itself"
            yield finding("K209", document, path, what, "ask for a fact or a limit, too")
        if fix is not None and name not in fix.data["remediates"]:
            what = f"remediation {wanted!r} does not say that it remediates {name!r}"
            yield finding("K402", document, path, what, f"add it to remediates in {fix.file}")


def _only_relative(document: Document) -> bool:
    clauses = document.data["signature"]["clauses"].values()
    return all("deviates" in clause or "share" in clause for clause in clauses)


def _remediation(shelf: Shelf, name: str, document: Document) -> Iterator[Problem]:
    for index, wanted in enumerate(document.data["remediates"]):
        yield from _link(shelf, document, ("remediates", index), "fingerprint", wanted)
    wanting = [other for other in shelf.fingerprints.values() if name in other.data.get("remediations", ())]
    if not wanting and not shelf.broken & set(document.data["remediates"]):
        yield finding("K403", document, ("name",), "no fingerprint leads to it", "name it under remediations")
    for variable, about in document.data.get("variables", {}).items():
        source = about.get("from", "")
        path = ("variables", variable, "from")
        if source.startswith("site.") and "default" not in about and source[5:] not in shelf.values:
            hint = nearest(source[5:], shelf.values) or "add it to inventory/values.yml, or give a default"
            yield finding("K406", document, path, f"the site has no value {source[5:]!r}", hint)
        if source.startswith("match.") and (odd := _unbound(source[6:], wanting)):
            what = f"a match of {odd.data['name']} is about a {odd.data['group_by']} and binds no {source[6:]}"
            yield finding("K402", document, path, what)


def _unbound(key: str, fingerprints: list[Document]) -> Document | None:
    """Return a fingerprint whose matches bind no such key: they bind their entity and what can belong to it."""
    for document in fingerprints:
        kind = EntityKind(document.data["group_by"])
        if key not in {kind, *REACHABLE[kind]}:
            return document
    return None


def _roles(profiles: Document) -> Iterator[Problem]:
    """Yield approvals by a role that is not there (K401), and roles that are there twice (K005)."""
    names = [role["name"] for role in profiles.data.get("roles", ())]
    for index, name in enumerate(names):
        if name in names[:index]:
            yield finding("K005", profiles, ("roles", index, "name"), f"the role {name} is there twice")
    for impact, name in profiles.data.get("approvals", {}).items():
        if name not in names:
            what = f"there is no role {name!r}, so nobody could approve it"
            yield finding("K401", profiles, ("approvals", impact), what, nearest(name, names))


def _freezes(profiles: Document) -> Iterator[Problem]:
    """Yield freezes with a day that no calendar has, or that end before they begin (K005)."""
    for index, freeze in enumerate(profiles.data.get("freezes", ())):
        days = {}
        for name in ("first", "last"):
            try:
                days[name] = day_s(freeze[name])
            except ValueError:
                yield finding("K005", profiles, ("freezes", index, name), f"there is no day {freeze[name]}")
        if len(days) == 2 and days["last"] < days["first"]:
            yield finding("K005", profiles, ("freezes", index, "last"), "the freeze ends before it begins")


def _expiry(document: Document, now_s: float) -> Iterator[Problem]:
    expires = document.data["expires"]
    try:
        left_days = (day_s(expires) + _DAY_S - now_s) / _DAY_S
    except ValueError:
        yield finding("K005", document, ("expires",), f"there is no day {expires}")
        return
    if left_days <= 0:
        yield finding("K404", document, ("expires",), f"the filter expired on {expires}", "remove it, or renew it")
    elif left_days <= _NOTICE_DAYS:
        yield finding("K404", document, ("expires",), f"the filter expires on {expires}", "remove it, or renew it")


def _tested(shelf: Shelf, name: str, document: Document) -> Iterator[Problem]:
    tests = shelf.tests.get(name)
    if tests is None:
        if f"{name}.test" not in shelf.broken:
            yield finding("K704", document, ("name",), "no test stands beside it", f"write {name}.test.yml")
        return
    expected = {case["expect"] for case in tests.data["cases"]}
    wanted = {"match", "no_match"} | ({"unknown"} if _must_show_unknown(document) else set())
    if missing := wanted - expected:
        what = f"no case expects {' or '.join(sorted(missing))}"
        yield finding("K704", tests, ("cases",), what, on_key=True)
    if document.data["kind"] == "Fingerprint" and document.data["status"] == "stable":
        recorded = any("recording" in case and case["expect"] == "match" for case in tests.data["cases"])
        if not recorded and not document.data.get("metadata", {}).get("proof"):
            hint = "a case with a recording, or metadata: {proof: FILE::TEST}"
            yield finding("K707", document, ("status",), "it is called stable, and nothing proves it", hint)


def _must_show_unknown(document: Document) -> bool:
    """Return whether a fingerprint is called stable, and may then lead to a fix by itself: also from a blind source?"""
    return document.data["kind"] == "Fingerprint" and bool(document.data["status"] == "stable")
