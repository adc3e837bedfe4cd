"""Fleet plans: one remediation drawn for every host of an inventory's pattern. The hosts are only read."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import time
from typing import TYPE_CHECKING

from unveil.errors import BadInputError, RefusedError, UnreadableError, did_you_mean
from unveil.execution.played import refuse_open_to_others
from unveil.execution.remote import Remote, reading
from unveil.execution.snapshot import write_durably
from unveil.records.codec import decode, encode
from unveil.records.fleet import FleetHost, FleetPlan
from unveil.remediation import fleet
from unveil.remediation.lifecycle import new_run
from unveil.store.journal import Journal
from unveil.store.queries import Queries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from unveil.engine.knowledge import KnowledgeInUse
    from unveil.execution.remote import HostAnswer
    from unveil.records.fact import FactValue
    from unveil.records.remediation import Remediation
    from unveil.records.run import Run

PLAN = "fleet.json"
ASKED = "asked"  # folder of what is asked of hosts
JOURNAL = "journal.db"


def plan_fleet(
    home: Path,
    knowledge: KnowledgeInUse,
    *,
    remediation: str,
    inventory: str,
    pattern: str,
    serial: Sequence[str] = (),
    given: Mapping[str, str] | None = None,
    verify: str = "",
    actor: str,
) -> FleetPlan:
    """Draw a plan for every host of a pattern; the hosts are only read.

    Args:
        home: the folder of all fleet plans; made with mode 0700.

    Raises:
        BadInputError: what a person wrote is wrong.
        RefusedError: it cannot be planned: no host answers, a value is missing, there are more hosts than its author
            allows at once, or someone else may write the inventory or *home*.
    """
    found = remediation_of(knowledge, remediation)
    fix = fleet.given_values(found, given or {})
    site = knowledge.current.site
    addresses = fleet.addresses_of(fix, site=site)
    if not addresses:
        raise RefusedError(f"{remediation} names no setting: over many hosts nothing could be seen or put back")
    fleet.batches(("",), serial)  # a wrong size is told before hosts are asked
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    refuse_open_to_others(home)
    identity = f"f{secrets.token_hex(6)}"
    folder = home / identity
    folder.mkdir(mode=0o700)
    answers = Remote(folder / ASKED, inventory, modules_of(knowledge)).ask(pattern, {"*": reading(addresses)})
    if found.limits.max_hosts is not None and len(answers) > found.limits.max_hosts:
        raise RefusedError(
            f"{pattern} names {len(answers)} hosts; {remediation} is for at most {found.limits.max_hosts} at once",
            hint="name fewer hosts, or change limits.max_hosts of the remediation",
        )
    hosts, hash_ = _journalled(folder, fix, answers, site=site, actor=actor, settled=(*serial, verify))
    made = FleetPlan(
        id=identity, remediation=remediation, revision=found.revision, inventory=inventory, pattern=pattern,
        hosts=hosts, serial=tuple(serial) or fleet.DEFAULT_SERIAL, given=dict(given or {}), verify=verify,
        created_s=time.time(), hash=hash_,
    )  # fmt: skip
    write_durably(folder / PLAN, encode(made))
    return made


def _journalled(
    folder: Path,
    fix: Remediation,
    answers: Mapping[str, HostAnswer],
    *,
    site: Mapping[str, FactValue],
    actor: str,
    settled: tuple[str, ...],
) -> tuple[tuple[FleetHost, ...], str]:
    """Journal a run for each host that can be planned; return the hosts, and the hash over all that was settled."""
    journal = Journal(folder / JOURNAL)
    now_s = time.time()
    hosts, hashes = [], []
    try:
        for host, answer in sorted(answers.items(), key=_natural):
            try:
                if answer.failure:
                    raise RefusedError(answer.failure)
                drawn = fleet.plan_for(fix, host, site=site, read=answer.contents.get, now_s=now_s)
            except RefusedError as error:
                hosts.append(FleetHost(name=host, reason=error.what))
                continue
            run = new_run(f"r{secrets.token_hex(6)}", drawn, actor, now_s, host)
            journal.put_run(run)
            hosts.append(FleetHost(name=host, run=run.id))
            hashes.append((host, drawn.hash))
    finally:
        journal.close()
    told = json.dumps([hashes, settled], separators=(",", ":"))
    return tuple(hosts), hashlib.sha256(told.encode()).hexdigest()


def _natural(item: tuple[str, HostAnswer]) -> list[tuple[int, str]]:
    """Order hosts by name, numbers in them as numbers: gpu-2 before gpu-10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]+)", item[0])]


def list_fleets(home: Path) -> tuple[FleetPlan, ...]:
    """Return every fleet plan, newest first.

    Raises:
        RefusedError: someone else may write there: a plan names the inventory, which is trusted like a program.
    """
    if home.is_dir():
        refuse_open_to_others(home)
    found = [_load(path.parent) for path in home.glob(f"f*/{PLAN}")]
    return tuple(sorted(found, key=lambda each: -each.created_s))


def find_fleet(home: Path, prefix: str) -> FleetPlan:
    """Return the fleet plan whose id begins so, or raise BadInputError."""
    found = [each for each in list_fleets(home) if prefix and each.id.startswith(prefix)]
    if len(found) != 1:
        raise BadInputError(f"no fleet plan {prefix!a}, or more than one", hint="`unveil fleet list` lists them")
    return found[0]


def runs_of(home: Path, made: FleetPlan) -> dict[str, Run]:
    """Return host → its run, as the journal has it."""
    queries = Queries(home / made.id / JOURNAL)
    try:
        runs = {run.id: run for run in queries.runs(limit=10_000)}
    finally:
        queries.close()
    return {host.name: runs[host.run] for host in made.hosts if host.run in runs}


def _load(folder: Path) -> FleetPlan:
    try:
        return decode(FleetPlan, json.loads((folder / PLAN).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UnreadableError(f"{folder / PLAN} cannot be used: {error}", hint="plan again") from error


def remediation_of(knowledge: KnowledgeInUse, name: str) -> Remediation:
    """Return a remediation of the knowledge base in use, or raise BadInputError."""
    found = knowledge.current.remediation(name)
    if found is None:
        names = [each.name for each in knowledge.current.remediations]
        hint = did_you_mean(name, names, otherwise=f"one of {', '.join(names)}")
        raise BadInputError(f"no remediation {name!a}", hint=hint)
    return found


def modules_of(knowledge: KnowledgeInUse) -> Path:
    """Return the folder with our Ansible modules."""
    return knowledge.root / "playbooks" / "modules"
