"""Part: facts that are read together, and again only where something that was read for them is not as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.host.facts.sheet import FactSheet

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.host.root import HostRoot


class Part:
    """Some facts of a host, kept true.

    Attributes:
        sheet: what they are now.
    """

    __slots__ = ("_tell", "sheet")

    def __init__(self, root: HostRoot, tell: Callable[[FactSheet], object]) -> None:
        """Read it.

        Args:
            tell: writes on a sheet what follows from what it looks at, and from nothing else that changes.
        """
        self._tell = tell
        self.sheet = FactSheet(root)
        tell(self.sheet)

    def refresh(self) -> bool:
        """Read it again unless all looks as before; True when something else is told now."""
        if self.sheet.looks.stand():
            return False
        before, self.sheet = self.sheet, FactSheet(self.sheet.root)
        self._tell(self.sheet)
        return not self.sheet.says_the_same(before)
