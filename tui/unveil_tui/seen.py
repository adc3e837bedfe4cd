"""Seen: everything the cockpit knows at one moment. Frozen, made by the pump, drawn by the screens."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unveil.records.mark import Mark
    from unveil.records.match import Episode
    from unveil.records.run import Run
    from unveil.records.silence import Silence
    from unveil.records.window import WindowSummary

MAX_WINDOWS = 500  # kept and drawn; older ones are asked for when someone steps back that far


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a fingerprint or a correlation is about, its level, and the remediations that it names."""

    title: str
    level: str
    fixes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seen:
    """What the watcher last said.

    Attributes:
        status: answer of the method ``status``; empty before the first.
        windows: oldest first, at most ``MAX_WINDOWS``.
        episodes: open ones first, then the latest that cleared.
        silences: those in force.
        marks: what people said of episodes, oldest first.
        about: by the name of a fingerprint or correlation; empty while nothing is open.
        runs: the newest, newest first; empty while nothing is open.
        heard_s: local wall clock of the last answer; 0 before the first.
        gone_since_s: local wall clock since when the watcher does not answer; None while it does.
        trouble: why it does not answer, or what of its answers cannot be read.
        source: number of the pump that heard it; another watcher has another.
    """

    status: dict[str, Any] = field(default_factory=dict)
    windows: tuple[WindowSummary, ...] = ()
    episodes: tuple[Episode, ...] = ()
    silences: tuple[Silence, ...] = ()
    marks: tuple[Mark, ...] = ()
    about: Mapping[str, About] = field(default_factory=dict)
    runs: tuple[Run, ...] = ()
    heard_s: float = 0.0
    gone_since_s: float | None = None
    trouble: str = ""
    source: int = 0

    @property
    def now_s(self) -> float:
        """Return the watcher's time: that of the recording when it watches one."""
        return float(self.status.get("now_s", self.heard_s))

    @property
    def host(self) -> str:
        """Return the host's name, empty before the first answer."""
        return str(self.status.get("host", ""))

    def episode(self, identity: str) -> Episode | None:
        """Return an episode by its id."""
        return next((each for each in self.episodes if each.id == identity), None)

    def silenced(self, episode: Episode) -> Silence | None:
        """Return the silence that covers an episode now."""
        entity = str(episode.entity)
        return next((each for each in self.silences if each.covers(episode.fingerprint, entity, self.now_s)), None)

    def said_of(self, episode: str) -> tuple[str, ...]:
        """Return the kinds of marks on an episode; of the two verdicts only the newest."""
        kinds = list(dict.fromkeys(str(each.kind) for each in reversed(self.marks) if each.episode == episode))
        verdicts = [kind for kind in kinds if kind.endswith("_positive")]
        return tuple(kind for kind in reversed(kinds) if kind not in verdicts[1:])

    @property
    def stopped(self) -> Silence | None:
        """Return the silence that keeps automation away from everything, if there is one."""
        return next((each for each in self.silences if (each.fingerprint, each.entity) == ("*", "*")), None)


def window_key(window: WindowSummary) -> str:
    """Return the row key of a window: ``watch:index``."""
    return f"{window.watch}:{window.index}"
