"""An episode as lines: since when, with what, and what people said of it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unveil.records.codec import decode
from unveil.records.match import Episode
from unveil.records.plain_text import plain, span
from unveil_tui.drawing import words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from unveil.records.attribution import FeatureShare
    from unveil.records.mark import Mark
    from unveil_tui.seen import Seen

NEWEST_MARKS = 4


def head(episode: Episode, seen: Seen) -> list[str]:
    """Return what an episode is about and how it stands."""
    began = episode.started_s if episode.fired_s is None else episode.fired_s
    end = episode.cleared_s if episode.cleared_s is not None else max(seen.now_s, episode.last_s)
    times = [f"since {words.moment(episode.started_s, seen.now_s)}"]
    for name, at_s in (("fired", episode.fired_s), ("cleared", episode.cleared_s)):
        times += [] if at_s is None else [f"{name} {words.moment(at_s, seen.now_s)}"]
    lines = [
        f"{plain(episode.fingerprint)} on {words.entity(episode.entity)}: {episode.state}",
        f"{episode.id}  {', '.join(times)}, for {span(end - began)}, {words.count(episode.windows, 'matching window')}",
    ]
    bound = {name: value for name, value in episode.last.bindings.items() if value != episode.entity.key}
    if bound:
        lines.append("with " + ", ".join(f"{plain(name)} {plain(value)}" for name, value in bound.items()))
    if (silence := seen.silenced(episode)) is not None:
        until = words.moment(silence.until_s, seen.now_s)
        lines.append(f"silenced until {until} by {plain(silence.actor)}: {plain(silence.reason, 300)}")
    return lines


def together(told: Mapping[str, Any], now_s: float) -> list[str]:
    """Return what an episode of a correlation is made of, and what an episode is part of.

    Args:
        told: answer of the method ``members``.
    """
    lines = []
    for name, kind in (("of", "made of"), ("part_of", "part of")):
        episodes = [decode(Episode, each) for each in told.get(name, ())]
        lines += [
            f"{kind}  {plain(each.fingerprint)} on {words.entity(each.entity)}: {each.state} "
            f"since {words.moment(each.started_s, now_s)}"
            for each in episodes[:NEWEST_MARKS]
        ]
        if len(episodes) > NEWEST_MARKS:
            lines.append(f"{kind}  {len(episodes) - NEWEST_MARKS} more")
    return lines


def said(marks: Iterable[Mark], now_s: float) -> list[str]:
    """Return what people said of it, the newest last."""
    return [
        f"{words.moment(each.at_s, now_s)} {plain(each.actor)}: {str(each.kind).replace('_', ' ')}"
        + (f": {plain(each.text, 400)}" if each.text else "")
        for each in list(marks)[-NEWEST_MARKS:]
    ]


def shares_of(episode: Episode, seen: Seen) -> tuple[FeatureShare, ...]:
    """Return what moved the episode's newest matching window, as far as it is kept."""
    for window in reversed(seen.windows):
        if window.index == episode.last.window and abs(window.wall_s - episode.last.wall_s) < 1:
            return window.attribution.features
    return ()
