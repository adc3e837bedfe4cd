"""The command palette's own lines: screens, open episodes, and the latest windows that were anomalous."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from textual.command import DiscoveryHit, Hit, Provider
from textual.content import Content

from unveil.records.plain_text import plain
from unveil_tui.drawing import words
from unveil_tui.messages import Open
from unveil_tui.seen import window_key

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from unveil_tui.app import Cockpit

WINDOWS = 20


class CockpitCommands(Provider):
    """Everything that can be jumped to. Text is drawn as text: tenants choose parts of it."""

    async def discover(self) -> AsyncIterator[Any]:
        """Yield what is offered before anything is typed."""
        for text, command, help_text in self._commands():
            yield DiscoveryHit(cast("Any", Content(text)), command, text=text, help=help_text)

    async def search(self, query: str) -> AsyncIterator[Any]:
        """Yield what fits the query."""
        matcher = self.matcher(query)
        for text, command, help_text in self._commands():
            if (score := matcher.match(text)) > 0:
                yield Hit(score, Content(text), command, text=text, help=help_text)

    def _commands(self) -> list[tuple[str, Callable[[], Any], str]]:
        app = cast("Cockpit", self.app)
        found: list[tuple[str, Callable[[], Any], str]] = [
            ("screen: live", lambda: app.switch_mode("live"), "windows, traces, open episodes"),
            ("screen: runs", lambda: app.switch_mode("runs"), "what was planned and done"),
            ("screen: knowledge", lambda: app.switch_mode("knowledge"), "the fingerprints in use"),
        ]
        if app.fleet is not None:
            found.append(("screen: fleet", lambda: app.switch_mode("fleet"), "all hosts"))
            found += [
                (plain(f"host: {name}"), _open(app, "host", name), "look at it closely") for name in app.fleet.hosts
            ]
        for episode in app.seen.episodes:
            if episode.state != "cleared":
                text = plain(f"episode: {episode.fingerprint} on {episode.entity} ({episode.id})")
                found.append((text, _open(app, "episode", episode.id), f"since {words.clock(episode.started_s)}"))
        anomalous = [each for each in app.seen.windows if each.verdict.state == "anomalous"][-WINDOWS:]
        for window in reversed(anomalous):
            text = f"window: {window.index} at {words.clock(window.wall_s)}"
            found.append((text, _open(app, "window", window_key(window)), f"severity {window.verdict.severity:.2f}"))
        return found


def _open(app: Cockpit, what: str, key: str) -> Callable[[], object]:
    return lambda: app.post_message(Open(what, key))
