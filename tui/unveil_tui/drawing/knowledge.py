"""The knowledge base as rows and as text: fingerprints and correlations, how often seen, how backtested. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unveil.records.plain_text import plain, span
from unveil_tui.drawing import words
from unveil_tui.drawing.rows import Cell, Column, Row, first_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unveil_tui.seen import Seen

COLUMNS = (
    Column(title="fingerprint", width=36, narrow=0),
    Column(title="status", width=12),
    Column(title="level", width=8),
    Column(title="subsystem", width=12),
    Column(title="open", width=4, right=True),
    Column(title="hits", width=5, right=True),
    Column(title="false", width=5, narrow=-1, right=True),
    Column(title="last hit", width=11, narrow=-1),
    Column(title="last backtest", width=20, narrow=-1),
    Column(title="remediation", narrow=-1),
)
_EFFECTS = {"report": "tells only", "no_remediation": "holds fixes back"}
_KINDS = {
    "temporal": "all of them fire",
    "temporal_ordered": "they fire in this order",
    "event_count": "they fire at least {at_least} times",
    "value_count": "at least {at_least} different of {count_of} fire",
}


def knowledge_rows(
    told: Mapping[str, Any], seen: Seen, hits: Mapping[str, Any], backtests: Mapping[str, Any]
) -> list[Row]:
    """Return a row a fingerprint, then one a correlation.

    Args:
        told, hits, backtests: answers of the methods ``knowledge``, ``hits`` and ``backtests``.
    """
    rows = [
        _row(
            each, seen, hits, str(each["subsystem"]), ", ".join(each["remediations"]) or "for a person to judge",
            backtested=_backtested(each, backtests),
        )
        for each in told["fingerprints"]
    ]  # fmt: skip
    return rows + [
        _row(each, seen, hits, "correlation", _EFFECTS.get(each["effect"], ""), backtested=("-", "dim"))
        for each in told.get("correlations", ())
    ]


def _row(each: Mapping[str, Any], seen: Seen, hits: Mapping[str, Any], *own: str, backtested: Cell) -> Row:
    subsystem, fixes = own
    name = str(each["name"])
    hit = hits.get(name, {})
    opened = sum(1 for one in seen.episodes if one.fingerprint == name and one.state != "cleared")
    return Row(
        key=name,
        cells=(
            (name, ""),
            (str(each["status"]), words.tone(str(each["status"]))),
            (str(each["level"]), ""),
            (subsystem, ""),
            (str(opened) if opened else "-", "bad" if opened else "dim"),
            (f"{hit['episodes']:,}" if hit else "-", "" if hit else "dim"),
            (str(hit["false_positives"]) if hit.get("false_positives") else "-", "warn"),
            (words.moment(hit["last_s"], seen.now_s) if hit else "-", "dim"),
            backtested,
            (fixes, "dim"),
        ),
    )


def _backtested(fingerprint: Mapping[str, Any], backtests: Mapping[str, Any]) -> Cell:
    """Return how a fingerprint did last: faults found, fires in healthy time; ``*`` of another version of it."""
    told = backtests.get(str(fingerprint["name"]))
    if told is None:
        return ("-", "dim")
    found = f"{told['found']} of {told['intervals']}, " if told["intervals"] else ""
    other = "" if told["revision"] == fingerprint.get("revision") else " *"
    missed = told["found"] < told["intervals"] or told["false_fires"]
    return (f"{found}{told['false_fires']} false{other}", "warn" if missed or other else "good")


def description(name: str, told: Mapping[str, Any], backtests: Mapping[str, Any], now_s: float) -> str:
    """Return what a fingerprint, or a correlation, is about; empty where there is none of that name."""
    for each in told.get("fingerprints", ()):
        if each["name"] == name:
            return "\n".join(_of_fingerprint(each, told.get("remediations", ()), backtests, now_s))
    for each in told.get("correlations", ()):
        if each["name"] == name:
            return "\n".join(_of_correlation(each))
    return ""


def _opening(each: Mapping[str, Any]) -> list[str]:
    paragraphs = str(each["description"]).strip().split("\n\n")
    return [plain(each["title"], 300), "", *(first_line(paragraph, 4000) for paragraph in paragraphs), ""]


def _closing(each: Mapping[str, Any]) -> list[str]:
    lines = [f"may be wrong when: {plain(one, 400)}" for one in each.get("falsepositives", ())]
    lines += [f"see {plain(one, 300)}" for one in each.get("references", ())]
    return [*lines, f"file {plain(each['path'], 400)}"]


def _of_fingerprint(
    each: Mapping[str, Any], remediations: list[Mapping[str, Any]], backtests: Mapping[str, Any], now_s: float
) -> list[str]:
    lines = [*_opening(each), f"about: each {plain(each['group_by'])}", f"condition: {plain(each['condition'], 600)}"]
    lines += [
        f"fix: {plain(fix['name'])}, {plain(fix['status'])}, mode {plain(fix['mode'])}, impact {plain(fix['impact'])}: "
        + plain(fix["title"], 300)
        for fix in remediations
        if fix["name"] in each["remediations"]
    ]
    told = backtests.get(str(each["name"]))
    if told is None:
        lines.append("last backtest: none is kept on this host (`unveil kb backtest` keeps one)")
    else:
        other = "" if told["revision"] == each.get("revision") else ", of another version of it"
        lines.append(
            f"last backtest: {words.moment(told['at_s'], now_s)}{other}, on "
            f"{words.count(told['recordings'], 'recording')} with {span(told['healthy_s'])} of healthy time: "
            f"found {told['found']} of {words.count(told['intervals'], 'fault')}, "
            f"{words.count(told['false_fires'], 'false fire')}, {told['other_fires']} in the time of other faults"
        )
    return [*lines, *_closing(each)]


def _of_correlation(each: Mapping[str, Any]) -> list[str]:
    holds = _KINDS.get(each["type"], "").format(**{name: plain(each[name]) for name in ("at_least", "count_of")})
    return [
        *_opening(each),
        f"about: episodes of {', '.join(map(plain, each['fingerprints']))}, together on one {plain(each['group_by'])}",
        f"holds when: {holds} within {each['timespan_s']:g} s",
        f"effect: {_EFFECTS.get(each['effect'], plain(each['effect']))}",
        *_closing(each),
    ]
