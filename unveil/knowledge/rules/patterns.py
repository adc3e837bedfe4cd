"""Patterns of variables that a hostile name could make the watcher try for ever.

Python's `re` goes back over every way to divide a text among nested repetitions: ``([a-z]+/?)+`` takes a second over 25
letters and a character that does not fit, and twice as long for each letter more. A tenant chooses that text.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MANY = 16  # repetitions that count as without end
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT")


def takes_for_ever(pattern: str) -> bool:
    """Tell whether a pattern (that can be read) repeats without end what is nothing but a repetition without end.

    What must come between two repetitions, like the slash in ``(/[a-z]+)+``, divides the text in one way only.
    """
    parser: Any = importlib.import_module("re._parser")  # private, and the only one that there is
    return any(_divides_freely(body) for body in _endless(parser.parse(pattern)))


def _endless(items: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield the body of each repetition without end, wherever it stands."""
    for kind, argument in items:
        if str(kind) in _REPEATS and argument[1] >= _MANY:
            yield list(argument[2])
        for inner in _inside(kind, argument):
            yield from _endless(inner)


def _inside(kind: Any, argument: Any) -> list[Any]:
    """Return the sequences that one item of a pattern is made of."""
    match str(kind):
        case "MAX_REPEAT" | "MIN_REPEAT":
            return [argument[2]]
        case "SUBPATTERN":
            return [argument[-1]]
        case "BRANCH":
            return list(argument[1])
        case _:
            return []


def _divides_freely(items: Iterable[Any]) -> bool:
    """Tell whether a sequence can be one repetition without end, and nothing else."""
    items = list(items)
    return any(
        _is_endless(item) and all(_may_be_nothing(other) for other in items if other is not item) for item in items
    )


def _is_endless(item: Any) -> bool:
    kind, argument = item
    if str(kind) in _REPEATS and argument[1] >= _MANY:
        return True
    return str(kind) in ("SUBPATTERN", "BRANCH", *_REPEATS) and any(
        _divides_freely(inner) for inner in _inside(kind, argument)
    )


def _may_be_nothing(item: Any) -> bool:
    kind, argument = item
    if str(kind) in _REPEATS:
        return bool(argument[0] == 0)
    if str(kind) == "SUBPATTERN":
        return all(_may_be_nothing(inner) for inner in argument[-1])
    return str(kind) == "AT"
