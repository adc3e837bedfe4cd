"""Checks of one fingerprint that has the right form: its condition, its clauses, its metadata."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from unveil.features.feature import SHARE
from unveil.knowledge.catalogues import catalogues
from unveil.knowledge.checks import finding, nearest
from unveil.knowledge.formats.fingerprint import FACT_OPERATORS, NUMERIC, SUBSYSTEMS
from unveil.knowledge.parse import duration_s
from unveil.knowledge.rules.logic import check_logic
from unveil.knowledge.rules.metadata import check_metadata
from unveil.matching.companions import REACHABLE
from unveil.matching.condition import ConditionError, parse_condition
from unveil.records.entity import EntityKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from unveil.features.feature import Feature
    from unveil.knowledge.yaml_positions import Document, Path
    from unveil.records.problem import Problem

MIN_SLOPE_S, MAX_SLOPE_S = 3.0, 600.0
WINDOW_S = 1.0
TENANT_CHOSEN = frozenset(("cpu.cgroup_name",))
_BY_TYPE: Mapping[str, tuple[str, ...]] = {
    "number": FACT_OPERATORS,
    "text": ("eq", "neq", "in", "not_in"),
    "boolean": ("eq", "neq"),
    "list": ("in", "not_in"),
}


def check_fingerprint(document: Document, relative: str) -> Iterator[Problem]:
    """Yield what is wrong with a fingerprint that the schema admits.

    Args:
        relative: its path below the knowledge base.
    """
    yield from _place(document, relative)
    yield from _condition(document)
    group_by = EntityKind(document.data["group_by"])
    for name, clause in document.data["signature"]["clauses"].items():
        yield from _clause(document, ("signature", "clauses", name), clause, group_by)
    yield from check_logic(document)
    yield from _habits(document)
    yield from check_metadata(document)


def _place(document: Document, relative: str) -> Iterator[Problem]:
    folder, _, file = relative.removeprefix("fingerprints/").rpartition("/")
    name, stem = document.data["name"], file.removesuffix(".yml")
    if name != stem:
        yield finding("K103", document, ("name",), f"name {name!r} differs from the file's stem {stem!r}")
    if folder not in SUBSYSTEMS:
        what = f"folder {folder or 'fingerprints'!r} is none of the six subsystems"
        hint = nearest(folder, SUBSYSTEMS) or f"one of {', '.join(SUBSYSTEMS)}"
        yield finding("K103", document, ("name",), what, hint)


def _condition(document: Document) -> Iterator[Problem]:
    signature = document.data["signature"]
    clauses, text = tuple(signature["clauses"]), signature["condition"]
    path = ("signature", "condition")
    try:
        expression = parse_condition(text)
    except ConditionError as error:
        yield _at_offset(document, "K217", error, text)
        return
    try:
        used = set(expression.bind(clauses).names)
    except ConditionError as error:
        yield _at_offset(document, "K202", error, text)
        return
    for name in clauses:
        if name not in used:
            what = f"clause {name!r} is not used in the condition"
            yield finding("K201", document, (*path[:1], "clauses", name), what, "use it or remove it", on_key=True)


def _at_offset(document: Document, check: str, error: ConditionError, text: str) -> Problem:
    """Return the problem at the very word, which for a block scalar (``|``, ``>``) is only known to be in there."""
    problem = finding(check, document, ("signature", "condition"), error.message, error.hint or "")
    line, column = document.at(("signature", "condition"))
    lines = document.text.split("\n")
    source = lines[line - 1][column - 1 :] if line <= len(lines) else ""
    quoted = source[:1] in ("'", '"')
    if source[quoted : quoted + len(text)] == text:
        column += error.offset + quoted
    return replace(problem, column=column)


def _clause(document: Document, path: Path, clause: dict[str, Any], group_by: EntityKind) -> Iterator[Problem]:
    if "share" in clause:
        return
    known = catalogues()
    if "feature" in clause:
        feature = known.features.get(clause["feature"])
        if feature is None:
            return  # K203 has said so
        if not {"per", "slope_over"} & set(clause):  # those have another unit
            yield from _bounds(document, path, clause, feature)
        yield from _entity(document, path, clause, group_by, feature.per)
        yield from _comparison(document, path, clause, feature.per)
        return
    fact = known.facts.get(clause["fact"])
    if fact is not None:  # otherwise K216 has said so
        yield from _fact_type(document, path, clause, fact.type)
        yield from _entity(document, path, clause, group_by, fact.per)


def _bounds(document: Document, path: Path, clause: dict[str, Any], feature: Feature) -> Iterator[Problem]:
    for operator in NUMERIC:
        if operator in clause and not feature.low <= clause[operator] <= feature.high:
            what = f"{feature.name} is never {clause[operator]:g}: it lies between {feature.low:g} and {feature.high:g}"
            hint = "60 % is 0.6" if feature.unit == SHARE and 1 < clause[operator] <= 100 else ""
            yield finding("K205", document, (*path, operator), what, hint)


def _comparison(document: Document, path: Path, clause: dict[str, Any], kind: EntityKind) -> Iterator[Problem]:
    """Yield combinations of a measure and a comparison that cannot be made (K220)."""
    peers = clause.get("against") == "peers"
    if "against" in clause and "deviates" not in clause:
        yield finding("K220", document, (*path, "against"), "against goes with deviates", on_key=True)
    if "per" in clause and "slope_over" in clause:
        yield finding("K220", document, (*path, "slope_over"), "a ratio has no slope", "make two clauses of it")
    if "slope_over" in clause and "deviates" in clause:
        what, hint = "a slope is compared with a number only", "lt, lte, gt or gte, per second"
        yield finding("K220", document, (*path, "slope_over"), what, hint, on_key=True)
    elif "slope_over" in clause and not MIN_SLOPE_S <= duration_s(clause["slope_over"]) <= MAX_SLOPE_S:
        what = f"a slope is taken over {MIN_SLOPE_S:g} s to {MAX_SLOPE_S / 60:g} min"
        yield finding("K220", document, (*path, "slope_over"), what)
    if "per" in clause and "deviates" in clause and not peers:
        what = "this host's past is known of features, not of ratios"
        yield finding("K220", document, (*path, "per"), what, "against: peers, or compare with a number", on_key=True)
    if peers and kind is EntityKind.HOST:
        hint = "take a feature of GPUs, NICs, disks, nodes or cgroups, and group by these"
        yield finding("K220", document, (*path, "against"), "a host is alone: it has no peers", hint)
    divisor = catalogues().features.get(clause.get("per", ""))
    if divisor is not None and divisor.per not in (kind, EntityKind.HOST):
        what = f"{clause['per']} is of a {divisor.per}, and {clause['feature']} of a {kind}"
        yield finding("K220", document, (*path, "per"), what, f"a feature of a {kind} or of the host")


def _fact_type(document: Document, path: Path, clause: dict[str, Any], kind: str) -> Iterator[Problem]:
    operator = next(key for key in FACT_OPERATORS if key in clause)
    fits = _BY_TYPE[kind]
    if operator not in fits:
        what = f"{clause['fact']} is a {kind}: {operator} does not apply"
        yield finding("K218", document, (*path, operator), what, f"use {', '.join(fits)}", on_key=True)
    elif operator in ("eq", "neq"):
        operand = clause[operator]
        wanted = {"number": (int, float), "text": (str,), "boolean": (bool,)}[kind]
        if not isinstance(operand, wanted) or (kind == "number" and isinstance(operand, bool)):
            hint = "quote it" if kind == "text" else "leave the quotes out"
            what = f"{clause['fact']} is a {kind}, so {operand!r} never equals it"
            yield finding("K218", document, (*path, operator), what, hint)


def _entity(
    document: Document, path: Path, clause: dict[str, Any], group_by: EntityKind, has: EntityKind
) -> Iterator[Problem]:
    what = "feature" if "feature" in clause else "fact"
    written = clause.get("entity")
    chosen = EntityKind(written) if written else group_by if group_by is has else EntityKind.HOST
    reachable = {EntityKind.HOST, group_by} | REACHABLE[group_by]
    place = (*path, "entity" if written else what)
    if chosen is not has:
        hint = f"entity: {has}" if has in reachable else f"group by {has}, or use a {what} of the host"
        yield finding("K219", document, place, f"{clause[what]} is of a {has}, not of a {chosen}", hint)
    elif chosen not in reachable:
        said = f"no {chosen} is known to belong to a {group_by}"
        yield finding("K219", document, place, said, f"here: {', '.join(sorted(reachable))}")


def _habits(document: Document) -> Iterator[Problem]:
    """Yield what can be evaluated and is still not how a fingerprint should be."""
    signature = document.data["signature"]
    clauses = signature["clauses"]
    if duration_s(signature["for"]) % WINDOW_S:
        what = f"windows come each second, so {signature['for']} is as long as the next full second"
        yield finding("K208", document, ("signature", "for"), what)
    if len(clauses) == 1 and document.data.get("remediations"):
        what = "one clause is a symptom or a setting, not both, and yet it leads to a fix"
        yield finding("K210", document, ("signature", "clauses"), what, on_key=True)
    for name, clause in clauses.items():
        if clause.get("fact") in TENANT_CHOSEN:
            what = f"a tenant chooses {clause['fact']}, and with it the answer"
            yield finding("K213", document, ("signature", "clauses", name, "fact"), what)
