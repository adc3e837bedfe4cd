"""Files of one number, as sysfs has thousands of them: counters of devices, temperatures, widths of links."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.host.parsers.text import Reading
from unveil.records.metric import Channel

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from unveil.host.parsers.text import Text

Labels = tuple[tuple[str, str], ...]


def parse_number(
    text: Text,
    metric: str,
    labels: Labels = (),
    *,
    scale: float = 1.0,
    identity: str = "",
    unknown: Collection[int] = (),
) -> Iterator[Reading]:
    """Yield the one number of a file; nothing for a word such as ``N/A (no PMA)``, or a number with a sign.

    Args:
        unknown: numbers by which this kind of file says that it does not know. With any, the file is looked at anew
            whenever its number changes, so they are for what seldom does.
    """
    lines = list(text.lines())
    if len(lines) != 1 or len(lines[0].fields) != 1 or (number := lines[0].number(0)) is None:
        return
    if unknown:
        lines[0].pin(0, 1)
        if len(lines[0].fields[0]) > 9 or int(lines[0].fields[0]) in unknown:
            return
    yield Reading(Channel(metric, labels), (number,), scale, identity)
