"""FactSheet: what a reading of facts writes on; it turns every failure into an absent fact with a reason.

It remembers what was looked at: while that looks the same, what is written on it stands.
"""

from __future__ import annotations

import errno
import os
import re
from typing import TYPE_CHECKING

from unveil.host.facts.looks import Looks, content
from unveil.host.root import HostRoot
from unveil.records.entity import HOST, Entity
from unveil.records.fact import Fact, FactTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from unveil.records.fact import FactValue

_NUMBER = re.compile(r"-?[0-9]{1,20}")

_WHY = {
    errno.ENOENT: "this kernel has no {path}",
    errno.ENOTDIR: "this kernel has no {path}",
    errno.EACCES: "reading {path} takes more rights",
    errno.EPERM: "reading {path} takes more rights",
    errno.ENODEV: "the device behind {path} is gone",
    errno.ENXIO: "the device behind {path} is gone",
    errno.ESRCH: "the process behind {path} is gone",
    errno.EINVAL: "the driver does not support {path}",
    errno.EOPNOTSUPP: "the driver does not support {path}",
    errno.ENODATA: "the driver does not support {path}",
    errno.EXDEV: "{path} leads out of the host root",
}


def why(error: OSError, path: str) -> str:
    """Return in plain words why a file could not be read."""
    words = _WHY.get(error.errno or 0)
    if words is None:
        return f"/{path}: {os.strerror(error.errno or 0)}"
    return words.format(path=f"/{path}")


def plain(data: bytes) -> str:
    """Return a kernel file's content as text, without the blanks (or, in captured trees, NULs) at its ends."""
    return data.decode("utf-8", "surrogateescape").strip("\0 \t\r\n")


def number(text: str) -> float:
    """Return the number a file holds.

    Raises:
        ValueError: it holds something else, e.g. ``N/A``; or what ``int`` alone would admit, as ``1_000``, ``+1``,
            digits of other scripts and more of them than any counter has.
    """
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text[:20]!r} is no number")
    return float(text)


def number_or_none(text: str | None) -> float | None:
    """Return the number of a file that may be missing or hold something else."""
    return float(text) if text is not None and _NUMBER.fullmatch(text) else None


def chosen(text: str) -> str:
    """Return the bracketed choice of ``always [madvise] never``, or the text itself when it offers no choice.

    Raises:
        ValueError: nothing is chosen.
    """
    before, bracket, rest = text.partition("[")
    if not bracket:
        if not before:
            raise ValueError("empty")
        return before
    return rest.partition("]")[0]


class FactSheet:
    """Facts and raw managed settings, gathered one by one.

    Attributes:
        looks: what was looked at for them. What is read of the *root* by other ways is not looked at again: it stays as
            it is while its device is there.
    """

    def __init__(self, root: HostRoot) -> None:
        self.root = root
        self.looks = Looks(root)
        self._facts: dict[tuple[str, Entity], Fact] = {}
        self.settings: dict[str, str] = {}

    def tell(self, name: str, value: FactValue, entity: Entity = HOST, *, setting: str | None = None) -> None:
        """Write down a fact."""
        self._facts[name, entity] = Fact(name=name, entity=entity, value=value, setting=setting)

    def miss(self, name: str, reason: str, entity: Entity = HOST, *, setting: str | None = None) -> None:
        """Write down that a fact is absent, and why."""
        self._facts[name, entity] = Fact(name=name, entity=entity, value=None, reason=reason, setting=setting)

    def adopt(self, facts: Iterable[Fact], settings: dict[str, str] | None = None) -> None:
        """Take over facts (and raw settings) that were read elsewhere or before."""
        self._facts.update({(fact.name, fact.entity): fact for fact in facts})
        self.settings.update(settings or {})

    def take(self, other: FactSheet, *, watch: bool = False) -> None:
        """Take over another sheet; with *watch* what was looked at for it, too."""
        self._facts.update(other._facts)
        self.settings.update(other.settings)
        if watch:
            self.looks.take(other.looks)

    def says_the_same(self, other: FactSheet) -> bool:
        """Tell whether the same facts and settings are written on another sheet."""
        return self._facts == other._facts and self.settings == other.settings

    def facts(self) -> tuple[Fact, ...]:
        """Return what was written down so far."""
        return tuple(self._facts.values())

    def value(self, name: str, entity: Entity = HOST) -> FactValue | None:
        """Return what was written down, None where absent."""
        fact = self._facts.get((name, entity))
        return None if fact is None else fact.value

    def read(
        self,
        name: str,
        path: str,
        parse: Callable[[str], FactValue],
        entity: Entity = HOST,
        *,
        setting: str | None = None,
    ) -> FactValue | None:
        """Read a file into a fact and return its value.

        Args:
            parse: from the stripped text to the value; a ValueError makes the fact absent.
            setting: the address of the managed setting when the file is one; its content is then kept as it stands.
        """
        try:
            data = self.looks.see(content, path)
        except OSError as error:
            self.miss(name, why(error, path), entity)
            self.settings.pop(setting or "", None)
            return None
        if setting is not None:
            self.settings[setting] = data.decode("utf-8", "surrogateescape")
        text = plain(data)
        try:
            value = parse(text)
        except ValueError:
            self.miss(name, f"/{path} reads {text[:40]!r}", entity, setting=setting)
            return None
        self.tell(name, value, entity, setting=setting)
        return value

    def text(self, path: str) -> str | None:
        """Return the stripped content of a file that is no fact by itself, None where it cannot be read."""
        try:
            return plain(self.looks.see(content, path))
        except OSError:
            return None

    def head(self, path: str, size: int) -> str:
        """Return the beginning of a long file as text, empty where it cannot be read; it is not looked at again."""
        try:
            return plain(self.root.head(path, size))
        except OSError:
            return ""

    def names(self, path: str) -> tuple[str, ...]:
        """Return the names in a directory; none where it cannot be listed."""
        try:
            return self.looks.see(HostRoot.list, path)
        except OSError:
            return ()

    def table(self) -> FactTable:
        """Return everything that was written down."""
        return FactTable(facts=tuple(self._facts.values()), settings=dict(self.settings))
