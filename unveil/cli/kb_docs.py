"""`unveil kb docs`: the knowledge base as pages for a browser."""

from __future__ import annotations

import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.cli import draw, kb_recordings
from unveil.cli.kb_scorecard import mutants_of, suite_of
from unveil.errors import RefusedError, UnwritableError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from unveil.knowledge.backtest import BacktestReport
    from unveil.knowledge.testing import Suite

DESCRIPTION = """Write a page for each fingerprint and each fix, with its evidence: cases, the mutants that they notice,
and what labelled recordings say; and an index by subsystem. Plain HTML with one style sheet, for light and dark,
without scripts: put the folder on any web server, or open its index.html."""
EXAMPLE = "unveil kb docs --kb . --output site"
MARK = "/* unveil kb docs */"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("--output", type=Path, default=Path("kb-docs"), metavar="DIR", help="default: kb-docs")
    kb_recordings.add_recordings(parser)
    parser.add_argument("--no-recordings", action="store_true", help="watch no recording")
    parser.add_argument("--no-mutants", action="store_true", help="make no mutants")


def run(arguments: argparse.Namespace) -> int:
    """Measure, and write the pages."""
    from unveil.engine.recorded_cases import watch_cases
    from unveil.knowledge.pages import Evidence, pages
    from unveil.knowledge.scorecard import cards
    from unveil.knowledge.testing import run_suite

    _check(arguments.output)
    suite = suite_of(arguments)
    fingerprints = suite.knowledge.fingerprints
    report = run_suite(suite, watch=watch_cases)
    mutated = () if arguments.no_mutants else mutants_of(suite, fingerprints, quiet=arguments.json)
    backtest = None if arguments.no_recordings else _backtest(suite, arguments)
    evidence = Evidence(
        report=report,
        mutated=mutated,
        backtest=backtest,
        cards=cards(fingerprints, report, mutated, () if backtest is None else backtest.scores, None),
        sources=_sources(arguments.kb),
    )
    made = pages(suite.knowledge, evidence, version=version("unveil"))
    _write(made, arguments.output)
    if arguments.json:
        draw.print_json({"folder": str(arguments.output), "pages": sorted(made)})
    else:
        draw.line(f"{arguments.output / 'index.html'}: {len(made) - 1} pages")
    return 0


def _backtest(suite: Suite, arguments: argparse.Namespace) -> BacktestReport | None:
    from unveil.engine.backtesting import Job
    from unveil.knowledge.backtest import report

    jobs = [Job(recording=path, kb=arguments.kb or "") for path in kb_recordings.labelled(arguments.recordings)]
    names = [each.name for each in suite.knowledge.fingerprints]
    return report(kb_recordings.watch(jobs, arguments), names) if jobs else None


def _sources(kb: str | None) -> dict[str, str]:
    from unveil.knowledge.content import knowledge_root
    from unveil.knowledge.pack import read_pack

    files = read_pack(knowledge_root(kb)).files
    return {path: text.decode(errors="replace") for path, text in files.items() if path.endswith(".yml")}


def _check(folder: Path) -> None:
    """Refuse to replace a folder that holds something else."""
    style = folder / "style.css"
    ours = style.is_file() and style.read_text(errors="replace").startswith(MARK)
    if folder.exists() and not ours and (not folder.is_dir() or any(folder.iterdir())):
        raise RefusedError(f"{folder} holds something else", hint="name a new folder with --output DIR")


def _write(made: Mapping[str, str], folder: Path) -> None:
    """Write all pages, then let the folder be them: pages of what is gone go, too."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            scratch.chmod(0o755)
            for name, text in made.items():
                page = scratch / name
                page.parent.mkdir(exist_ok=True)
                page.write_text(text, encoding="utf-8")
            if folder.exists():
                shutil.rmtree(folder)
            scratch.rename(folder)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    except OSError as error:
        raise UnwritableError(f"{error.filename or folder} cannot be written: {error.strerror}") from error
