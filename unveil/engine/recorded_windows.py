"""A window of a recording, as a watch over it judges it."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from unveil.engine.past_windows import UNMATCHED, unmatched_of
from unveil.engine.replaying import RecordedWatch
from unveil.errors import BadInputError

if TYPE_CHECKING:
    from unveil.records.window import WindowSummary


def recorded_window(path: str, which: str, *, kb: str = "") -> WindowSummary:
    """Return a window of a recording.

    Args:
        which: its number, or ``unmatched`` for the strongest anomalous one that no fingerprint matches.
        kb: knowledge base that it is held against.

    Raises:
        BadInputError: it has no such window.
    """
    if which != UNMATCHED and not which.isdecimal():
        raise BadInputError(f"{which!r} is no window of a recording", hint=f"its number, or {UNMATCHED}")
    with closing(RecordedWatch(path, kb=kb)) as watch:
        windows = (outcome.summary for outcome in watch.outcomes())
        if which == UNMATCHED:
            return unmatched_of(windows, path)
        found = next((window for window in windows if window.index == int(which)), None)
    if found is None:
        raise BadInputError(f"{path} has no window {which}", hint="`unveil replay` numbers them")
    return found
