"""Records as rows of a table: a key that names the record for good, and cells of text with a tone. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from unveil.records.plain_text import plain, quantity
from unveil_tui.drawing import words
from unveil_tui.drawing.bars import band, signed_bar
from unveil_tui.seen import window_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from unveil.records.attribution import FeatureShare
    from unveil.records.match import ClauseResult
    from unveil.records.run import Run
    from unveil.records.window import Sighting, WindowSummary
    from unveil_tui.near import Near
    from unveil_tui.seen import Seen

Cell = tuple[str, str]  # text, tone


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of fixed width.

    Attributes:
        width: in cells; 0 takes what is left, shared between all such columns.
        narrow: width in a narrow terminal, where it differs; -1 leaves the column out there.
    """

    title: str
    width: int = 0
    narrow: int | None = None
    right: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row.

    Attributes:
        key: what an action on the row acts on.
        cells: one per column.
    """

    key: str
    cells: tuple[Cell, ...]


WINDOW_COLUMNS = (
    Column(title="", width=1),
    Column(title="time", width=8),
    Column(title="window", width=7, narrow=-1, right=True),
    Column(title="state", width=9),
    Column(title="sev", width=5, right=True),
    Column(title="top factor"),
    Column(title="matches"),
)
EPISODE_COLUMNS = (
    Column(title="state", width=9),
    Column(title="since", width=11),
    Column(title="fingerprint"),
    Column(title="entity"),
    Column(title="said", width=20, narrow=8),
)
CLAUSE_COLUMNS = (
    Column(title="", width=3),
    Column(title="clause", width=18, narrow=13),
    Column(title="asked"),
    Column(title="there", width=26, narrow=16),
    Column(title="windows until then", width=24, narrow=-1),
)
NEAR_COLUMNS = (
    Column(title="answer", width=8),
    Column(title="holds", width=5, right=True),
    Column(title="fingerprint"),
    Column(title="entity"),
)
SHARE_COLUMNS = (
    Column(title="feature"),
    Column(title="below│above", width=21, narrow=11),
    Column(title="share", width=5, right=True),
    Column(title="value", width=9, right=True),
    Column(title="expected", width=9, right=True),
    Column(title="usual ├┼┤ value ●", width=17, narrow=-1),
    Column(title="sigmas", width=7, right=True),
)
RUN_COLUMNS = (
    Column(title="run", width=13),
    Column(title="state", width=17, narrow=13),
    Column(title="planned", width=11),
    Column(title="remediation"),
    Column(title="entity"),
    Column(title="last step", width=20, narrow=-1),
    Column(title="by", width=16, narrow=-1),
)
SIGHTING_COLUMNS = (Column(title="answer", width=8), Column(title="fingerprint"), Column(title="entity"))


def window_row(window: WindowSummary) -> Row:
    """Return the row of a window."""
    verdict, mark = window.verdict, words.mark(window)
    top = window.attribution.features[0] if window.attribution.features else None
    return Row(
        key=window_key(window),
        cells=(
            (mark, words.MARK_TONES[mark]),
            (words.clock(window.wall_s), ""),
            (str(window.index), "dim"),
            (str(verdict.state), words.tone(verdict.state)),
            (f"{verdict.severity:.2f}", ""),
            (_factor(top) if top and verdict.state == "anomalous" else verdict.reason, ""),
            (words.matches(window), "bad"),
        ),
    )


def _factor(share: FeatureShare) -> str:
    return f"{share.sigma:+.0f}σ {share.feature}"


def episode_rows(seen: Seen) -> list[Row]:
    """Return a row an episode: open ones first."""
    rows = []
    for episode in seen.episodes:
        silenced = seen.silenced(episode) is not None
        said = [kind for kind in seen.said_of(episode.id) if kind in words.SAID]
        rows.append(
            Row(
                key=episode.id,
                cells=(
                    (str(episode.state), words.tone(episode.state)),
                    (words.moment(episode.started_s, seen.now_s), ""),
                    (episode.fingerprint, "dim" if episode.state == "cleared" else ""),
                    (words.entity(episode.entity), ""),
                    (", ".join([*(["silenced"] if silenced else []), *(words.SAID[kind] for kind in said)]), "mark"),
                ),
            )
        )
    return rows


def clause_rows(clauses: Iterable[ClauseResult], sparks: Mapping[str, str] | None = None) -> list[Row]:
    """Return a row a clause: met or not, what was asked, what was there, and the windows before."""
    sparks = sparks or {}
    return [
        Row(
            key=clause.name,
            cells=(
                (words.SIGNS[clause.answer], words.tone(clause.answer)),
                (clause.name, ""),
                (asked(clause), ""),
                (quantity(clause.value) + (f" ({clause.reason})" if clause.reason else ""), ""),
                (sparks.get(clause.name, ""), "mark"),
            ),
        )
        for clause in clauses
    ]


def near_rows(near: Iterable[Near]) -> list[Row]:
    """Return a row for each fingerprint that matches or nearly does: the answer, and how many of its clauses hold."""
    return [
        Row(
            key=each.key,
            cells=(
                (words.NEARNESS[each.match.answer], words.tone(each.match.answer)),
                (f"{each.met}/{each.of}", ""),
                (each.match.fingerprint, ""),
                (words.entity(each.match.entity), ""),
            ),
        )
        for each in near
    ]


_OPERATORS = {"lt": "<", "lte": "≤", "gt": ">", "gte": "≥", "eq": "=", "neq": "≠"}


def asked(clause: ClauseResult) -> str:
    """Return what a clause asks, in one line."""
    subject = clause.subject.removeprefix("feature ")
    return f"{subject} {_OPERATORS.get(clause.operator, clause.operator)} {clause.threshold or '(empty)'}"


def share_rows(shares: Iterable[FeatureShare], *, narrow: bool) -> list[Row]:
    """Return a row a feature; the bar's length is its share against the largest, its side the sign."""
    listed = list(shares)
    largest = max((share.share for share in listed), default=0.0) or 1.0
    width = 11 if narrow else 21
    return [
        Row(
            key=str(share.feature),
            cells=(
                (str(share.feature), ""),
                (signed_bar(share.share / largest, share.sigma, width), "warn" if share.sigma >= 0 else "mark"),
                (f"{share.share:.0%}", ""),
                (quantity(share.value), ""),
                (quantity(share.expected), "dim"),
                (band(share.sigma, 17), ""),
                (f"{share.sigma:+.1f}", ""),
            ),
        )
        for share in listed
    ]


def run_rows(runs: Iterable[Run], now_s: float) -> list[Row]:
    """Return a row a run."""
    return [
        Row(
            key=run.id,
            cells=(
                (run.id, ""),
                (str(run.state), words.tone(run.state)),
                (words.moment(run.steps[0].at_s, now_s), ""),
                (run.plan.remediation, ""),
                (words.entity(run.plan.entity), ""),
                (run.steps[-1].cause, "dim"),
                (run.steps[-1].actor, "dim"),
            ),
        )
        for run in runs
    ]


def sighting_rows(sightings: Iterable[Sighting]) -> list[Row]:
    """Return a row for each fingerprint that answered *match* or *unknown* in a window."""
    return [
        Row(
            key=f"{each.fingerprint} {each.entity}",
            cells=((each.answer, words.tone(each.answer)), (each.fingerprint, ""), (each.entity, "")),
        )
        for each in sightings
    ]


def first_line(text: str, limit: int = 400) -> str:
    """Return text in one safe line."""
    return plain(" ".join(text.split()), limit)
