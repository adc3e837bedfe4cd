"""`unveil kb test`: the cases beside the fingerprints, what they cover, and what they would not notice."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from unveil.cli import draw
from unveil.cli.kb_open import unknown_fingerprint
from unveil.errors import BadInputError, UnwritableError, did_you_mean

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from unveil.engine.playbook_testing import Played
    from unveil.knowledge.coverage import FingerprintCoverage
    from unveil.knowledge.made_up import CaseResult
    from unveil.knowledge.mutation import MutationResult
    from unveil.knowledge.testing import Subject, Suite, TestReport
    from unveil.records.run import Plan

DESCRIPTION = """Run the cases beside the fingerprints through the watcher's own matcher and planner. No host is needed.

--coverage tells what no case has seen; --mutate changes a fingerprint a little, again and again, and tells which
changes its cases would not notice; --playbooks plays each planned fix with Ansible on a tree of plain files: check mode
writes nothing, a second time changes nothing, a rollback restores every byte, a tenant's text stays text (what passed
and has not changed since is not played again). Exit 1 when a case or a playbook fails, a fingerprint has no case, or
(with --mutate) a fingerprint scores below --min-score; 2 when the knowledge base cannot be loaded."""
EXAMPLE = "unveil kb test --kb . --mutate reduced_huge_page_coverage"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("names", nargs="*", metavar="FINGERPRINT", help="only these")
    parser.add_argument("--verbose", action="store_true", help="show every case, and the clauses of those that fail")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="also write the results as JUnit XML")
    parser.add_argument("--coverage", action="store_true", help="show what of each fingerprint no case has seen")
    parser.add_argument("--mutate", action="store_true", help="show which small mistakes the cases would not notice")
    parser.add_argument(
        "--playbooks", action="store_true", help="play the playbooks that cases plan, on a tree of plain files"
    )
    parser.add_argument(
        "--remediation",
        action="append",
        default=[],
        metavar="NAME",
        help="play only the playbook of this one, and run the cases of what it is for; may be repeated",
    )
    parser.add_argument("--no-cache", action="store_true", help="play what passed and has not changed, too")
    parser.add_argument(
        "--min-score", type=_per_cent, default=95.0, metavar="PERCENT",
        help="least share of mutants that the cases of each fingerprint notice (default: 95)",
    )  # fmt: skip


def _per_cent(text: str) -> float:
    from argparse import ArgumentTypeError

    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:
        raise ArgumentTypeError(f"{text!r} is not between 0 and 100")
    return value


def run(arguments: argparse.Namespace) -> int:
    """Run the cases and what else was asked for."""
    from unveil.engine.recorded_cases import watch_cases
    from unveil.knowledge.content import knowledge_root
    from unveil.knowledge.coverage import cover
    from unveil.knowledge.testing import TestReport, read_suite, run_suite
    from unveil.records.codec import encode

    root = knowledge_root(arguments.kb)
    suite, problems = read_suite(root)
    if suite is None:
        if arguments.json:
            draw.print_json(encode(TestReport(problems=problems)))
        else:
            for problem in problems:
                print(draw.plain(problem, 2000))
        return 2
    names = set(arguments.names) | _for_whom(suite, arguments.remediation) or None
    fingerprints, subjects = suite.fingerprints(names), suite.subjects(names)
    unknown = (names or set()) - {subject.name for subject in subjects}
    if unknown:
        raise unknown_fingerprint(min(unknown), (subject.name for subject in suite.subjects(None)))
    report = run_suite(suite, names, watch_cases)
    if arguments.junit:
        _write_junit(arguments.junit, report)
    failed = bool(report.failed or report.untested)
    covered = tuple(cover(each, report) for each in fingerprints) if arguments.coverage else ()
    # A mutant of a fingerprint whose cases fail anyway would look as if it had been noticed.
    mutated = _mutate(root, suite, subjects, quiet=arguments.json) if arguments.mutate and not report.failed else ()
    wanted = (arguments.playbooks or arguments.remediation) and not report.failed
    played = _play(root, suite, names, arguments) if wanted else ()
    failed = failed or any(each.failures for each in played)
    weak = [result for result in mutated if result.score < arguments.min_score]
    if arguments.json:
        draw.print_json(_told(report, covered, mutated) | ({"playbooks": encode(played)} if played else {}))
    else:
        _draw_report(report, verbose=arguments.verbose)
        _draw_coverage(covered)
        _draw_mutants(mutated, arguments.min_score)
        _draw_played(played)
        if arguments.mutate and report.failed:
            draw.line("no mutants were made: cases fail already", style="yellow")
    return 1 if failed or weak else 0


def _told(
    report: TestReport, covered: Sequence[FingerprintCoverage], mutated: Sequence[MutationResult]
) -> dict[str, Any]:
    from unveil.records.codec import encode

    told: dict[str, Any] = encode(report)
    if covered:
        told["coverage"] = [{**encode(each), "gaps": list(each.gaps)} for each in covered]
    if mutated:
        told["mutation"] = [{**encode(each), "score": each.score} for each in mutated]
    return told


def _write_junit(path: Path, report: TestReport) -> None:
    from unveil.knowledge.reports import junit_cases

    try:
        path.write_text(junit_cases(report), encoding="utf-8")
    except OSError as error:
        raise UnwritableError(f"{path} cannot be written: {error.strerror}") from error


def _mutate(root: Path, suite: Suite, subjects: Sequence[Subject], *, quiet: bool) -> tuple[MutationResult, ...]:
    import os

    from unveil.knowledge.mutation import mutate_all

    jobs = len(os.sched_getaffinity(0))
    with draw.progress("mutating fingerprints", total=len(subjects), quiet=quiet) as advance:
        return mutate_all(root, suite, subjects, jobs=jobs, advance=advance)


def _for_whom(suite: Suite, remediations: Sequence[str]) -> set[str]:
    """Return the fingerprints that remediations are for.

    Raises:
        BadInputError: there is no such remediation.
    """
    known = {each.name: each.remediates for each in suite.knowledge.remediations}
    for name in remediations:
        if name not in known:
            what = f"no remediation {name!r} in this knowledge base"
            raise BadInputError(
                what, hint=did_you_mean(name, known, otherwise="`unveil kb test --playbooks` names them")
            )
    return {fingerprint for name in remediations for fingerprint in known[name]}


def _play(root: Path, suite: Suite, names: set[str] | None, arguments: argparse.Namespace) -> tuple[Played, ...]:
    import os

    from unveil.engine.playbook_testing import PASSES, Played, play_all
    from unveil.engine.played_before import PlayedBefore
    from unveil.knowledge.testing import plans

    chosen = [
        each.name
        for each in suite.knowledge.remediations
        if (each.name in arguments.remediation if arguments.remediation else not names or names & set(each.remediates))
    ]
    drawn = {plan.remediation: plan for plan in plans(suite, names) if plan.remediation in chosen}
    modules = (root / "playbooks" / "modules").absolute()
    before = PlayedBefore(modules)
    known = set() if arguments.no_cache else {name for name, plan in drawn.items() if before.passed(plan)}
    new = [plan for name, plan in drawn.items() if name not in known]

    def note(plan: Plan, played: Played) -> None:
        if not played.failures and not played.skipped:
            before.note(plan)

    with draw.progress("playing playbooks", total=PASSES * len(new), quiet=arguments.json) as advance:
        jobs = len(os.sched_getaffinity(0))
        found = {each.remediation: each for each in play_all(new, modules, jobs=jobs, advance=advance, told=note)}
    found |= {name: Played(remediation=name, remembered=True) for name in known}
    unplanned = "no case plans it and names the settings before"
    return tuple(found.get(name, Played(remediation=name, skipped=unplanned)) for name in chosen)


def _draw_played(played: Sequence[Played]) -> None:
    for each in played:
        style = "bold red" if each.failures else "dim" if each.skipped else "green"
        word = "FAIL" if each.failures else "-   " if each.skipped else "ok  "
        how = f": {each.skipped}" if each.skipped else " (as before)" if each.remembered else ""
        draw.line(f"{word} playbook of {each.remediation}{how}", style=style)
        for failure in each.failures:
            draw.line(f"  {draw.plain(failure, 1000)}")
    if played:
        passed = sum(not each.failures and not each.skipped for each in played)
        draw.line(f"{passed} of {draw.several(len(played), 'playbook')} passed")


def _draw_report(report: TestReport, *, verbose: bool) -> None:
    for case in report.cases:
        if verbose or not case.passed:
            _draw_case(case)
    for name in report.untested:
        draw.line(f"{name}: no case tests it", style="yellow")
    passed = len(report.cases) - len(report.failed)
    fingerprints = draw.several(len({case.fingerprint for case in report.cases}), "fingerprint")
    draw.line(f"{passed} of {len(report.cases)} cases of {fingerprints} passed")


def _draw_case(case: CaseResult) -> None:
    style = "green" if case.passed else "bold red"
    draw.line(f"{'ok  ' if case.passed else 'FAIL'} {case.fingerprint}: {case.name}", style=style)
    if case.passed:
        return
    draw.line(f"  {case.file}:{case.line}: expected {case.expected}, got {case.got}")
    for failure in case.failures:
        draw.line(f"  {draw.plain(failure, 1000)}")
    draw.table(
        ("clause", "what was asked", "what was there", "answer"),
        (
            (c.name, f"{c.subject} {c.operator} {c.threshold}", draw.quantity(c.value), str(c.answer))
            for c in case.clauses
        ),
    )


def _draw_coverage(covered: Sequence[FingerprintCoverage]) -> None:
    if not covered:
        return
    clauses = [clause for each in covered for clause in each.clauses]
    both = sum(1 for clause in clauses if clause.match and clause.no_match)
    for each in covered:
        for gap in each.gaps:
            draw.line(f"{each.fingerprint}: {gap}", style="yellow")
    draw.line(f"{both} of {len(clauses)} clauses were true in one case and false in another")


def _draw_mutants(mutated: Sequence[MutationResult], min_score: float) -> None:
    if not mutated:
        return
    for result in mutated:
        style = "" if result.score >= min_score else "bold red"
        noticed = result.mutants - len(result.survivors)
        draw.line(f"{result.score:5.1f} %  {result.fingerprint}: {noticed} of {result.mutants} mutants noticed",
                  style=style)  # fmt: skip
        for survivor in result.survivors:
            draw.line(f"         survives: {survivor}", style="yellow")
    count = sum(result.mutants for result in mutated)
    survivors = sum(len(result.survivors) for result in mutated)
    score = 100.0 * (count - survivors) / max(1, count)
    fingerprints = draw.several(len(mutated), "fingerprint")
    draw.line(f"{score:5.1f} %  of {count} mutants of {fingerprints}; at least {min_score:g} % are asked")
