"""Fleet: several watchers, each looked at now and then. One thread a host, so that one that hangs delays no other."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unveil.errors import UnveilError
from unveil.records.codec import decode
from unveil.records.match import Episode, EpisodeState
from unveil_tui.messages import Heard

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from textual.message import Message

    from unveil.engine.client import Watcher

EVERY_S = 2.0
SEVERITIES = 60  # kept of each host: a minute at least


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSeen:
    """What is known of one host.

    Attributes:
        name: by which it was named on the command line; the key of its row.
        status: answer of the method ``status``; empty before the first.
        episodes: open ones, the worst first.
        severities: of the newest window at each look, oldest first.
        gone_since_s: since when it does not answer; None while it does.
        trouble: why it does not.
    """

    name: str
    status: dict[str, Any] = field(default_factory=dict)
    episodes: tuple[Episode, ...] = ()
    severities: tuple[float, ...] = ()
    gone_since_s: float | None = None
    trouble: str = ""

    @property
    def gravity(self) -> tuple[int, float]:
        """Return how much it needs a person: the higher the sooner."""
        if self.gone_since_s is not None:
            return (3, -self.gone_since_s)
        firing = sum(each.state is EpisodeState.FIRING for each in self.episodes)
        troubled = (
            bool(self.status.get("problems")) or self.status.get("knowledge", {}).get("stale_since_s") is not None
        )
        return (2 if firing else 1 if self.episodes or troubled else 0, float(firing))


class Fleet:
    """Looks at hosts and posts what it sees.

    Args:
        hosts: name → opens a connection of its own to that host's watcher.
        post: takes a message from any thread.
    """

    def __init__(self, hosts: Mapping[str, Callable[[], Watcher]], post: Callable[[Message], object]) -> None:
        self.hosts = hosts
        self._post = post
        self._seen = {name: HostSeen(name=name) for name in hosts}
        self._lock = threading.Lock()
        self._stopping = threading.Event()

    def start(self) -> None:
        """Begin to look."""
        for name, connect in self.hosts.items():
            threading.Thread(target=self._follow, args=(name, connect), name=f"fleet {name}", daemon=True).start()

    def stop(self) -> None:
        """End at the next round."""
        self._stopping.set()

    def _follow(self, name: str, connect: Callable[[], Watcher]) -> None:
        watcher = connect()
        before = HostSeen(name=name)
        while not self._stopping.is_set():
            before = _look(watcher, before)
            with self._lock:
                self._seen = {**self._seen, name: before}
                everything = tuple(self._seen.values())
            self._post(Heard(everything))
            self._stopping.wait(EVERY_S)


def _look(watcher: Watcher, before: HostSeen) -> HostSeen:
    try:
        status = watcher.call("status")
        told = watcher.call("episodes", open_only=True, limit=60)
        rank = {EpisodeState.FIRING: 0, EpisodeState.PENDING: 1}
        episodes = sorted(
            (decode(Episode, each) for each in told), key=lambda each: (rank.get(each.state, 2), each.started_s)
        )
        window = status["window"]
        severity = () if window is None else (float(window["verdict"]["severity"]),)
    except Exception as error:  # noqa: BLE001  # the thread's boundary: one host's answers must not end its look-out
        since = time.time() if before.gone_since_s is None else before.gone_since_s
        what = error.what if isinstance(error, UnveilError) else f"unreadable answer: {error!r:.200}"
        return HostSeen(
            name=before.name, status=before.status, severities=before.severities, gone_since_s=since, trouble=what
        )
    return HostSeen(
        name=before.name,
        status=status,
        episodes=tuple(episodes),
        severities=(*before.severities, *severity)[-SEVERITIES:],
    )
