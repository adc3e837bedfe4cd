"""Windows of the past, asked for in the words of a person.

``WATCH:INDEX``, the strongest one of an episode, or the strongest anomalous one that nothing explains.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unveil.errors import BadInputError
from unveil.records.codec import decode
from unveil.records.match import Answer
from unveil.records.verdict import State
from unveil.records.window import WindowSummary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from unveil.engine.client import Watcher

UNMATCHED = "unmatched"
_PAGE = 500


def window_at(watcher: Watcher, place: str) -> WindowSummary:
    """Return the window at ``WATCH:INDEX``.

    Raises:
        BadInputError: that is no place, or the journal has no such window (any more).
    """
    watch, _, index = place.partition(":")
    if not (watch.isdecimal() and index.isdecimal()):
        raise BadInputError(f"{place!r} is not WATCH:INDEX", hint="e.g. 1:154; windows are numbered within a watch")
    return decode(WindowSummary, watcher.call("window", watch=int(watch), index=int(index)))


def strongest_window(watcher: Watcher, episode: str) -> WindowSummary:
    """Return the window of the highest severity while an episode lasted.

    Args:
        episode: its id, or a beginning that only it has.

    Raises:
        BadInputError: there is no such episode, or none of its windows is in the journal any more.
    """
    found = watcher.call("episode", id=episode)["episode"]
    best: Any = None
    before: list[int] | None = None
    while windows := watcher.call("windows", limit=_PAGE, before=before):
        for window in windows:
            inside = found["started_s"] <= window["wall_s"] <= found["last_s"]
            if inside and (best is None or window["verdict"]["severity"] > best["verdict"]["severity"]):
                best = window
        if windows[-1]["wall_s"] < found["started_s"]:
            break
        before = [windows[-1]["watch"], windows[-1]["index"]]
    if best is None:
        raise BadInputError(f"no window of episode {found['id']} is in the journal any more")
    return decode(WindowSummary, best)


def strongest_unmatched(watcher: Watcher) -> WindowSummary:
    """Return the anomalous window of the highest severity that no fingerprint matched.

    Raises:
        BadInputError: there is none.
    """
    return unmatched_of(_all_windows(watcher), "the journal")


def _all_windows(watcher: Watcher) -> Iterator[WindowSummary]:
    before: list[int] | None = None
    while windows := watcher.call("windows", limit=_PAGE, before=before):
        yield from (decode(WindowSummary, window) for window in windows)
        before = [windows[-1]["watch"], windows[-1]["index"]]


def unmatched_of(windows: Iterable[WindowSummary], place: str) -> WindowSummary:
    """Return the anomalous window of the highest severity that no fingerprint matched.

    Args:
        place: where the windows are from, for the message.

    Raises:
        BadInputError: there is none.
    """
    found = max(
        (
            window
            for window in windows
            if window.verdict.state is State.ANOMALOUS
            and not any(sighting.answer == Answer.MATCH for sighting in window.sightings)
        ),
        key=lambda window: window.verdict.severity,
        default=None,
    )
    if found is None:
        raise BadInputError(f"{place} has no anomalous window that nothing matches", hint="all of it is known already")
    return found
