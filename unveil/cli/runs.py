"""`unveil runs`: plan, approve, apply, follow, cancel and roll back fixes."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from unveil.cli import connect, draw
from unveil.cli.helping import add_action
from unveil.cli.run_story import draw_event, draw_plan, draw_story
from unveil.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from unveil.engine.client import Client

DESCRIPTION = """Plan, approve, apply, follow, cancel and roll back fixes.

A plan shows what would change, setting by setting, and touches nothing. What is approved and applied is exactly that
plan: its hash is checked. Whatever a run changed can be put back with `rollback`."""
EXAMPLE = "unveil runs plan e41 && unveil runs approve r7f && unveil runs apply r7f"

TERMINAL = {
    "kept": 0, "no_change": 0, "rolled_back": 1, "failed_clean": 1, "failed_dirty": 1, "reverted_by_other": 1,
    "inconclusive": 1, "canceled": 1, "expired": 1, "refused": 1,
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and their flags."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = add_action(actions, "list", "list runs, newest first", "unveil runs list --active")
    listing.add_argument("--active", action="store_true", help="only those under way")
    show = add_action(actions, "show", "tell the story of one run", "unveil runs show r7f")
    plan = add_action(actions, "plan", "plan the fix of an episode; changes nothing", "unveil runs plan e41 --check")
    plan.add_argument("--remediation", metavar="NAME", help="instead of the fingerprint's first")
    plan.add_argument("--check", action="store_true", help="also let Ansible go through it in check mode")
    approve = add_action(actions, "approve", "approve a plan, exactly as it is shown", "unveil runs approve r7f")
    apply = add_action(
        actions, "apply", "carry out an approved plan and see it verified or undone", "unveil runs apply r7f"
    )
    follow = add_action(actions, "follow", "print what happens to a run, until it has ended", "unveil runs follow r7f")
    rollback = add_action(actions, "rollback", "put back what a run changed", "unveil runs rollback r7f")
    cancel = add_action(actions, "cancel", "stop a run; what it changed is put back", "unveil runs cancel r7f")
    for action in (show, approve, apply, follow, rollback, cancel):
        action.add_argument("run", metavar="RUN", help="a run's id, or the beginning of it")
    plan.add_argument("episode", metavar="EPISODE", help="an episode's id, or the beginning of it")
    reset = add_action(
        actions,
        "reset",
        "close the breaker that stopped automation after runs went wrong",
        "unveil runs reset --reason 'the playbook is mended'",
    )
    reset.add_argument("--keep-waiting", action="store_true", help="keep what automation had proposed meanwhile")
    release = add_action(
        actions,
        "release",
        "let automation write a setting again that was changed by hand",
        "unveil runs release sysctl:vm.dirty_ratio --reason 'CHG-4711 is over'",
    )
    release.add_argument("setting", metavar="ADDRESS", help="as a plan shows it, e.g. sysctl:vm.dirty_ratio")
    for action in (reset, release):
        action.add_argument("--reason", required=True, help="why it is safe again")
    for action in (approve, apply, rollback, cancel):
        action.add_argument("--yes", action="store_true", help="do not ask")
    for action in (apply, rollback, cancel):
        action.add_argument("--no-wait", action="store_true", help="return at once instead of following the run")
    for action in (listing, show, plan, approve, apply, follow, rollback, cancel, reset, release):
        connect.add_state_dir(action)
        connect.add_json(action)


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked; the exit code of a followed run is that of its outcome."""
    actions = {
        "list": _list, "show": _show, "plan": _plan, "approve": _approve, "apply": _apply, "follow": _again,
        "rollback": _rollback, "cancel": _cancel, "reset": _reset, "release": _release,
    }  # fmt: skip
    return actions[arguments.action](arguments)


def _list(arguments: argparse.Namespace) -> int:
    runs = connect.watcher_or_journal(arguments).call("runs", active_only=arguments.active)
    if arguments.json:
        draw.print_json(runs)
    elif not runs:
        draw.line("no run" + (" is under way" if arguments.active else " yet"))
    else:
        draw.table(
            ("run", "state", "remediation", "entity", "planned", "last step", "by"),
            (
                (
                    each["id"],
                    each["steps"][-1]["state"],
                    each["plan"]["remediation"],
                    draw.entity(each["plan"]["entity"]),
                    draw.clock(each["steps"][0]["at_s"]),
                    each["steps"][-1]["cause"],
                    each["steps"][-1]["actor"],
                )
                for each in runs
            ),
        )
    return 0


def _show(arguments: argparse.Namespace) -> int:
    told = connect.watcher_or_journal(arguments).call("run", id=arguments.run)
    if arguments.json:
        draw.print_json(told)
        return 0
    draw_story(told)
    return 0


def _plan(arguments: argparse.Namespace) -> int:
    client = connect.watcher(arguments)
    planned = client.call("plan", episode=arguments.episode, remediation=arguments.remediation)
    if arguments.check:
        client.call("dry_run", id=planned["id"])
        _wait_for_check(client, planned["id"], quiet=arguments.json)
    if arguments.json:
        draw.print_json(client.call("run", id=planned["id"]) if arguments.check else planned)
        return 0
    draw_plan(planned)
    draw.line(f"nothing was changed. `unveil runs approve {planned['id']}` approves exactly this plan", style="dim")
    return 0


def _wait_for_check(client: Client, identity: str, *, quiet: bool) -> None:
    seen = 0
    while True:
        told = client.call("run", id=identity, after_event=seen)
        for event in told["events"]:
            seen = event["number"]
            if not quiet:
                draw.line(draw_event(event), style="dim")
            if event.get("event") == "check_finished":
                return
        time.sleep(0.2)


