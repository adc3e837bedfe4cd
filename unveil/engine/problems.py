"""Problems: what a person should know of the watcher itself, for as long as it is news."""

from __future__ import annotations

from dataclasses import dataclass

KEPT = 20
NEWS_S = 3600.0


@dataclass(slots=True)
class _Problem:
    last_s: float
    times: int = 1


class Problems:
    """The newest problems. One that comes again is counted, not repeated; one that has not for an hour is forgotten."""

    def __init__(self) -> None:
        self._known: dict[str, _Problem] = {}

    def add(self, what: str, at_s: float) -> bool:
        """Note a problem; return whether it is new."""
        known = self._known.pop(what, None)
        self._known[what] = _Problem(at_s) if known is None else _Problem(at_s, known.times + 1)
        while len(self._known) > KEPT:
            self._known.pop(next(iter(self._known.copy())), None)
        return known is None

    def told(self, now_s: float) -> list[str]:
        """Return the problems of the last hour, oldest first."""
        known = list(self._known.items())  # at once: the thread of the ticks adds to them, too
        news = [(what, each) for what, each in known if now_s - each.last_s < NEWS_S]
        for what, each in known:
            if now_s - each.last_s >= NEWS_S and self._known.get(what) is each:
                self._known.pop(what, None)
        return [what if each.times == 1 else f"{what} ({each.times} times)" for what, each in news]
