"""A plan and its run as lines of text: what would change, from what to what, and how it is judged. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from unveil.records.plain_text import plain, quantity
from unveil.records.remediation import NOTHING
from unveil_tui.drawing import words
from unveil_tui.drawing.rows import Row, first_line

if TYPE_CHECKING:
    from unveil.records.remediation import Improvement
    from unveil.records.run import Plan, Run, SettingChange

LONG = 2000
DANGEROUS = frozenset({"high", "critical"})  # impacts for which the host's name has to be typed


def head(run: Run) -> list[str]:
    """Return what a run is, a line each."""
    plan = run.plan
    return [
        f"{run.id}: {plain(plan.remediation)}: {run.state}",
        f"for {plain(plan.fingerprint)} on {words.entity(plan.entity)}, episode {plan.episode}",
        (
            f"impact {plan.impact}, {'reversible' if plan.reversible else 'NOT reversible'}, mode {plan.mode}, "
            f"timeout {plan.timeout_s:g} s, plan {plan.hash[:12]}"
        ),
        *([f"risk: {plain(plan.risk, LONG)}"] if plan.risk else []),
    ]


def change_line(change: SettingChange, width: int = 0) -> str:
    """Return one setting: address, before → after; in two lines where it does not fit into a width."""
    before = "absent: " + plain(change.reason, LONG) if change.before is None else _value(change.before)
    if change.coupled:
        return f"{plain(change.address, LONG)}: {before} (moves along with another; saved and restored)"
    after = "(the playbook decides)" if change.after is None else _value(change.after)
    return _placed(change.address, f"{before} → {after}", width)


def _placed(address: str, text: str, width: int) -> str:
    """Return what is said of a setting beside its address, or below it: a line that breaks at the → misleads."""
    line = f"{plain(address, LONG)}: {text}"
    return line if not width or cell_len(line) <= width else f"{plain(address, LONG)}:\n    {text}"


def settings(plan: Plan, width: int = 0) -> list[str]:
    """Return a line for each setting that may change."""
    return [change_line(change, width) for change in plan.changes] or ["no setting is named: nothing would be changed"]


def variables(plan: Plan) -> list[str]:
    """Return a line for each variable; a tenant's words are marked."""
    lines = []
    for name, value in plan.variables.items():
        text = ", ".join(str(each) for each in value) if isinstance(value, tuple | list) else str(value)
        mark = "  ← a tenant's word: shown only" if name in plan.untrusted else ""
        lines.append(f"{plain(name)} = {plain(text, 400)}{mark}")
    return lines


def judged_by(plan: Plan) -> list[str]:
    """Return how the run will be verified."""
    rule = plan.verification
    lines = [
        (
            f"within {rule.within_s:g} s: settings hold for {rule.settings_hold_s:g} s, "
            f"the fingerprint stays clear for {rule.clear_s:g} s"
        )
    ]
    lines += [_demand(each, plan, improve=True) for each in rule.improve]
    lines += [_demand(each, plan, improve=False) for each in rule.must_not_worsen]
    if plan.rollback_triggers:
        lines.append("undone by itself on: " + ", ".join(plain(each) for each in plan.rollback_triggers))
    return lines


def _demand(improvement: Improvement, plan: Plan, *, improve: bool) -> str:
    before = next((value for key, value in plan.baseline.items() if key.partition("[")[0] == improvement.feature), None)
    now = "" if before is None else f" (now {quantity(before)})"
    kind = "improve" if improve else "must not worsen"
    where = "" if not improvement.optional else ", where it can be measured"
    return f"{kind}: {plain(improvement.feature)}{now} {improvement.demand(improve=improve, before=before)}{where}"


def undo(settings: list[dict[str, Any]], width: int = 0) -> list[str]:
    """Return a line for each setting that a run wrote: what a rollback puts back, or why it is left alone.

    Args:
        settings: answer of the method ``settings``: address, saved, written, now, by.
    """
    lines = []
    for each in settings:
        address, now = plain(each["address"], LONG), each["now"]
        saved = "absent" if each["saved"] is None else _value(each["saved"])
        if now is None:
            lines.append(f"{address}: cannot be read now; was {saved}")
        elif each["by"]:
            lines.append(
                f"{address}: reads {_value(now)}, this run wrote {_value(each['written'])}: "
                f"changed since by {plain(each['by'])}, it is left alone"
            )
        elif _value(now) == saved:
            lines.append(f"{address}: reads {saved} as before already")
        else:
            lines.append(_placed(each["address"], f"{_value(now)} → {saved}", width))
    return lines or ["no setting was written: there is nothing to put back"]