def _approve(arguments: argparse.Namespace) -> int:
    client = connect.watcher(arguments)
    told = client.call("run", id=arguments.run)["run"]
    if not arguments.json:
        draw_plan(told)
        if who := client.call("approvers", id=told["id"]):
            draw.line(f"who may approve it: {draw.plain(who, 500)}", style="dim")
    confirm(arguments, f"approve {told['id']} on this host?")
    approved = client.call("approve", id=told["id"], hash=told["plan"]["hash"])
    if arguments.json:
        draw.print_json(approved)
    else:
        draw.line(f"approved. `unveil runs apply {told['id']}` carries it out")
    return 0


def _apply(arguments: argparse.Namespace) -> int:
    client = connect.watcher(arguments)
    before = client.call("run", id=arguments.run)
    told = before["run"]
    if not arguments.json:
        draw_plan(told)
    if told["steps"][-1]["state"] == "approved":  # any other state is refused by the watcher, with the reason
        confirm(arguments, f"change this host's settings as shown ({told['id']})?")
    client.call("apply", id=told["id"], hash=told["plan"]["hash"])
    return _follow(client, before, arguments)


def _again(arguments: argparse.Namespace) -> int:
    arguments.no_wait = False
    client = connect.watcher(arguments)
    before = client.call("run", id=arguments.run)
    last = before["run"]["steps"][-1]
    if not arguments.json:
        draw.line(f"{before['run']['id']} is {last['state']} since {draw.clock(last['at_s'])}")
    return _follow(client, before, arguments)


def _rollback(arguments: argparse.Namespace) -> int:
    client = connect.watcher(arguments)
    before = client.call("run", id=arguments.run)
    told = before["run"]
    changed = len(told["written"])
    what = "setting" if changed == 1 else f"{changed} settings"
    confirm(arguments, f"put back the {what} that {told['id']} changed?")
    client.call("rollback", id=told["id"])
    code = _follow(client, before, arguments)
    state = client.call("run", id=told["id"])["run"]["steps"][-1]["state"]
    return 0 if state == "rolled_back" else code  # that is what was asked for


def _cancel(arguments: argparse.Namespace) -> int:
    client = connect.watcher(arguments)
    before = client.call("run", id=arguments.run)
    told = before["run"]
    confirm(arguments, f"stop {told['id']} and put back what it changed?")
    client.call("cancel", id=told["id"])
    _follow(client, before, arguments)
    return 0


def _reset(arguments: argparse.Namespace) -> int:
    told = connect.watcher(arguments).call(
        "reset_breaker", reason=arguments.reason, keep_waiting=arguments.keep_waiting
    )
    if arguments.json:
        draw.print_json(told)
    else:
        dropped = f"; dropped what waited: {', '.join(told['dropped'])}" if told["dropped"] else ""
        draw.line(f"the breaker is closed{dropped}")
    return 0


def _release(arguments: argparse.Namespace) -> int:
    made = connect.watcher(arguments).call("release", setting=arguments.setting, reason=arguments.reason)
    if arguments.json:
        draw.print_json(made)
    else:
        draw.line(f"automation may write {draw.plain(made['subject'])} again")
    return 0


def confirm(arguments: argparse.Namespace, question: str) -> None:
    """Ask a person for the word ``yes``; Enter alone never confirms.

    Raises:
        UsageError: there is nobody to ask, or the answer was another.
    """
    if arguments.yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("nobody to ask: this is not a terminal", hint="--yes says so beforehand")
    try:
        answer = input(f"{question} type yes: ")
    except EOFError:  # Ctrl-D
        print()
        answer = ""
    if answer.strip().lower() != "yes":
        raise UsageError("not confirmed; nothing was changed")


def _follow(client: Client, before: dict[str, Any], arguments: argparse.Namespace) -> int:
    """Print steps and playbook events that are newer than *before*, as they come, until the run has ended.

    Returns:
        The exit code of the run's outcome.
    """
    try:
        return _print_news(client, before, arguments)
    except KeyboardInterrupt:  # ends the looking on, not the run
        identity = before["run"]["id"]
        print(
            f"\nunveil: no longer following; what was ordered goes on"
            f"\n  hint: `unveil runs follow {identity}` looks on again, `unveil runs cancel {identity}` stops it",
            file=sys.stderr,
        )
        raise


def _print_news(client: Client, before: dict[str, Any], arguments: argparse.Namespace) -> int:
    seen_steps = len(before["run"]["steps"])
    seen_events = before["events"][-1]["number"] if before["events"] else 0
    while True:
        told = client.call("run", id=before["run"]["id"], after_event=seen_events)
        steps = told["run"]["steps"]
        if not arguments.json:
            for event in told["events"]:
                draw.line(f"  {draw_event(event)}", style="dim")
            for step in steps[seen_steps:]:
                draw.line(
                    f"{draw.clock(step['at_s'])} {step['state']}: {draw.plain(step['cause'])}"
                    + (f" ({draw.plain(step['detail'], 500)})" if step["detail"] else ""),
                    style=draw.COLOURS.get(step["state"], ""),
                )
        seen_steps = len(steps)
        seen_events = told["events"][-1]["number"] if told["events"] else seen_events
        if arguments.no_wait or steps[-1]["state"] in TERMINAL:
            if arguments.json:
                draw.print_json(told["run"])
            return TERMINAL.get(steps[-1]["state"], 0)
        time.sleep(0.25)
