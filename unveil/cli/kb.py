"""`unveil kb`: lint, test and describe the knowledge base."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from unveil.cli import connect, draw
from unveil.errors import BadInputError

if TYPE_CHECKING:
    import argparse

    from unveil.knowledge.testing import CaseResult

DESCRIPTION = """Lint and test the knowledge base: fingerprints, remediations, playbooks and what the site adds.

The same loader is used by the running watcher: what lints clean here is in use there a second after it was saved."""
EXAMPLE = "unveil kb lint fingerprints/memory"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and their flags."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    lint = actions.add_parser("lint", help="check every file; file:line:column for each finding")
    lint.add_argument("paths", nargs="*", type=Path, help="show findings in these files or folders only")
    lint.add_argument("--list-checks", action="store_true", help="list every check with its id")
    lint.add_argument("--explain", metavar="ID", help="say what a check is about and how to satisfy it")
    test = actions.add_parser("test", help="run the cases beside the fingerprints")
    test.add_argument("names", nargs="*", metavar="FINGERPRINT", help="only these")
    test.add_argument("--verbose", action="store_true", help="show every case, and the clauses of those that fail")
    schema = actions.add_parser("schema", help="write the JSON Schemas that editors complete from")
    schema.add_argument("folder", type=Path, nargs="?", help="where to (default: the knowledge base's schemas/)")
    for action in (lint, test, schema):
        action.add_argument("--kb", metavar="DIR", help="knowledge base (default: the shipped one)")
        connect.add_json(action)


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked."""
    return {"lint": _lint, "test": _test, "schema": _schema}[arguments.action](arguments)


def _lint(arguments: argparse.Namespace) -> int:
    """Print findings; 0 when none is worse than a remark, 1 otherwise."""
    from unveil.knowledge.checks import CHECKS
    from unveil.knowledge.content import knowledge_root
    from unveil.knowledge.loading import lint
    from unveil.records.codec import encode
    from unveil.records.problem import Gravity

    if arguments.list_checks:
        draw.table(("check", "gravity", "what it looks for"), ((c.id, c.gravity, c.title) for c in CHECKS.values()))
        return 0
    if arguments.explain:
        check = CHECKS.get(arguments.explain.upper())
        if check is None:
            raise BadInputError(f"no check {arguments.explain!r}", hint="`unveil kb lint --list-checks` lists them")
        draw.line(f"{check.id} ({check.gravity}): {check.title}\n\n{check.explanation}")
        return 0
    missing = [path for path in arguments.paths if not path.exists()]
    if missing:
        raise BadInputError(f"{missing[0]} does not exist")
    problems = lint(knowledge_root(arguments.kb), arguments.paths or None)
    if arguments.json:
        draw.print_json(encode(problems))
    else:
        for problem in problems:
            print(draw.plain(problem, 2000))
        if not problems:
            draw.line("no findings", style="green")
    return 1 if any(problem.gravity is not Gravity.INFO for problem in problems) else 0


def _test(arguments: argparse.Namespace) -> int:
    """Run the cases; 0 when all passed, 1 when one failed or a fingerprint has none, 2 when nothing can be loaded."""
    from unveil.knowledge.content import knowledge_root
    from unveil.knowledge.testing import run_tests
    from unveil.records.codec import encode

    report = run_tests(knowledge_root(arguments.kb), set(arguments.names) or None)
    if arguments.json:
        draw.print_json(encode(report))
    if report.problems:
        for problem in report.problems:
            print(draw.plain(problem, 2000))
        return 2
    unknown = set(arguments.names) - {case.fingerprint for case in report.cases} - set(report.untested)
    if unknown:
        raise BadInputError(f"no fingerprint {sorted(unknown)[0]!r} in this knowledge base")
    if not arguments.json:
        for case in report.cases:
            if arguments.verbose or not case.passed:
                _draw_case(case)
        for name in report.untested:
            draw.line(f"{name}: no case tests it", style="yellow")
        passed = len(report.cases) - len(report.failed)
        fingerprints = len({case.fingerprint for case in report.cases})
        draw.line(f"{passed} of {len(report.cases)} cases of {fingerprints} fingerprints passed")
    return 1 if report.failed or report.untested else 0


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


def _schema(arguments: argparse.Namespace) -> int:
    from unveil.knowledge.content import knowledge_root
    from unveil.knowledge.schema_export import write_schemas

    folder = arguments.folder or knowledge_root(arguments.kb) / "schemas"
    if not folder.is_dir():
        raise BadInputError(f"{folder} is not a folder")
    for path in write_schemas(folder):
        print(path)
    return 0
