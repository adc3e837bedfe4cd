"""HostLine: which host, what it is, and how its watcher is; below it, whatever a person must know first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text
from textual.widget import Widget

from unveil.records.plain_text import plain, span
from unveil_tui.drawing import words

if TYPE_CHECKING:
    from unveil_tui.rights import Rights
    from unveil_tui.seen import Seen

SLOW_S = 4.0  # without an answer for so long, that is said


class HostLine(Widget):
    """Two lines about the host and its watcher, and a banner a trouble."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"host--name", "host--label", "host--banner", "host--dim", "host--warn"}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._text = Text("asking the watcher …")

    def show(self, seen: Seen, rights: Rights, now_s: float) -> None:
        """Draw what is known; *now_s* is the local wall clock."""
        lines = self._lines(seen, rights) if seen.status else [Text("asking the watcher …")]
        for banner in banners(seen, now_s):
            lines.append(Text(f" {banner} ", self._style("banner")))
        text = Text("\n", no_wrap=True, overflow="ellipsis").join(lines)
        if text != self._text:
            taller = text.plain.count("\n") != self._text.plain.count("\n")
            self._text = text
            self.refresh(layout=taller)

    def render(self) -> Text:
        """Draw the lines."""
        return self._text

    def _style(self, name: str) -> Any:
        return self.get_component_rich_style(f"host--{name}", partial=True)

    def _lines(self, seen: Seen, rights: Rights) -> list[Text]:
        status = seen.status
        shape, ticks, cost, knowledge = status["shape"], status["ticks"], status["cost"], status["knowledge"]
        host = Text(plain(seen.host, 60), self._style("name"), no_wrap=True)
        for label in (rights.label, _replay(status)):
            if label:
                host.append("  ").append(f" {label} ", self._style("label"))
        parts = [
            words.count(int(shape[name]), noun) if shape.get(name) is not None else f"? {noun}s"
            for name, noun in (("cpus", "CPU"), ("nodes", "node"), ("gpus", "GPU"))
        ]
        if seen.host:
            profile = "" if "replay" in status else f"  profile {plain(status['profile'])}"
            host.append(f"  {', '.join(parts)}{profile}")
            if "breaker" in status and "replay" not in status:
                word, style = _automation(seen)
                host.append("  ").append(word, self._style(style) if style else "")
            host.append(f"  up {span(status['uptime_s'])}")
        late = f"late {ticks['missed']} of {ticks['taken']}, p99 {ticks['late_p99_ms']:.1f} ms"
        watcher = Text(no_wrap=True)
        stale = knowledge["stale_since_s"] is not None
        fingerprints = words.count(knowledge["fingerprints"], "fingerprint")
        watcher.append(f"kb {knowledge['generation']}{'*' if stale else ''} ({fingerprints})")
        if cost["rss_bytes"]:
            watcher.append(f"  cost {100 * cost['cpu_share']:.2f} %, {cost['rss_bytes'] / 1e6:.0f} MB  ")
            watcher.append(late, self._style("warn") if ticks["missed"] else "")
        watcher.append(f"  {plain(status['training'], 60)}", self._style("dim"))
        return [host, watcher]


def _automation(seen: Seen) -> tuple[str, str]:
    """Return whether automation may act, and the style to say it in."""
    breaker = seen.status["breaker"]
    if breaker["open"]:
        return f"breaker OPEN ({breaker['failures']} bad ends)", "banner"
    failures = f" ({breaker['failures']} of {breaker['most']})" if breaker["failures"] else ""
    return f"breaker closed{failures}", "warn" if failures else ""


def banners(seen: Seen, now_s: float) -> list[str]:
    """Return what a person must know before anything else, worst first."""
    found = []
    if seen.gone_since_s is not None:
        trouble = plain(seen.trouble)
        since = words.clock(seen.gone_since_s)
        if "replay" in seen.status:
            found.append(f"waiting since {since}: {trouble}")
        else:
            gone = f"watcher gone since {since}, retrying ({trouble})"
            found.append(gone if seen.heard_s else f"retrying: {trouble}")
    elif seen.trouble:
        found.append(plain(seen.trouble, 300))
    elif seen.heard_s and now_s - seen.heard_s > SLOW_S:
        found.append(f"no answer from the watcher for {span(now_s - seen.heard_s)}")
    knowledge = seen.status.get("knowledge", {})
    if knowledge.get("stale_since_s") is not None:
        reason = plain(knowledge["problems"][0] if knowledge["problems"] else "", 300)
        found.append(f"*STALE since {words.clock(knowledge['stale_since_s'])}, the old one stays in use: {reason}")
    if (stopped := seen.stopped) is not None:
        until = words.moment(stopped.until_s, seen.now_s)
        found.append(f"automation STOPPED until {until} by {plain(stopped.actor)}: {plain(stopped.reason, 200)}")
    found += [f"problem: {plain(each, 400)}" for each in seen.status.get("problems", [])[:2]]
    return found


def _replay(status: dict[str, Any]) -> str:
    replay = status.get("replay")
    if not isinstance(replay, dict):
        return ""
    return "ended" if replay.get("ended") else f"x{replay.get('speed', 1):g}"
