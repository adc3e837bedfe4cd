"""`unveil kb`: the actions on a knowledge base, one file each (`kb_ACTION.py`)."""

from __future__ import annotations

import argparse

from unveil.cli import (
    connect,
    kb_backtest,
    kb_diff,
    kb_docs,
    kb_explain,
    kb_hygiene,
    kb_install,
    kb_lint,
    kb_new,
    kb_pack,
    kb_schema,
    kb_scorecard,
    kb_sign,
    kb_test,
    kb_tune,
    kb_verify,
)

DESCRIPTION = """Write, lint, test, measure and compare fingerprints, remediations, playbooks and what the site adds.

The same loader is used by the running watcher: what lints clean here is in use there a second after it was saved."""
EXAMPLE = "unveil kb lint fingerprints/memory"

# One line an action. Its module has SUMMARY, DESCRIPTION, EXAMPLE, add_arguments(parser), run(arguments) -> exit code.
ACTIONS = {
    "lint": kb_lint,
    "test": kb_test,
    "explain": kb_explain,
    "new": kb_new,
    "diff": kb_diff,
    "backtest": kb_backtest,
    "tune": kb_tune,
    "scorecard": kb_scorecard,
    "hygiene": kb_hygiene,
    "docs": kb_docs,
    "schema": kb_schema,
    "pack": kb_pack,
    "sign": kb_sign,
    "verify": kb_verify,
    "install": kb_install,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and their flags."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, module in ACTIONS.items():
        action = actions.add_parser(
            name,
            help=module.SUMMARY,
            description=module.DESCRIPTION,
            epilog=f"example:\n  {module.EXAMPLE}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.add_arguments(action)
        action.add_argument("--kb", metavar="DIR", help="knowledge base (default: the shipped one)")
        connect.add_json(action)


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked."""
    code: int = ACTIONS[arguments.action].run(arguments)
    return code
