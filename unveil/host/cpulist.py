"""Lists of CPUs and of NUMA nodes as the kernel writes them: ``0-3,8,10-14:2/4``.

Source: Documentation/admin-guide/kernel-parameters.rst (cpu lists) and lib/bitmap-str.c (bitmap_parselist).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# Far above NR_CPUS (8192) and MAX_NUMNODES (1024) of any kernel: a longer list is a damaged or hostile one.
HIGHEST_ID = 1 << 16

_MASK = re.compile(r"[0-9a-fA-F]+(?:,[0-9a-fA-F]+)*")


def parse_cpulist(text: str | bytes) -> frozenset[int]:
    """Return the ids in a list; the empty list has none.

    Ids are names, not positions: offline CPUs and sparse nodes leave gaps.

    Args:
        text: the content of the file, a trailing newline (or NUL, as in some captured trees) included.

    Raises:
        ValueError: the text is no list of ids, or one of them is beyond ``HIGHEST_ID``.
    """
    if isinstance(text, bytes):
        text = text.decode("ascii", "replace")
    ids: set[int] = set()
    for part in text.strip("\0 \t\r\n").split(","):
        if part := part.strip():
            ids.update(_parse_range(part))
    return frozenset(ids)


def parse_mask(text: str) -> int:
    """Return a mask of CPUs or nodes, ``ff,00000003``, as a number; commas stand every 32 bits.

    Raises:
        ValueError: the text is no mask.
    """
    if not _MASK.fullmatch(text):
        raise ValueError(f"{text[:20]!r} is no mask")
    return int("".join(word.rjust(8, "0") for word in text.split(",")), 16)


def _parse_range(part: str) -> Iterable[int]:
    span, _, pattern = part.partition(":")
    first, dash, last = span.partition("-")
    low = _parse_id(first)
    high = _parse_id(last) if dash else low
    if high < low:
        raise ValueError(f"{part!r} runs backwards")
    if not pattern:
        return range(low, high + 1)
    used, slash, group = pattern.partition("/")
    length, step = _parse_id(used), _parse_id(group)
    if not slash or not 0 < length <= step:
        raise ValueError(f"{part!r} has no pattern of the form used/group")
    return (each for each in range(low, high + 1) if (each - low) % step < length)


def _parse_id(text: str) -> int:
    # int() alone would admit "+1", "1_0", blanks and the digits of other scripts.
    if not (text.isascii() and text.isdigit()) or len(text) > 9:
        raise ValueError(f"{text[:20]!r} is no id")
    if (number := int(text)) > HIGHEST_ID:
        raise ValueError(f"{number} is beyond any CPU or node")
    return number


def format_cpulist(ids: Iterable[int]) -> str:
    """Return ids as the kernel would write them, without a newline: ``0-3,8``; nothing for no id."""
    spans: list[list[int]] = []
    for each in sorted(set(ids)):
        if spans and each == spans[-1][1] + 1:
            spans[-1][1] = each
        else:
            spans.append([each, each])
    return ",".join(f"{low}-{high}" if high > low else f"{low}" for low, high in spans)