def progress(told: dict[str, Any]) -> list[str]:
    """Return how far a verification is: what it waits for, and the features it compares.

    Args:
        told: answer of the method ``verification``.
    """
    clear, held_s = told["clear_s"], min(told["held_s"], told["hold_s"])
    lines = [
        f"verifying, an answer in {told['left_s']:.0f} s at the latest: settings held {held_s:.0f} of "
        f"{told['hold_s']:.0f} s; "
        + ("the fingerprint still matches" if clear is None else f"clear {clear:.0f} of {told['stay_clear_s']:.0f} s")
    ]
    for each in told["measured"]:
        sign = {True: "yes", False: "not yet", None: "?"}[each["holds"]]
        change = "" if each["change"] is None else f" ({_change(each)})"
        lines.append(
            f"  {sign:8}{plain(each['feature'])}: {quantity(each['before'])} → {quantity(each['after'])}{change}; "
            f"{plain(each['demand'])}"
        )
    return lines


def _change(measured: dict[str, Any]) -> str:
    """Return by how much a feature changed: of nothing there is no share, so the number itself."""
    nothing = abs(measured["before"]) <= NOTHING
    return f"{measured['change']:+.4g}" if nothing else f"{measured['change']:+.0%}"


def about(run: Run, host: str) -> list[str]:
    """Return what every question about a run names."""
    plan = run.plan
    return [
        f"host         {plain(host)}",
        (
            f"remediation  {plain(plan.remediation)}, impact {plan.impact}, "
            f"{'reversible' if plan.reversible else 'NOT reversible'}"
        ),
        f"for          {plain(plan.fingerprint)} on {words.entity(plan.entity)}",
        f"run          {run.id}, plan {plan.hash[:12]}",
        *([f"risk         {plain(plan.risk, LONG)}"] if plan.risk else []),
    ]


def story_rows(run: Run, events: list[dict[str, Any]]) -> list[Row]:
    """Return steps and playbook events as rows in the order of time."""
    told: list[tuple[float, int, Row]] = []
    for number, step in enumerate(run.steps):
        detail = f" ({step.detail})" if step.detail else ""
        text = first_line(f"{step.cause}, by {step.actor}{detail}")
        cells = ((words.clock(step.at_s), ""), (str(step.state), words.tone(step.state) or "mark"), (text, ""))
        told.append((step.at_s, 0, Row(key=f"step {number}", cells=cells)))
    for event in events:
        kind = str(event.get("event", ""))
        parts = (event.get("task"), event.get("status"), event.get("message"))
        text = first_line(" ".join(str(each) for each in parts if each))
        cells = ((words.clock(event.get("at_s")), ""), (_EVENTS.get(kind, kind), _event_tone(event)), (text, ""))
        told.append((float(event.get("at_s") or 0.0), 1, Row(key=f"event {event.get('number')}", cells=cells)))
    return [row for _, _, row in sorted(told, key=lambda each: each[:2])]


_EVENTS = {
    "playbook_on_start": "playbook", "playbook_on_task_start": "task", "runner_on_ok": "ok",
    "runner_on_failed": "FAILED", "runner_on_unreachable": "UNREACHABLE", "runner_on_skipped": "skipped",
    "playbook_on_stats": "finished", "check_finished": "dry run", "restore": "restored",
}  # fmt: skip


def _event_tone(event: dict[str, Any]) -> str:
    if event.get("failed") or event.get("ok") is False or event.get("holds") is False:
        return "bad"
    if event.get("changed"):
        return "warn"
    return "good" if event.get("ok") or event.get("holds") else "dim"


def _value(text: str) -> str:
    return plain(text.strip(), LONG) or "(empty)"
