"""Words and tones: how states, times and names are written on every screen.

A *tone* is the name of a colour in the style sheet (``good warn bad dim mark``); it never carries meaning alone.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from unveil.records.plain_text import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unveil.records.entity import Entity
    from unveil.records.window import WindowSummary

TONES = {
    "anomalous": "warn", "normal": "good", "unknown": "dim", "firing": "bad", "pending": "warn", "cleared": "dim",
    "match": "bad", "no_match": "good", "planned": "mark", "approved": "mark", "applying": "mark", "verifying": "mark",
    "rolling_back": "mark", "kept": "good", "no_change": "good", "rolled_back": "warn", "failed_clean": "bad",
    "failed_dirty": "bad", "inconclusive": "warn", "reverted_by_other": "warn", "canceled": "dim", "expired": "dim",
    "refused": "warn", "stable": "good", "test": "mark", "experimental": "warn", "deprecated": "dim",
}  # fmt: skip
SAID = {"acknowledged": "acked", "false_positive": "false", "note": "note"}
NEARNESS = {"match": "match", "no_match": "nearly", "unknown": "unknown"}
SIGNS = {"match": "yes", "no_match": "no", "unknown": "?"}


def tone(word: str) -> str:
    """Return the tone of a state's name, empty when it has none."""
    return TONES.get(word, "")


def clock(at_s: float | None) -> str:
    """Return the local time of day, a dash for none."""
    return "-" if at_s is None else time.strftime("%H:%M:%S", time.localtime(at_s))


def moment(at_s: float | None, now_s: float) -> str:
    """Return the local time of day, with the date when it is not the day of *now*."""
    if at_s is None:
        return "-"
    then = time.localtime(at_s)
    same_day = time.strftime("%F", then) == time.strftime("%F", time.localtime(now_s))
    return time.strftime("%H:%M:%S" if same_day else "%m-%d %H:%M", then)


def entity(value: Entity) -> str:
    """Return an entity as text that is safe to draw."""
    return plain(value)


def matches(window: WindowSummary) -> str:
    """Return the fingerprints that matched in a window, and on what."""
    seen = [f"{each.fingerprint} on {each.entity}" for each in window.sightings if each.answer == "match"]
    return ", ".join(seen)


def mark(window: WindowSummary) -> str:
    """Return one character for a window.

    ``M`` anomalous and matched, ``!`` anomalous and not matched, ``m`` matched without an anomaly, ``·`` ordinary,
    ``?`` not judged.
    """
    matched = any(each.answer == "match" for each in window.sightings)
    if window.verdict.state == "anomalous":
        return "M" if matched else "!"
    if matched:
        return "m"
    return "·" if window.verdict.state == "normal" else "?"


MARK_TONES = {"M": "bad", "!": "warn", "m": "bad", "·": "dim", "?": "dim"}
LEGEND = "! anomalous  M matched  m matched only  · normal  ? not judged"


def count(number: int, noun: str) -> str:
    """Return ``1 node``, ``2 nodes``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def rhythm(status: Mapping[str, Any]) -> str:
    """Return at which pace the work goes, by what the watcher's status says; why that is not known, in brackets."""
    if (told := status.get("rhythm")) is not None:
        return f"work repeats every {told['period_s']:.3g} s, by {plain(told['source'], 100)}"
    reason = plain(status.get("rhythm_absent", ""), 200)
    return f"(no rhythm in the work; {reason})" if reason else ""
