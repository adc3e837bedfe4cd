"""Every error that unveil raises on purpose, and the exit code each one earns.

UnveilError                  1   something that was asked for did not hold
├── BadInputError            2   a file or value that a person wrote is wrong (file:line:column where there is one)
│   └── UnreadableError      2   … or cannot be read at all
├── UsageError               3   the command line is wrong
├── HostError                1   the host does not serve what we read
│   ├── SourceAbsentError    1   this host has no such source: normal, the channels are absent
│   └── SourceFailedError    1   the source is there and failed
├── RefusedError             1   policy, limits or state forbid it: said with the reason
├── ConflictError            1   someone else changed what we were about to write
├── UnwritableError          1   unveil's own state cannot be written (disk full): what was asked was not done
├── WatcherAbsentError       1   nobody listens on the control socket
└── RunFailedError           1   a run did not do what its plan said
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable


class UnveilError(Exception):
    """An error with its cure: *what* happened, in one sentence, and a *hint* what to do about it."""

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, *, hint: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint


class BadInputError(UnveilError):
    """A file or a value that a person wrote is wrong."""

    exit_code = 2


class UnreadableError(BadInputError):
    """A file that a person named cannot be read."""


class UsageError(UnveilError):
    """The command line is wrong."""

    exit_code = 3


class HostError(UnveilError):
    """The host does not serve what we read."""


class SourceAbsentError(HostError):
    """This host has no such source; its channels are absent, which is normal."""


class SourceFailedError(HostError):
    """The source exists and failed."""


class RefusedError(UnveilError):
    """Policy, limits or the state of a run forbid what was asked."""


class ConflictError(UnveilError):
    """Someone else changed what was about to be written; nothing was overwritten."""


class UnwritableError(UnveilError):
    """Unveil's own state cannot be written; what depended on it was not done."""


class WatcherAbsentError(UnveilError):
    """Nobody listens on the control socket."""


class RunFailedError(UnveilError):
    """A run did not do what its plan said."""


def did_you_mean(name: str, known: Iterable[str], *, otherwise: str) -> str:
    """Return the hint for a name that nobody knows: the nearest that is known, or where they are listed."""
    from difflib import get_close_matches  # only for what is misspelt

    near = get_close_matches(name, list(known), n=1)
    return f"did you mean {near[0]}?" if near else otherwise
