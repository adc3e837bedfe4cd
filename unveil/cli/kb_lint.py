"""`unveil kb lint`: every finding at its line and column, for a person or for another program."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.cli import draw
from unveil.errors import BadInputError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

    from unveil.records.problem import Problem

DESCRIPTION = """Check every file of a knowledge base and print each finding with its place.

Exit 1 when there is a finding as grave as --fail-level, 0 otherwise. An error keeps a watcher from using the knowledge
base, whatever is disabled here. `--format sarif` and `--format github` show findings at the lines of a pull request,
`--format junit` as tests. `--fix` mends look-alike scalars, ids, idle ignores, gather_facts and short names of modules;
comments and layout stay."""
EXAMPLE = "unveil kb lint --kb . --format github --disable K107"
FORMATS = ("text", "json", "sarif", "junit", "github")
LEVELS = ("error", "warning", "info")  # gravest first


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("paths", nargs="*", type=Path, help="show findings in these files or folders only")
    parser.add_argument("--format", choices=FORMATS, default="text", help="form of the findings (default: text)")
    parser.add_argument(
        "--fail-level", choices=LEVELS, default="warning", help="least gravity that makes exit 1 (default: warning)"
    )
    parser.add_argument(
        "--disable",
        metavar="ID",
        action="append",
        default=[],
        help="leave out a check that may be silenced (repeatable)",
    )
    parser.add_argument("--fix", action="store_true", help="mend what has only one right answer, and say what was done")
    parser.add_argument(
        "--against", metavar="REVISION", help="also judge the way from a git revision (or folder) to these files"
    )
    parser.add_argument("--ansible-lint", action="store_true", help="also ask ansible-lint, where it is installed")
    parser.add_argument(
        "--no-cache", dest="cache", action="store_false", help="judge every file anew, whatever was found last time"
    )
    parser.add_argument("--list-checks", action="store_true", help="list every check with its id")
    parser.add_argument("--explain", metavar="ID", help="say what a check is about and how to satisfy it")


def run(arguments: argparse.Namespace) -> int:
    """Print findings, or what is said of checks."""
    from unveil.knowledge.content import knowledge_root
    from unveil.knowledge.linting import lint, lint_against, lint_playbooks

    if arguments.list_checks:
        return _list_checks(as_json=arguments.json)
    if arguments.explain:
        return _explain(arguments.explain)
    disabled = _disabled(arguments.disable)
    missing = [path for path in arguments.paths if not path.exists()]
    if missing:
        raise BadInputError(f"{missing[0]} does not exist")
    root = knowledge_root(arguments.kb)
    foreign = [path for path in arguments.paths if not path.resolve().is_relative_to(Path(root).resolve())]
    if foreign:  # without a finding it would seem to be right
        raise BadInputError(f"{foreign[0]} is not in the knowledge base {root}", hint="name its folder with --kb")
    if arguments.fix:
        _fix(lint(root, arguments.paths or None), quiet=arguments.json or arguments.format != "text")
    found = lint(root, arguments.paths or None, cached=arguments.cache)
    if arguments.against:
        found = tuple(sorted((*found, *_among(lint_against(root, arguments.against), arguments.paths))))
    if arguments.ansible_lint:
        told, why = lint_playbooks(root, cached=arguments.cache)
        found = tuple(sorted((*found, *_among(told, arguments.paths))))
        if why:
            print(f"unveil: {draw.plain(why, 500)}: playbooks were judged by our own checks only", file=sys.stderr)
    problems = tuple(problem for problem in found if problem.check not in disabled)
    _print(problems, "json" if arguments.json else arguments.format, left_out=len(found) - len(problems))
    counting = LEVELS[: LEVELS.index(arguments.fail_level) + 1]
    return 1 if any(problem.gravity in counting for problem in problems) else 0


def _among(problems: Iterable[Problem], paths: Sequence[Path]) -> list[Problem]:
    if not paths:
        return list(problems)
    wanted = [path.resolve() for path in paths]
    return [each for each in problems if any(Path(each.file).resolve().is_relative_to(path) for path in wanted)]


def _fix(problems: Sequence[Problem], *, quiet: bool) -> None:
    """Mend what can be mended and say what was done."""
    from unveil.knowledge.fixing import fix

    for done in fix(problems):
        line = f"{done.problem.file}:{done.problem.line}: fixed {done.problem.check}: {done.what}"
        print(draw.plain(line, 2000), file=sys.stderr if quiet else sys.stdout)


def _print(problems: Sequence[Problem], form: str, *, left_out: int) -> None:
    match form:
        case "json":
            from unveil.records.codec import encode

            draw.print_json(encode(problems))
        case "sarif":
            from importlib.metadata import version

            from unveil.knowledge.reports import sarif

            draw.print_json(sarif(problems, version=version("unveil")))
        case "junit":
            from unveil.knowledge.reports import junit_findings

            sys.stdout.write(junit_findings(problems))
        case "github":
            from unveil.knowledge.reports import github

            sys.stdout.write(github(problems))
        case _:
            for problem in problems:
                print(draw.plain(problem, 2000))
            more = f" ({left_out} of disabled checks left out)" if left_out else ""
            if not problems:
                _say(f"no findings{more}", style="green")
            elif more:
                _say(more.strip(), style="dim")


def _say(text: str, *, style: str) -> None:
    """Print a line; colours, and what draws them, are for terminals only."""
    if sys.stdout.isatty():
        draw.line(text, style=style)
    else:
        print(text)


def _disabled(ids: Sequence[str]) -> frozenset[str]:
    """Return the checks to leave out; what keeps a host safe is not among those that can be."""
    if not ids:
        return frozenset()
    from unveil.knowledge.checks import CHECKS

    for name in (each.upper() for each in ids):
        if name not in CHECKS:
            raise _no_check(name)
        if not CHECKS[name].silenceable:
            raise BadInputError(
                f"{name} cannot be disabled", hint="a file that breaks it is not used: mend the finding"
            )
    return frozenset(each.upper() for each in ids)


def _list_checks(*, as_json: bool) -> int:
    from unveil.knowledge.checks import CHECKS
    from unveil.records.codec import encode

    if as_json:
        draw.print_json(encode(tuple(CHECKS.values())))
    else:
        draw.table(("check", "gravity", "what it looks for"), ((c.id, c.gravity, c.title) for c in CHECKS.values()))
    return 0


def _explain(name: str) -> int:
    from unveil.knowledge.checks import CHECKS

    check = CHECKS.get(name.upper())
    if check is None:
        raise _no_check(name)
    draw.line(f"{check.id} ({check.gravity}): {check.title}\n\n{check.explanation}")
    return 0


def _no_check(name: str) -> BadInputError:
    return BadInputError(f"no check {name!r}", hint="`unveil kb lint --list-checks` lists them")
