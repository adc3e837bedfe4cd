"""Names of features and facts, wherever they stand (K203, K216).

Judged from paths alone, so that a file with other mistakes still gets its typos told in the same breath.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unveil.knowledge.catalogues import catalogues
from unveil.knowledge.checks import finding, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.knowledge.yaml_positions import Document, Path
    from unveil.records.problem import Problem


def check_names(document: Document) -> Iterator[Problem]:
    """Yield every feature and fact that the catalogues do not have."""
    for path in document.paths():
        match path:
            case (*_, "feature" | "fact" as what):
                yield from _value(document, path, what)
            case (*_, "clauses", str(), "per"):
                yield from _value(document, path, "feature")
            case ("fields", int()):
                yield from _value(document, path, "feature")
            case ("cases", int(), "features" | "reference", str()):
                yield from _key(document, path, "feature")
            case ("cases", int(), "facts", str()):
                yield from _key(document, path, "fact")
            case ("variables", str(), "from"):
                yield from _origin(document, path)


def _value(document: Document, path: Path, what: str) -> Iterator[Problem]:
    name = look_up(document.data, path)
    if isinstance(name, str) and name not in _known(what):
        yield finding(*_told(document, path, what, name))


def _key(document: Document, path: Path, what: str) -> Iterator[Problem]:
    name = str(path[-1]).partition("[")[0]
    if name not in _known(what):
        yield finding(*_told(document, path, what, name), on_key=True)


def _origin(document: Document, path: Path) -> Iterator[Problem]:
    source = look_up(document.data, path)
    if not isinstance(source, str):
        return
    where, _, name = source.partition(".")
    if where in ("fact", "setting") and name not in _known("fact"):
        yield finding(*_told(document, path, "fact", name))


def _told(document: Document, path: Path, what: str, name: str) -> tuple[str, Document, Path, str, str]:
    return "K203" if what == "feature" else "K216", document, path, f"unknown {what} {name!r}", _hint(what, name)


def _hint(what: str, name: str) -> str:
    known = _known(what)
    if found := nearest(name, known):
        return found
    subsystem = name.partition(".")[0]
    return f"{sum(1 for each in known if each.startswith(f'{subsystem}.'))} {what}s begin with {subsystem!r}"


def _known(what: str) -> Any:
    return catalogues().features if what == "feature" else catalogues().facts


def look_up(data: Any, path: Path) -> Any:
    """Return the value at a path of a document's data."""
    for key in path:
        data = data[key]
    return data
