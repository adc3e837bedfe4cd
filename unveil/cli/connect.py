"""Where the commands find their watcher: its socket, or its journal when it does not run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.errors import BadInputError, UnreadableError, WatcherAbsentError

if TYPE_CHECKING:
    import argparse

    from unveil.engine.client import Client
    from unveil.engine.history import History
    from unveil.engine.state_dir import StateDir


def add_state_dir(parser: argparse.ArgumentParser) -> None:
    """Give a command the flag that says which watcher is meant."""
    parser.add_argument(
        "--state-dir",
        type=Path,
        default=None,
        metavar="DIR",
        help="where journal and socket live (default: $UNVEIL_STATE_DIR, else /var/lib/unveil for root, "
        "~/.local/state/unveil for others)",
    )


def checked_root(root: Path) -> Path:
    """Return the tree as it is: a misspelt one would be a host without anything, which looks healthy.

    Raises:
        BadInputError: it holds neither procfs nor sysfs.
    """
    if not any((root / name).is_dir() for name in ("proc", "sys")):
        raise BadInputError(f"{root} holds neither proc nor sys", hint="--host-root names the folder that holds them")
    return root


def add_json(parser: argparse.ArgumentParser) -> None:
    """Give a command the flag for machines."""
    parser.add_argument("--json", action="store_true", help="print JSON for a machine")


def state_dir(arguments: argparse.Namespace) -> StateDir:
    """Return the state directory that is meant.

    Raises:
        BadInputError: it names something else than a directory.
    """
    from unveil.engine.state_dir import StateDir, default_state_dir

    meant = StateDir((arguments.state_dir or default_state_dir()).absolute())
    meant.refuse_file()
    return meant


def watcher(arguments: argparse.Namespace) -> Client:
    """Return a connection to the running watcher; WatcherAbsentError on the first question when there is none."""
    from unveil.engine.client import Client

    return Client(state_dir(arguments).socket)


def watcher_or_journal(arguments: argparse.Namespace) -> Client | History:
    """Return the running watcher, else its journal; that it is the journal is said on standard error.

    Raises:
        WatcherAbsentError: there is neither.
    """
    from unveil.engine.history import History

    client = watcher(arguments)
    try:
        client.call("ping")
        return client
    except WatcherAbsentError as absent:
        try:
            journal = History(state_dir(arguments).journal)
        except UnreadableError:
            raise absent from None
        print("unveil: no watcher runs; this is its journal, and may be out of date", file=sys.stderr)
        return journal
