"""`unveil kb`: the actions on a knowledge base, one file each (`kb_ACTION.py`)."""

from __future__ import annotations

import importlib
from functools import partial
from typing import TYPE_CHECKING, Any

from unveil.cli import connect

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

DESCRIPTION = """Write, lint, test, measure and compare fingerprints, remediations, playbooks and what the site adds.

The same loader is used by the running watcher: what lints clean here is in use there a second after it was saved."""
EXAMPLE = "unveil kb lint fingerprints/memory"

# One line an action, and what `unveil kb --help` says of it. Its module kb_ACTION has DESCRIPTION, EXAMPLE,
# add_arguments(parser) and run(arguments) -> exit code; it is imported only when its action is asked for.
ACTIONS = {
    "lint": "check every file; file:line:column for each finding",
    "test": "run the cases beside the fingerprints",
    "explain": "say what a fingerprint asks, why, and whether this host can answer",
    "new": "write a draft of a fingerprint and its cases",
    "diff": "say what a change of the knowledge base means",
    "backtest": "score the knowledge base on labelled recordings",
    "tune": "draw a clause's threshold against what it finds and what it costs",
    "scorecard": "show how far each fingerprint is proven",
    "hygiene": "list fingerprints that are dead weight",
    "docs": "write the knowledge base as pages for a browser",
    "schema": "write the JSON Schemas that editors complete from",
    "pack": "make one file of the knowledge base, to sign and to install",
    "sign": "sign a pack with an SSH key",
    "verify": "say what is in a pack and who signed it",
    "install": "put a pack into use in one step, or take it back",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions; their flags are declared when one of them is parsed."""
    kind: Any = partial(_Action, type(parser))
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, prog=parser.prog, parser_class=kind)
    for name, summary in ACTIONS.items():
        actions.add_parser(name, help=summary)


class _Action:
    """What argparse takes for the parser of an action: the true one is made when there is something to parse."""

    def __init__(self, kind: type[argparse.ArgumentParser], prog: str) -> None:
        self._kind = kind
        self._prog = prog

    def parse_known_args(
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Declare the flags of the action, and parse its words."""
        module = importlib.import_module(f"unveil.cli.kb_{self._prog.rpartition(' ')[2]}")
        parser = self._kind(prog=self._prog, description=module.DESCRIPTION, epilog=f"example:\n  {module.EXAMPLE}")
        module.add_arguments(parser)
        parser.add_argument("--kb", metavar="DIR", help="knowledge base (default: the shipped one)")
        connect.add_json(parser)
        return parser.parse_known_args(args, namespace)


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked."""
    code: int = importlib.import_module(f"unveil.cli.kb_{arguments.action}").run(arguments)
    return code
