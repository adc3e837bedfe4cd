"""What to hand on about an episode that only hands or another owner can end: a drain ticket, as plain text."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from unveil.cli import draw

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

DRAIN = "Drain ticket:"


def written(
    episode: dict[str, Any],
    *,
    host: str,
    fingerprint: dict[str, Any] | None,
    features: Iterable[dict[str, Any]] = (),
    facts: Iterable[dict[str, Any]] = (),
) -> str:
    """Return the text of a ticket.

    Args:
        fingerprint: as the watcher tells it; None when it is not known (any more).
        features: newest values of the entity.
        facts: of the whole host; those of the entity are taken.
    """
    known = fingerprint or {}
    where = draw.entity(episode["entity"])
    lines = [f"{draw.plain(known.get('title') or episode['fingerprint'], 200)}: {where} on {draw.plain(host)}", ""]
    seen = f"{_utc(episode['started_s'])} to {_utc(episode['last_s'])}, {episode['windows']} windows"
    lines += [
        f"Found by   {draw.plain(episode['fingerprint'])}, level {known.get('level', 'unknown')}",
        f"Episode    {episode['id']}, {episode['state']}, {seen}",
        "",
    ]
    told, ask = _description(known.get("description", ""))
    lines += [*told, ""] if told else []
    lines += ["What to do", f"  {ask or 'A person has to judge.'}"]
    if known.get("remediations"):
        lines += ["", f"There is a fix, too: `unveil runs plan {episode['id']}`."]
    lines += _section("Evidence", list(_clauses(episode["last"])))
    lines += _section("Values now", _values(features, known.get("fields", ())))
    lines += _section("Known of it", _facts(facts, episode["entity"]))
    return "\n".join(lines) + "\n"


def _description(text: str) -> tuple[list[str], str]:
    """Return the paragraphs of a description, and what its drain ticket asks for."""
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]
    joined = " ".join(paragraphs)
    asked = joined.partition(DRAIN)[2].strip()
    told = [draw.plain(part.partition(DRAIN)[0].strip(), 2000) for part in paragraphs]
    return [part for part in told if part], draw.plain(asked, 2000)


def _clauses(match: dict[str, Any]) -> Iterator[str]:
    for clause in match["clauses"]:
        value = draw.quantity(clause["value"])
        yield draw.plain(
            f"  {clause['answer']}: {clause['subject']} {clause['operator']} {clause['threshold']}, it was {value}", 500
        )


def _values(features: Iterable[dict[str, Any]], fields: Sequence[str]) -> list[str]:
    return [
        draw.plain(f"  {row['name']} = {draw.quantity(row['value'])}", 300) for row in features if row["name"] in fields
    ]


def _facts(facts: Iterable[dict[str, Any]], entity: dict[str, str]) -> list[str]:
    return [
        draw.plain(f"  {fact['name']} = {fact['value']}", 300)
        for fact in facts
        if fact["entity"] == entity and fact["value"] is not None
    ]


def _section(title: str, lines: list[str]) -> list[str]:
    return ["", title, *lines] if lines else []


def _utc(at_s: float) -> str:
    return time.strftime("%F %T UTC", time.gmtime(at_s))
