"""Files of PCI functions: width and speed of their link, errors that their port reported.

Source: Documentation/ABI/testing/sysfs-bus-pci, sysfs-bus-pci-devices-aer_stats, drivers/pci/pci-sysfs.c.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from unveil.host.parsers.text import Reading
from unveil.records.metric import Channel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.host.parsers.text import Text

WIDEST = 32
FASTEST = 1024
"""Far beyond any link; ``Unknown`` reads 0, 63 or 255 lanes."""

_SPEED = re.compile(r"([0-9]{1,4})(?:\.[0-9]+)? GT/s(?: PCIe)?", re.ASCII)


def lanes(text: str) -> int | None:
    """Return the lanes that ``current_link_width`` or ``max_link_width`` tells, None for what is no width."""
    text = text.strip("\0 \t\r\n")
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 4 else 0
    return number if 0 < number <= WIDEST else None


def whole_speed(text: str) -> int | None:
    """Return the speed that ``current_link_speed`` tells, in whole GT/s: 2 for 2.5; None for ``Unknown``."""
    found = _SPEED.fullmatch(text.strip("\0 \t\r\n"))
    number = int(found[1]) if found is not None else 0
    return number if 0 < number <= FASTEST else None


def parse_link(text: Text, name: str, pci: str, most: int | None) -> Iterator[Reading]:
    """Yield the width or speed of a link, and its share of the most that both of its ends can do.

    Args:
        name: ``width`` or ``speed``.
        most: None where that is not known.
    """
    first = next(text.lines(lambda raw: raw.replace(b".", b" ")), None)
    if first is None or (number := first.number(0)) is None:
        return
    first.pin(0, len(first.fields))  # so that a change is looked at: 255 lanes are none
    raw = first.raw.decode("ascii", "replace")
    value = lanes(raw) if name == "width" else whole_speed(re.sub(r"^([0-9]+) ([0-9])", r"\1.\2", raw))
    if value is None:
        return
    labels = (("pci", pci),)
    yield Reading(Channel(f"interconnect.pcie_{name}", labels), (number,))
    if most is not None:
        yield Reading(Channel(f"interconnect.pcie_{name}_share", labels), (number,), 1 / max(most, value))


def parse_errors(text: Text, metric: str, pci: str) -> Iterator[Reading]:
    """Yield the total of ``aer_dev_correctable``, ``aer_dev_nonfatal`` or ``aer_dev_fatal``, the last of its lines."""
    for line in text.lines():
        if (
            line.fields[0].startswith(b"TOTAL_ERR_")
            and len(line.fields) == 2
            and (number := line.number(1)) is not None
        ):
            yield Reading(Channel(metric, (("pci", pci),)), (number,))
