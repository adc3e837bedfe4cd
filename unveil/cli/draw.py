"""How the commands draw: tables and one-line values, as text that a tenant cannot bend.

Names of cgroups, containers and jobs are chosen by tenants. Whatever comes from a host goes through ``plain`` before
it meets a terminal: control characters and direction overrides become visible escapes, and markup stays text.
"""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING, Any

from unveil.records.plain_text import plain, quantity, several, span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rich.console import Console

__all__ = [
    "COLOURS",
    "clock",
    "console",
    "entity",
    "line",
    "plain",
    "print_json",
    "progress",
    "quantity",
    "several",
    "span",
    "table",
]

COLOURS = {
    "anomalous": "yellow", "normal": "green", "unknown": "dim", "firing": "bold red", "pending": "yellow",
    "cleared": "dim", "match": "bold red", "no_match": "green", "kept": "green", "no_change": "green",
    "rolled_back": "yellow", "failed_clean": "red", "failed_dirty": "bold red", "inconclusive": "yellow",
    "reverted_by_other": "yellow", "applying": "cyan", "verifying": "cyan", "rolling_back": "cyan",
}  # fmt: skip
WHOLE = {"run", "episode", "silence", "state", "planned", "since", "when", "until"}  # columns that are copied, or short
FOLDS = 12  # letters: a longer word may be folded


def console() -> Console:
    """Return the terminal (or pipe) for results; colours obey NO_COLOR."""
    from rich.console import Console

    class Results(Console):
        """rich ends the process with 1 when a reader had enough (`| head`); of ours that would mean findings."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    width = None if sys.stdout.isatty() else 120
    return Results(width=width, highlight=False, markup=False, emoji=False)


def print_json(value: Any) -> None:
    """Print a JSON value for a machine."""
    import json

    json.dump(value, sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")


def clock(at_s: float | None) -> str:
    """Return a wall-clock time of day, with the date when it is not today's."""
    if at_s is None:
        return ""
    moment = time.localtime(at_s)
    same_day = time.strftime("%F", moment) == time.strftime("%F")
    return time.strftime("%H:%M:%S" if same_day else "%F %H:%M:%S", moment)


def entity(value: dict[str, str]) -> str:
    """Return an entity's JSON as text: ``cgroup:/pod1``."""
    return plain(value["kind"] if value["kind"] == "host" else f"{value['kind']}:{value['key']}")


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str = "") -> None:
    """Print a table; a cell that names a state takes the state's colour, and says the word all the same.

    On a terminal that is too narrow for its columns each row is a paragraph instead: a name in pieces cannot be copied.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    screen = console()
    texts = [[plain(cell) for cell in row] for row in rows]
    if screen.is_terminal and _least_width(columns, texts) > screen.width:
        _paragraphs(screen, columns, texts, title=title)
        return
    drawn = Table(box=box.SIMPLE_HEAD, title=title or None, title_justify="left", pad_edge=False, expand=False)
    for column in columns:
        right = column.endswith(">")
        name = column.rstrip(">")
        drawn.add_column(name, justify="right" if right else "left", overflow="fold", no_wrap=name in WHOLE)
    for row in texts:
        drawn.add_row(*(Text(text, style=COLOURS.get(text, "")) for text in row))
    if screen.is_terminal:
        screen.print(drawn)
        return
    with screen.capture() as captured:
        screen.print(drawn)
    print("\n".join(row.rstrip() for row in captured.get().splitlines()))  # a pipe, a log: no blanks at the ends


def _least_width(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Return the width below which a table breaks words that are short, or columns that are to stay whole."""
    widths = []
    for number, column in enumerate(columns):
        name = column.rstrip(">")
        words = [row[number] if name in WHOLE else word for row in rows for word in row[number].split() or [""]]
        longest = max(map(len, words), default=0)
        widths.append(max(len(name), longest if name in WHOLE else min(longest, FOLDS)))
    return sum(widths) + 3 * len(columns) - 1


def _paragraphs(screen: Console, columns: Sequence[str], rows: Sequence[Sequence[str]], *, title: str) -> None:
    """Print each row as its first cell, and below it what the other columns say."""
    from rich.padding import Padding
    from rich.text import Text

    screen.print(Text(title and f"{title}\n"))
    for row in rows:
        told = [(column.rstrip(">"), text) for column, text in zip(columns[1:], row[1:], strict=True) if text]
        screen.print(Padding(Text(row[0], overflow="fold"), (0, 0, 0, 1)))
        said = [Text.assemble((f"{name} ", "dim"), (text, COLOURS.get(text, ""))) for name, text in told]
        screen.print(Padding(Text(", ", overflow="fold").join(said), (0, 0, 0, 3)))
    screen.print()


def line(text: str, *, style: str = "") -> None:
    """Print one line (or a few) of text, in a style; a terminal gets it broken between words, below its indent."""
    from rich.text import Text

    screen = console()
    if not screen.is_terminal:
        screen.print(Text(text, style=style), soft_wrap=True)
        return
    for each in text.split("\n"):
        indent = each[: len(each) - len(each.lstrip(" "))]
        words = Text(each[len(indent) :], style=style)
        for row in words.wrap(screen, max(20, screen.width - len(indent)), overflow="fold"):
            row.rstrip()
            screen.print(Text(indent) + row, soft_wrap=True)


@contextlib.contextmanager
def progress(what: str, *, total: float | None, quiet: bool = False) -> Iterator[Callable[[int], None]]:
    """Show how far something is, on a terminal only; yields a function that takes how much is done."""
    if quiet or not sys.stderr.isatty():
        yield lambda _done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:.0f}"), TimeElapsedColumn())
    if total is not None:
        columns = (*columns, TimeRemainingColumn())  # type: ignore[assignment]  # a tuple that grows by one
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)
