"""`unveil fleet`: one fix over many hosts of an Ansible inventory, in batches, each verified or undone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unveil.cli import connect, draw
from unveil.cli.helping import add_action
from unveil.cli.runs import confirm
from unveil.errors import BadInputError, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from unveil.engine.fleet import Fleet
    from unveil.records.fleet import FleetPlan
    from unveil.records.run import Run, SettingChange

DESCRIPTION = """Carry one fix out over many hosts of an Ansible inventory, a few at a time.

A plan reads every host and shows what would change on each; nothing is touched. Applying it begins with one host, the
canary. Each batch has to hold before the next begins; at the first host that does not, everything stops and what was
changed there is put back. Ended half-way, by whatever, `apply` goes on from where it was."""
EXAMPLE = "unveil fleet plan raise_accept_queue --inventory inventory/hosts.yml --hosts 'gpu-a-*'"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and their flags."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    plan = add_action(actions, "plan", "read every host and show what would change; changes nothing", EXAMPLE)
    plan.add_argument("remediation", metavar="REMEDIATION", help="a fix of the knowledge base")
    plan.add_argument("--inventory", required=True, metavar="FILE", help="an Ansible inventory")
    plan.add_argument("--hosts", required=True, metavar="PATTERN", help="a host pattern of Ansible")
    plan.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a variable of the fix")
    plan.add_argument("--serial", default="1,10%,50%", help="sizes of the batches, the last repeats (1,10%%,50%%)")
    plan.add_argument("--verify", metavar="FILE", help="a playbook that looks at a batch before the next begins")
    apply = add_action(
        actions, "apply", "carry a plan out, or go on with it", "unveil fleet apply f59 --profile manual"
    )
    apply.add_argument(
        "--rollback", choices=("failed", "all"), default="failed", help="what is put back when a host fails (failed)"
    )
    apply.add_argument("--past-failures", action="store_true", help="go on although a host has failed before")
    rollback = add_action(
        actions, "rollback", "put back what a plan changed, on every host", "unveil fleet rollback f59"
    )
    show = add_action(actions, "show", "say how every host of a plan stands", "unveil fleet show f59")
    listing = add_action(actions, "list", "list fleet plans, newest first", "unveil fleet list")
    for action in (apply, rollback, show):
        action.add_argument("plan", metavar="PLAN", help="a fleet plan's id, or the beginning of it")
    for action in (apply, rollback):
        action.add_argument("--yes", action="store_true", help="do not ask")
    for action in (plan, apply, rollback):
        action.add_argument("--kb", metavar="DIR", help="knowledge base (default: the shipped one)")
    apply.add_argument(
        "--profile", default="site", choices=("site", "manual", "approve", "auto"),
        help="how far automation may go there (default: inventory/profiles.yml, which as shipped observes)",
    )  # fmt: skip
    for action in (plan, apply, rollback, show, listing):
        connect.add_state_dir(action)
        connect.add_json(action)


def run(arguments: argparse.Namespace) -> int:
    """Do what was asked; 0 when every host ended well, 1 when one did not."""
    actions = {"plan": _plan, "apply": _apply, "rollback": _rollback, "show": _show, "list": _list}
    return actions[arguments.action](arguments)


def _home(arguments: argparse.Namespace) -> Path:
    return connect.state_dir(arguments).path / "fleet"


def _plan(arguments: argparse.Namespace) -> int:
    import time

    from unveil.engine.fleet_plan import plan_fleet, runs_of
    from unveil.engine.knowledge import KnowledgeInUse

    inventory = arguments.inventory
    if not inventory.endswith(","):
        if not Path(inventory).exists():
            raise BadInputError(
                f"no inventory at {inventory}", hint="a file of Ansible's, or hosts that end with a comma"
            )
        inventory = str(Path(inventory).absolute())
    verify = str(Path(arguments.verify).absolute()) if arguments.verify else ""
    if verify and not Path(verify).is_file():
        raise BadInputError(f"no playbook at {arguments.verify}")
    knowledge = KnowledgeInUse(arguments.kb or "", now_s=time.time())
    try:
        made = plan_fleet(
            _home(arguments), knowledge, remediation=arguments.remediation, inventory=inventory,
            pattern=arguments.hosts, serial=tuple(arguments.serial.split(",")), given=_given(arguments.set),
            verify=verify, actor=_actor(),
        )  # fmt: skip
    finally:
        knowledge.close()
    runs = runs_of(_home(arguments), made)
    if arguments.json:
        draw.print_json(_told(made, runs))
    else:
        _draw(made, runs)
        draw.line(f"nothing was changed. `unveil fleet apply {made.id}` carries it out, one host first", style="dim")
    return 0 if all(host.run for host in made.hosts) else 1


def _given(pairs: list[str]) -> dict[str, str]:
    given = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"--set takes NAME=VALUE, not {pair!a}")
        given[name] = value
    return given


def _actor() -> str:
    return f"uid:{os.getuid()} pid:{os.getpid()}"


def _open(arguments: argparse.Namespace, made: FleetPlan) -> tuple[Fleet, Any]:
    import time

    from unveil.engine.fleet import Fleet
    from unveil.engine.knowledge import KnowledgeInUse

    knowledge = KnowledgeInUse(arguments.kb or "", now_s=time.time())

    def tell(host: str, run: Run) -> None:
        step = run.steps[-1]
        if not arguments.json:
            detail = f" ({draw.plain(step.detail, 500)})" if step.detail else ""
            line = f"{draw.clock(step.at_s)} {draw.plain(host)}: {step.state}: {draw.plain(step.cause)}{detail}"
            draw.line(line, style=draw.COLOURS.get(step.state, ""))

    try:
        profile = getattr(arguments, "profile", "site")
        return Fleet(_home(arguments), made, knowledge, actor=_actor(), profile=profile, tell=tell), knowledge
    except BaseException:
        knowledge.close()
        raise


def _apply(arguments: argparse.Namespace) -> int:
    from unveil.engine.fleet_plan import find_fleet, runs_of

    made = find_fleet(_home(arguments), arguments.plan)
    if not arguments.json:
        _draw(made, runs_of(_home(arguments), made))
    confirm(arguments, f"change {draw.several(len(made.hosts), 'host')} as shown ({made.id}, plan {made.hash[:12]})?")
    fleet, knowledge = _open(arguments, made)
    try:
        well = fleet.apply(roll_back_all=arguments.rollback == "all", past_failures=arguments.past_failures)
    finally:
        fleet.close()
        knowledge.close()
    _end(arguments, made, fleet.runs)
    return 0 if well else 1


def _rollback(arguments: argparse.Namespace) -> int:
    from unveil.engine.fleet_plan import find_fleet
    from unveil.records.run import RunState

    made = find_fleet(_home(arguments), arguments.plan)
    confirm(arguments, f"put back what {made.id} changed on {draw.several(len(made.hosts), 'host')}?")
    fleet, knowledge = _open(arguments, made)
    try:
        fleet.roll_back(tuple(fleet.runs))
    finally:
        fleet.close()
        knowledge.close()
    _end(arguments, made, fleet.runs)
    left = (RunState.KEPT, RunState.FAILED_DIRTY, RunState.REVERTED_BY_OTHER)
    return 1 if any(run.state in left for run in fleet.runs.values()) else 0


def _show(arguments: argparse.Namespace) -> int:
    from unveil.engine.fleet_plan import find_fleet, runs_of

    made = find_fleet(_home(arguments), arguments.plan)
    _end(arguments, made, runs_of(_home(arguments), made), plan=True)
    return 0


def _list(arguments: argparse.Namespace) -> int:
    from unveil.engine.fleet_plan import list_fleets, runs_of

    plans = list_fleets(_home(arguments))
    if arguments.json:
        draw.print_json([_told(made, runs_of(_home(arguments), made)) for made in plans])
    elif not plans:
        draw.line("no fleet plan yet")
    else:
        draw.table(
            ("plan", "remediation", "hosts", "planned"),
            ((made.id, made.remediation, made.pattern, draw.clock(made.created_s)) for made in plans),
        )
    return 0


def _end(arguments: argparse.Namespace, made: FleetPlan, runs: dict[str, Run], *, plan: bool = False) -> None:
    if arguments.json:
        draw.print_json(_told(made, runs))
        return
    if plan:
        _draw(made, runs)
    draw.table(
        ("host", "state", "because", "detail"),
        [_row(host.name, runs.get(host.name), host.reason) for host in made.hosts],
    )


def _row(host: str, its: Run | None, reason: str) -> tuple[str, ...]:
    if its is None:
        return (host, "refused", "could not be planned", reason)
    last = its.steps[-1]
    return (host, last.state, last.cause, last.detail)


def _told(made: FleetPlan, runs: dict[str, Run]) -> dict[str, Any]:
    from unveil.records.codec import encode

    told: dict[str, Any] = {"fleet": encode(made), "runs": {host: encode(run) for host, run in runs.items()}}
    return told


def _draw(made: FleetPlan, runs: dict[str, Run]) -> None:
    """Draw a fleet plan: per host what it reads and what it would read."""
    from unveil.remediation.fleet import batches

    draw.line(f"{made.id} {made.remediation} on {draw.plain(made.pattern)}, plan {made.hash[:12]}")
    order = batches([host.name for host in made.hosts if host.run], made.serial)
    counted = "1 batch" if len(order) == 1 else f"{len(order)} batches"
    draw.line(f"in {counted}: {draw.plain(' · '.join(', '.join(batch) for batch in order), 1000)}")
    rows = [row for host, run in runs.items() for row in changes(host, run.plan.changes)]
    draw.table(("host", "setting", "before", "after"), rows)
    for host in made.hosts:
        if host.reason:
            draw.line(f"  {draw.plain(host.name)} could not be planned: {draw.plain(host.reason, 500)}", style="yellow")


def changes(host: str, planned: Sequence[SettingChange]) -> list[tuple[str, str, str, str]]:
    """Return what would change on a host, a row a setting; one row that says so where nothing would."""
    from unveil.remediation.setting import equal

    wanted = [change for change in planned if change.after is not None]
    if wanted and all(
        change.before is not None and equal(change.address, change.before, change.after or "") for change in wanted
    ):
        settings = "1 setting" if len(wanted) == 1 else f"{len(wanted)} settings"
        return [(host, settings, "as wanted", "nothing to change")]
    return [
        (host, change.address, (change.before or change.reason).strip(), change.after or "(saved, moves along)")
        for change in planned
    ]
