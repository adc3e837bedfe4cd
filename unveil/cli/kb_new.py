"""`unveil kb new`: a fingerprint and its cases to begin from."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING

from unveil.cli import connect, draw
from unveil.errors import BadInputError, RefusedError, UnwritableError, UsageError

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from unveil.knowledge.drafting import Draft
    from unveil.records.window import WindowSummary

DESCRIPTION = """Write a draft of a fingerprint and its cases that lints clean, passes, and has status experimental.

From a window it asks for what moved that window's verdict, as far from this host's own past as it was: a window of this
host's journal (WATCH:INDEX), the strongest of an episode, or one of a recording (--recording FILE, then INDEX).
`--from-window unmatched` takes the strongest anomalous window that no fingerprint matched. Without a window it asks for
its subsystem's share. What is missing then is the cause: read what the draft says."""
EXAMPLE = "unveil kb new slow_reclaim --from-window unmatched --kb ."
SUBSYSTEMS = ("cpu", "gpu", "memory", "interconnect", "network", "storage")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("name", metavar="NAME", help="its name: lower case letters, digits and _")
    parser.add_argument(
        "--subsystem", choices=SUBSYSTEMS, help="the folder it belongs to (default: the one that led its window)"
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--from-window",
        metavar="WINDOW",
        help="draft it from a window: WATCH:INDEX, INDEX of a recording, or unmatched",
    )
    source.add_argument("--from-episode", metavar="ID", help="draft it from the strongest window of an episode")
    parser.add_argument("--recording", metavar="FILE", help="take the window from a recording, not from the journal")
    parser.add_argument("--owner", help="who answers for its false alarms (default: your user name)")
    connect.add_state_dir(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write both files; 0, or 1 when they do not lint clean."""
    import re
    import uuid
    from datetime import datetime

    from unveil.knowledge.drafting import Author, draft
    from unveil.knowledge.formats.fragments import NAME_PATTERN
    from unveil.knowledge.linting import lint
    from unveil.records.codec import encode
    from unveil.records.subsystem import Subsystem

    if not re.fullmatch(NAME_PATTERN, arguments.name):
        raise BadInputError(
            f"{arguments.name!r} is not a name", hint="lower case letters, digits and _, three at least"
        )
    root = _own_root(arguments.kb)
    taken = sorted((root / "fingerprints").glob(f"*/{arguments.name}.yml"))
    if taken:
        raise RefusedError(f"{taken[0]} is there already", hint="edit it, or choose another name")
    author = Author(
        id=str(uuid.uuid4()),
        date=datetime.now().astimezone().date().isoformat(),
        owner=arguments.owner or _user(),
    )
    window = _window(arguments)
    subsystem = Subsystem(arguments.subsystem or _leading(window))
    written = draft(arguments.name, subsystem, author, window, recording=arguments.recording)
    paths = _write(root / "fingerprints" / subsystem, arguments.name, written)
    problems = lint(root, paths)
    if arguments.json:
        draw.print_json({"files": [str(path) for path in paths], "problems": encode(problems)})
        return 1 if problems else 0
    for path in paths:
        print(path)
    for problem in problems:
        print(draw.plain(problem, 2000))
    draw.line(
        "Next: say in both files what the draft leaves open, then\n"
        f"  unveil kb lint --kb {root}\n  unveil kb test --kb {root} {arguments.name} --mutate"
    )
    return 1 if problems else 0


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:  # a container whose user has no name
        raise UsageError("who answers for it is not known", hint="--owner TEAM") from error


def _own_root(kb: str | None) -> Path:
    """Return a knowledge base that is there to be edited: one in an installed package is not."""
    from unveil.knowledge.content import knowledge_root

    root = knowledge_root(kb)
    if kb is None and root.name == "_content":
        raise RefusedError(
            "the shipped knowledge base is replaced with the package",
            hint="copy its four folders and name them with --kb DIR (docs/OPERATING.md)",
        )
    if not (root / "fingerprints").is_dir():
        raise BadInputError(f"{root} has no fingerprints/", hint="--kb names the folder that holds it")
    return root


def _window(arguments: argparse.Namespace) -> WindowSummary | None:
    from unveil.engine.past_windows import UNMATCHED, strongest_unmatched, strongest_window, window_at
    from unveil.engine.recorded_windows import recorded_window

    if arguments.recording:
        if not arguments.from_window:
            raise UsageError("--recording needs --from-window", hint=f"a window's number, or {UNMATCHED}")
        return recorded_window(arguments.recording, arguments.from_window, kb=arguments.kb or "")
    if arguments.from_window == UNMATCHED:
        return strongest_unmatched(connect.watcher_or_journal(arguments))
    if arguments.from_window:
        return window_at(connect.watcher_or_journal(arguments), arguments.from_window)
    if arguments.from_episode:
        return strongest_window(connect.watcher_or_journal(arguments), arguments.from_episode)
    return None


def _leading(window: WindowSummary | None) -> str:
    """Return the subsystem that led the verdict of a window."""
    shares = {} if window is None else window.attribution.subsystems
    if not shares:
        raise UsageError("--subsystem says where it belongs", hint=f"one of {', '.join(SUBSYSTEMS)}")
    return str(max(shares, key=lambda name: shares[name]))


def _write(folder: Path, name: str, written: Draft) -> tuple[Path, Path]:
    """Write both files, or none."""
    paths = folder / f"{name}.yml", folder / f"{name}.test.yml"
    texts = written.fingerprint, written.test
    done: list[Path] = []
    try:
        folder.mkdir(exist_ok=True)
        for path, text in zip(paths, texts, strict=True):
            with path.open("x", encoding="utf-8") as file:
                done.append(path)
                file.write(text)
    except OSError as error:
        for path in done:
            path.unlink(missing_ok=True)
        raise UnwritableError(f"{error.filename or folder} cannot be written: {error.strerror}") from error
    return paths
