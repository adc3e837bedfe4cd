"""How a run is told: its plan, what happened to it in words, and the whole of it as a story."""

from __future__ import annotations

from typing import Any

from unveil.cli import draw

_SPOKEN = {
    "planned": "Planned",
    "approved": "Approved",
    "applying": "Applying: the values were saved, the playbook began",
    "verifying": "Verifying: the playbook is through, fresh windows are judged",
    "rolling_back": "Rolling back: the saved values are put back",
    "kept": "Kept: it helped, and nothing named got worse",
    "no_change": "Nothing to do: everything was as wanted",
    "rolled_back": "Rolled back: the settings read as before",
    "failed_clean": "Failed, clean: the settings read as before",
    "failed_dirty": "Failed, dirty: a person must look at the settings",
    "reverted_by_other": "Reverted by someone else: what they wrote was left alone",
    "inconclusive": "Inconclusive: the effect could not be measured in time",
    "canceled": "Canceled",
    "expired": "Expired: nobody answered in time",
    "refused": "Refused: nothing was changed",
}
_DONE = {"runner_on_ok": "done", "runner_on_failed": "failed", "runner_on_unreachable": "unreachable",
         "runner_on_skipped": "skipped"}  # fmt: skip
_QUIET = {"playbook_on_start", "playbook_on_stats", "playbook_on_task_start"}


def draw_event(event: dict[str, Any]) -> str:
    """Return one line, in words, for what happened during a run."""
    kind, task = str(event.get("event", "")), str(event.get("task", ""))
    message = str(event.get("message", ""))
    match kind:
        case "playbook_on_start":
            said = "the playbook begins"
        case "playbook_on_stats":
            said = "the playbook is through"
        case "playbook_on_no_hosts_matched":
            said = "the playbook found no host to act on"
        case "playbook_on_task_start":
            said = f"{task} …"
        case "runner_on_ok" | "runner_on_failed" | "runner_on_unreachable" | "runner_on_skipped":
            how = "changed" if kind == "runner_on_ok" and event.get("changed") else _DONE[kind]
            said = f"{task}: {how}" + (f": {message}" if message else "")
        case "check_finished":
            said = f"dry run {event.get('status', '')}: {message}"
        case "measured" | "restore":
            said = message
        case _:
            said = " ".join(word for word in (kind.replace("_", " "), task, message) if word)
    return draw.plain(said, 400)


def draw_plan(run: dict[str, Any]) -> None:
    """Draw a plan: what for, with which values, and before → after of each setting."""
    plan = run["plan"]
    draw.line(
        f"{run['id']} {plan['remediation']} for {plan['fingerprint']} on {draw.entity(plan['entity'])}: "
        f"{run['steps'][-1]['state']}; mode {plan['mode']}, impact {plan['impact']}, "
        f"{'reversible' if plan['reversible'] else 'NOT reversible'}, plan {plan['hash'][:12]}"
    )
    if plan.get("risk"):
        draw.line(f"risk: {draw.plain(plan['risk'], 1000)}")
    draw.table(
        ("setting", "before", "after"),
        (
            (
                change["address"],
                draw.plain((change["before"] or "").strip()) if change["before"] is not None else change["reason"],
                _after(change),
            )
            for change in plan["changes"]
        ),
    )
    for name, value in plan["variables"].items():
        mark = " (a tenant's word: shown only)" if name in plan["untrusted"] else ""
        draw.line(f"  {name} = {draw.plain(value)}{mark}", style="dim")


def _after(change: dict[str, Any]) -> str:
    if change["coupled"]:
        return "(saved, moves along)"
    if change["address"].startswith("memory:"):
        return "(looked at)"
    return str(change["after"] or "(the playbook decides)").strip()


def draw_story(told: dict[str, Any]) -> None:
    """Tell a run from its plan to its end, what happened in between beside the step that it belongs to."""
    run = told["run"]
    draw_plan(run)
    events = [event for event in told["events"] if event.get("event") not in _QUIET]
    steps = run["steps"]
    for number, step in enumerate(steps):
        head = f"{draw.clock(step['at_s'])} {_SPOKEN[step['state']]}, because: {draw.plain(step['cause'])}"
        draw.line(f"{head}; by {draw.plain(step['actor'])}", style=draw.COLOURS.get(step["state"], ""))
        if step["detail"]:
            draw.line(f"         {draw.plain(step['detail'], 1000)}")
        if step["state"] == "verifying":
            _draw_difference(run)
        until = steps[number + 1]["at_s"] if number + 1 < len(steps) else float("inf")
        while events and events[0]["at_s"] < until:
            draw.line(f"         {draw_event(events.pop(0))}", style="dim")
    if grounds := run["plan"].get("grounds", ""):
        window = grounds.partition(" ")[0].replace("=", " ")
        draw.line(f"it stands on {window}; `unveil explain {run['plan']['episode']}` says why", style="dim")


def _draw_difference(run: dict[str, Any]) -> None:
    """Say what each setting read before and reads after the playbook."""
    for address, before in run["saved"].items():
        after = run["written"].get(address)
        if after is not None and after != before:
            draw.line(f"         {draw.plain(address)}: {draw.plain(before.strip())} → {draw.plain(after.strip())}")
