"""Texts of ``name number`` lines: ``/proc/vmstat``, ``numastat``, and the ``*.stat`` files of cgroups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from unveil.host.parsers.text import Reading
from unveil.records.metric import Channel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from unveil.host.parsers.text import Text


@dataclass(frozen=True, slots=True)
class Part:
    """What a line's number is a part of: several lines with one metric are summed."""

    metric: str
    scale: float = 1.0


def parse_keyed(
    text: Text, parts: Mapping[bytes, Part], labels: tuple[tuple[str, str], ...] = (), identity: str = ""
) -> Iterator[Reading]:
    """Yield a reading for each metric that has a line; one with a line that is no number, or is there twice, is absent.

    Args:
        parts: the lines that are wanted, by name.
        labels: labels of every channel.
        identity: identity of every reading.
    """
    seen: set[bytes] = set()
    sums: dict[Part, list[int]] = {}
    spoilt: set[Part] = set()
    for line in text.lines():
        name = line.fields[0]
        part = parts.get(name)
        if part is None:
            continue
        number = line.number(1)
        if number is None or len(line.fields) != 2 or name in seen:
            spoilt.add(part)
        else:
            sums.setdefault(part, []).append(number)
        seen.add(name)
    for part, numbers in sums.items():
        if part not in spoilt:
            yield Reading(Channel(part.metric, labels), numbers, part.scale, identity)
