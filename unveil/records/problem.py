"""Problem: what is wrong in a file that a person wrote, where, and how to mend it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Gravity(StrEnum):
    """How bad: an error keeps a knowledge base from loading, a warning does not."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Problem:
    """One finding. Line and column count from one; a finding about a whole file stands at 1:1."""

    file: str
    line: int
    column: int
    check: str
    what: str
    hint: str = ""
    gravity: Gravity = Gravity.ERROR

    def __str__(self) -> str:
        end = f" ({self.hint})" if self.hint else ""
        return f"{self.file}:{self.line}:{self.column}: {self.gravity} {self.check}: {self.what}{end}"
