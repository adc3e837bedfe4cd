"""The command line: finds the command, runs it, and turns every error into one line and an exit code.

Exit codes: 0 fine, 1 findings (or what was asked did not hold), 2 bad input, 3 usage.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import sys
from pathlib import Path
from typing import Any, NoReturn

from unveil.cli.defaults import fill
from unveil.cli.helping import Layout
from unveil.errors import UnreadableError, UnveilError, UsageError

# One line a command: module in this package, and what `unveil --help` says of it. A module has DESCRIPTION, EXAMPLE,
# add_arguments(parser) and run(arguments) -> exit code; it is imported only when its command is asked for.
COMMANDS = {
    "demo": "show the whole journey on a recording, without touching this host",
    "watch": "watch this host: windows, anomalies, matches, and fixes that were approved",
    "tui": "open the cockpit on a running watcher or on a recording",
    "status": "say in one screen how the host and its watcher are",
    "doctor": "list what is measured here, what is not and why, and what it costs",
    "snapshot": "print everything that this host shows, once",
    "record": "record this host to a Parquet file",
    "replay": "run a recording through the same code as a live host",
    "eval": "compare the combinations of detectors on labelled recordings",
    "explain": "say why a fingerprint matched, or why not, clause by clause",
    "episodes": "list what was found, newest first",
    "runs": "plan, approve, apply, follow, cancel and roll back fixes",
    "fleet": "carry one fix out over many hosts of an Ansible inventory, in batches",
    "gpu": "give the GPUs' handles back for maintenance, and take them again",
    "silence": "keep automation away from an episode for a while",
    "kb": "lint, test, explain, draft, compare and backtest the knowledge base",
}


class _Parser(argparse.ArgumentParser):
    """argparse that raises instead of exiting, so that usage errors look like all others and exit with 3.

    A flag is written out: of a command that changes hosts, `--y` is not understood as `--yes`.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"allow_abbrev": False, "formatter_class": Layout, **settings})

    def error(self, message: str) -> NoReturn:
        import difflib  # only for what is misspelt

        wrong = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)
        near = difflib.get_close_matches(wrong[1], re.findall(r"'([^']+)'", wrong[2]), 1) if wrong else []
        meant = f"did you mean `{self.prog} {near[0]}`? " if near and "argument -" not in message else ""
        raise UsageError(message, hint=f"{meant}`{self.prog} --help` shows an example")


def build_parser(command: str | None = None, *, alone: bool = False) -> argparse.ArgumentParser:
    """Return the parser; only *command*'s own arguments are loaded (all others are names in the help).

    Args:
        alone: whether nothing stands before the command, so that no other one's name can be asked for.
    """
    parser = _Parser(
        prog="unveil",
        description="Finds silent inefficiencies of machine-learning hosts and fixes them, verified or undone.",
        epilog="Try `unveil demo` first: it changes nothing.",
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    parsers = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser, prog=parser.prog)
    for name, summary in COMMANDS.items():
        if alone and name != command:
            continue
        if name != command:
            parsers.add_parser(name, help=summary, add_help=False)
            continue
        module = importlib.import_module(f"unveil.cli.{name}")
        child = parsers.add_parser(
            name,
            help=summary,
            description=module.DESCRIPTION,
            epilog=f"example:\n  {module.EXAMPLE}",
        )
        module.add_arguments(child)
        child.set_defaults(entry=module.run)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    words = sys.argv[1:] if argv is None else argv
    if sys.stdout is None:  # started with its standard output closed
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # lives as long as the process
    command = next((word for word in words if not word.startswith("-")), None)
    try:
        known = command if command in COMMANDS else None
        parser = build_parser(known, alone=known is not None and words[0] == known)
        arguments, unknown = parser.parse_known_args(words)
        if unknown:
            asked = " ".join(each for each in ("unveil", command, getattr(arguments, "action", None)) if each)
            what = f"unrecognized arguments: {' '.join(unknown)}"
            raise UsageError(what, hint=f"`{asked} --help` shows an example")
        if arguments.version:
            return _print_version()
        if arguments.command is None:
            parser.print_help()
            return 0
        fill(arguments)
        code = int(arguments.entry(arguments))
        sys.stdout.flush()  # a full disk is said here, not by the interpreter at its end
        return code
    except UnveilError as error:
        sys.stdout.flush()
        hint = f"\n  hint: {error.hint}" if error.hint else ""
        print(f"unveil: {error.what}{hint}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of our output had enough: `unveil runs list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # what no command has a better word for: a folder that may not be read, a full disk
        where = f"{error.filename}: " if error.filename is not None else ""
        print(f"unveil: {where}{error.strerror or error}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still buffered would fail again
        return UnreadableError.exit_code


def _print_version() -> int:
    from importlib.metadata import version  # dear, and only who asks for it needs it

    print(f"unveil {version('unveil')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
