"""`unveil kb explain`: what a fingerprint asks or a correlation joins, why, and whether this host can answer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from unveil.cli import draw
from unveil.cli.kb_open import unknown_fingerprint, usable_knowledge
from unveil.cli.snapshot import add_host_root, host_root

if TYPE_CHECKING:
    import argparse

    from unveil.knowledge.knowledge_base import KnowledgeBase
    from unveil.records.correlation import Correlation
    from unveil.records.fingerprint import Clause, Fingerprint
    from unveil.records.remediation import Remediation

DESCRIPTION = """Draw a fingerprint: its clauses with their notes, how they combine, its fixes, what it needs of a host.
Or a correlation: what it joins, over which time, for which entity, and the fixes of what it joins.

This host is looked at once, to say whether it has all of that (--no-host leaves it alone). Whether the fingerprint
matches now is another question: `unveil explain NAME` asks the running watcher."""
EXAMPLE = "unveil kb explain reduced_huge_page_coverage"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("name", metavar="NAME", help="of a fingerprint or a correlation")
    parser.add_argument("--no-host", dest="host", action="store_false", help="do not look at this host")
    parser.add_argument("--no-gpu", dest="gpu", action="store_const", const=False, help="leave NVML alone")
    add_host_root(parser)


def run(arguments: argparse.Namespace) -> int:
    """Draw it; 0."""
    from unveil.engine.needs import needs
    from unveil.records.codec import encode

    knowledge = usable_knowledge(arguments.kb)
    fingerprint = knowledge.fingerprint(arguments.name)
    together = next((each for each in knowledge.correlations if each.name == arguments.name), None)
    if together is not None:
        joined = {fix.name: fix for name in together.fingerprints for fix in knowledge.fixes(name)}
        if arguments.json:
            draw.print_json({"correlation": encode(together), "remediations": encode(tuple(joined.values()))})
        else:
            _draw_correlation(together, knowledge)
        return 0
    if fingerprint is None:
        known = [*(each.name for each in knowledge.fingerprints), *(each.name for each in knowledge.correlations)]
        raise unknown_fingerprint(arguments.name, known)
    fixes = knowledge.fixes(fingerprint.name)
    needed = tuple(sorted(needs(fingerprint)))
    missing = _missing(arguments, needed) if arguments.host else None
    if arguments.json:
        draw.print_json(
            {
                "fingerprint": encode(fingerprint),
                "remediations": encode(fixes),
                "needs": list(needed),
                "missing": None if missing is None else list(missing),
            }
        )
        return 0
    _draw_head(fingerprint)
    _draw_signature(fingerprint)
    _draw_fixes(fixes)
    draw.line(f"Needs: {', '.join(needed) or 'nothing but an attribution'}")
    if missing is not None:
        _draw_host(missing)
    return 0


def _draw_correlation(correlation: Correlation, knowledge: KnowledgeBase) -> None:
    draw.line(f"{correlation.name}: {correlation.title}", style="bold")
    owner = f", owned by {correlation.owner}" if correlation.owner else ""
    draw.line(f"{correlation.path}; status {correlation.status}, level {correlation.level}{owner}, {correlation.date}")
    draw.line(f"\n{correlation.description}\n")
    names = ", ".join(correlation.fingerprints)
    counted = {"entity": "entities", "fingerprint": "fingerprints", "host": "hosts"}[correlation.count_of]
    held = {
        "temporal": f"all of {names} fire",
        "temporal_ordered": f"{names} fire in this order",
        "value_count": f"at least {correlation.at_least} different {counted} fire of {names}",
        "event_count": f"{names} fire at least {correlation.at_least} times",
    }[correlation.type]
    draw.line(f"Holds for a {correlation.group_by} when {held}, within {draw.span(correlation.timespan_s)}.")
    draw.line(
        f"Fires {f'once it held for {draw.span(correlation.hold_s)}' if correlation.hold_s else 'at once'}; "
        f"over when it was quiet for {draw.span(correlation.keep_firing_s)}. It has no fix of its own."
    )
    joined = [each for name in correlation.fingerprints if (each := knowledge.fingerprint(name)) is not None]
    draw.table(
        ("joins", "title", "of each", "fixes"),
        (
            (each.name, each.title, str(each.group_by), ", ".join(fix.name for fix in knowledge.fixes(each.name)))
            for each in joined
        ),
    )
    if correlation.effect == "no_remediation":
        draw.line("While it fires, nothing is done about the episodes that it is made of.")
    draw.line("\nLooks the same and is none:")
    for text in correlation.falsepositives:
        draw.line(f"  - {text}")
    for link in correlation.references:
        draw.line(f"See {link}")


def _missing(arguments: argparse.Namespace, needed: tuple[str, ...]) -> tuple[str, ...]:
    """Return which of some metrics and facts this host does not give."""
    from unveil.host.root import HostRoot
    from unveil.host.snapshot import take_snapshot

    wants_gpus = any(name.startswith("gpu.") for name in needed)
    gpus = arguments.gpu if wants_gpus else False
    taken = take_snapshot(HostRoot(host_root(arguments)), wall_s=time.time(), gpus=gpus)
    there = {reading.metric for reading in taken.readings if reading.value is not None}
    there |= {fact.name for fact in taken.facts if fact.value is not None}
    return tuple(name for name in needed if name not in there)


def _draw_head(fingerprint: Fingerprint) -> None:
    draw.line(f"{fingerprint.name}: {fingerprint.title}", style="bold")
    draw.line(
        f"{fingerprint.path}; status {fingerprint.status}, level {fingerprint.level}, per {fingerprint.group_by}"
        f"{f', owned by {fingerprint.owner}' if fingerprint.owner else ''}, {fingerprint.date}"
    )
    draw.line(f"\n{fingerprint.description}\n")


def _draw_signature(fingerprint: Fingerprint) -> None:
    draw.table(
        ("clause", "what is asked", "of", "absent", "why"),
        (
            (
                clause.name,
                asked(clause),
                _subject(clause, fingerprint),
                "no" if clause.optional else "unknown",
                clause.note,
            )
            for clause in fingerprint.clauses
        ),
    )
    draw.line(f"Condition: {fingerprint.condition}")
    draw.line(
        f"Fires once it held for {draw.span(fingerprint.hold_s)}; over when it was quiet for "
        f"{draw.span(fingerprint.keep_firing_s)}."
    )
    draw.line("\nLooks the same and is none:")
    for text in fingerprint.falsepositives:
        draw.line(f"  - {text}")
    for link in fingerprint.references:
        draw.line(f"See {link}")


def asked(clause: Clause) -> str:
    """Return what a clause asks for, in one line: ``memory.cgroup_anon.last gte 209,715,200``."""
    from unveil.matching.clauses import subject_of, text_of, threshold_of
    from unveil.records.fingerprint import FactClause, FeatureClause

    if isinstance(clause, FactClause):
        return f"fact {clause.fact} {clause.operator} {text_of(clause.operand)}"
    if isinstance(clause, FeatureClause):
        subject = subject_of(clause).removeprefix("feature ")
        if clause.operator in ("up", "down"):
            peers = " from its peers" if clause.against == "peers" else ""
            return f"{subject} {clause.operator} by {threshold_of(clause)}{peers}"
        return f"{subject} {clause.operator} {draw.quantity(clause.threshold)}"
    return f"share of {clause.subsystem} {clause.operator} {clause.threshold:g}"


def _subject(clause: Any, fingerprint: Fingerprint) -> str:
    from unveil.records.fingerprint import ShareClause

    if isinstance(clause, ShareClause):
        return "window"
    return str(clause.entity or fingerprint.group_by)


def _draw_fixes(fixes: tuple[Remediation, ...]) -> None:
    if not fixes:
        draw.line("\nFixes: none; it is reported only.\n")
        return
    draw.table(
        ("fix", "status", "at most", "impact", "undone", "changes", "kept when"),
        (
            (
                each.name,
                each.status,
                str(each.mode),
                each.impact + (", interrupts" if each.interrupts_workload else ""),
                "yes" if each.reversible else "no",
                "\n".join(setting.address for setting in each.settings),
                "; ".join(f"{rule.feature} {rule.demand(improve=True)}" for rule in each.verification.improve)
                or "the fingerprint clears",
            )
            for each in fixes
        ),
    )  # fmt: skip


def _draw_host(missing: tuple[str, ...]) -> None:
    if missing:
        draw.line(f"This host has no {', '.join(missing)}: it can only answer unknown here.", style="yellow")
    else:
        draw.line("This host has all of it.", style="green")
