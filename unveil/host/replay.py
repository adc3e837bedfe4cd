"""Replay: a recording, second after second, with the block boundaries of the live run.

What is fed from a replay gives bit for bit the windows of the run that was recorded: it gets the same blocks, cut at
the same places, with the same facts before the same seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unveil.host.recorded_table import Tick
from unveil.host.recording import read_recording

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

__all__ = ["Replay", "Tick"]


class Replay:
    """A recording to iterate over, as often as one likes.

    Raises:
        UnreadableError: the path is no recording; also while iterating, where a damaged place is reached.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._recording = read_recording(path)

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Return what the writer said about the recording."""
        return self._recording.metadata

    @property
    def complete(self) -> bool:
        """Tell whether the recording was finished, rather than left by a crash."""
        return self._recording.complete

    def __iter__(self) -> Iterator[Tick]:
        """Yield the ticks in recorded order, as fast as they are taken."""
        return self._recording.ticks()
