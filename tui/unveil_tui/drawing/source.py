"""YAML as it is written, with line numbers, and marks at the lines that have a problem. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.text import Text

from unveil.records.plain_text import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_PROBLEM = re.compile(r"^(?P<path>[^:]+):(?P<line>\d+):(?P<column>\d+): (?P<what>.*)$", re.DOTALL)
_KEY = re.compile(r"^(?P<lead>\s*(?:- )?)(?P<key>[A-Za-z_][\w.\-]*)(?=:(?:\s|$))")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A problem with its place in a file of the knowledge base; *line* counts from 1."""

    path: str
    line: int
    what: str


def trouble(problem: str, root: str) -> Trouble | None:
    """Return the place that a problem names, ``None`` where it names none; *path* is below the root."""
    found = _PROBLEM.match(problem)
    if found is None:
        return None
    return Trouble(path=found["path"].removeprefix(f"{root}/"), line=int(found["line"]), what=found["what"])


def yaml_text(text: str, troubles: Iterable[Trouble] = ()) -> Text:
    """Return a file's text: numbered lines, keys in bold, comments dim, ``>>`` and the problem below its line."""
    marked: Mapping[int, list[str]] = {}
    for each in troubles:
        marked = {**marked, each.line: [*marked.get(each.line, []), each.what]}
    drawn = Text()
    for number, line in enumerate(text.splitlines(), start=1):
        drawn.append(f"{'>>' if number in marked else '  '}{number:4} ", "bold" if number in marked else "dim")
        drawn.append_text(_line(plain(line, 1000)))
        drawn.append("\n")
        for what in marked.get(number, ()):
            drawn.append(f"     ^ {plain(what, 400)}\n", "bold reverse")
    return drawn


def _line(line: str) -> Text:
    if line.lstrip().startswith("#"):
        return Text(line, "dim italic")
    found = _KEY.match(line)
    if found is None:
        return Text(line)
    return Text.assemble(found["lead"], (found["key"], "bold"), line[found.end() :])
