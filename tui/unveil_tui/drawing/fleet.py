"""Hosts as rows: how each is, and its worst episode. Pure."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from unveil.records.plain_text import plain
from unveil_tui.drawing import words
from unveil_tui.drawing.bars import CALM, tower
from unveil_tui.drawing.rows import Column, Row

if TYPE_CHECKING:
    from collections.abc import Iterable

    from unveil_tui.fleet import HostSeen

SPARK = 16
FLEET_COLUMNS = (
    Column(title="host", width=22, narrow=16),
    Column(title="state", width=10),
    Column(title="open", width=4, right=True),
    Column(title="worst episode"),
    Column(title="on"),
    Column(title="since", width=11, narrow=8),
    Column(title="severity", width=SPARK, narrow=-1),
    Column(title="kb", width=6, narrow=-1),
    Column(title="profile", width=9, narrow=-1),
)


def host_rows(hosts: Iterable[HostSeen]) -> list[Row]:
    """Return a row a host: those that need a person first."""
    ordered = sorted(hosts, key=lambda each: (tuple(-part for part in each.gravity), each.name))
    return [_row(each) for each in ordered]


def _row(host: HostSeen) -> Row:
    status = host.status
    worst = host.episodes[0] if host.episodes else None
    window = status.get("window") or {}
    state = "gone" if host.gone_since_s is not None else str(window.get("verdict", {}).get("state", "asking"))
    firing = worst is not None and worst.state == "firing"
    shown = "firing" if firing and state != "gone" else state
    knowledge = status.get("knowledge", {})
    stale = knowledge.get("stale_since_s") is not None
    now_s = float(status.get("now_s", time.time()))
    about, place, since = (host.trouble, "", words.clock(host.gone_since_s)) if state == "gone" else ("-", "", "")
    if worst is not None and state != "gone":
        about, place, since = worst.fingerprint, words.entity(worst.entity), words.moment(worst.started_s, now_s)
    drawn = (
        tower(host.severities[-SPARK:], low=0.0, high=max(*host.severities, CALM), rows=1)[0] if host.severities else ""
    )
    return Row(
        key=host.name,
        cells=(
            (plain(host.name), ""),
            (shown, "bad" if shown in ("gone", "firing") else words.tone(shown)),
            (str(len(host.episodes)) if host.episodes else "-", "bad" if firing else "dim"),
            (about, "bad" if firing else ""),
            (place, ""),
            (since, ""),
            (drawn.rjust(SPARK), "mark"),
            (f"{knowledge.get('generation', '?')}{'*STALE' if stale else ''}", "warn" if stale else "dim"),
            (str(status.get("profile", "")), "dim"),
        ),
    )
