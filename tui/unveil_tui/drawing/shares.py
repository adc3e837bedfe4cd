"""What moved a window, by subsystem: signed bars. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil_tui.drawing.bars import signed_bar

if TYPE_CHECKING:
    from unveil.records.attribution import Attribution

WIDE, NARROW = 21, 11
_BESIDE_BAR = 12 + 1 + 1 + 4 + 3  # name, percent, gaps


def subsystem_lines(attribution: Attribution, *, width: int) -> list[str]:
    """Return a bar for each subsystem that had a part: to the right where its features are above what was expected.

    As many bars stand side by side as there is room for.
    """
    if not attribution.features:
        return []
    lean: dict[str, float] = {}
    for each in attribution.features:
        lean[each.subsystem] = lean.get(each.subsystem, 0.0) + each.share * (1 if each.sigma >= 0 else -1)
    shares = sorted(attribution.subsystems.items(), key=lambda each: -each[1])
    bar = WIDE if (width + 3) // (_BESIDE_BAR + WIDE) >= 2 else NARROW
    cells = [
        f"{name:12} {signed_bar(share, lean.get(name, 1.0), bar)} {share:4.0%}"
        for name, share in shares
        if share >= 0.005
    ]
    beside = max(1, (width + 3) // (_BESIDE_BAR + bar))
    return ["   ".join(cells[at : at + beside]).rstrip() for at in range(0, len(cells), beside)]
