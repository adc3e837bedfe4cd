"""What a run's child is asked to do, and what it answers: plain files in the run's directory.

``request.json`` the supervisor writes · ``child.json`` who the child is · ``events.jsonl`` one line an event ·
``result.json`` the answer, written whole and last · ``child.log`` what it said on its standard error · ``played/``
copies of the playbook and our modules · ``work/`` Ansible's private directory, deleted once its events are taken over.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from unveil.errors import UnreadableError
from unveil.records.codec import decode, encode
from unveil.remediation.lifecycle import Cause

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from unveil.records.fact import FactValue
    from unveil.records.run import Plan

Record = TypeVar("Record")

REQUEST = "request.json"
CHILD = "child.json"
EVENTS = "events.jsonl"
RESULT = "result.json"
LOG = "child.log"
WORK = "work"


class Status(StrEnum):
    """How a playbook ended."""

    SUCCESSFUL = "successful"
    FAILED = "failed"
    CANCELED = "canceled"
    TIMEOUT = "timeout"
    LOST = "lost"  # its child died without an answer

    @property
    def cause(self) -> Cause:
        """Return what the lifecycle calls it."""
        return {
            Status.SUCCESSFUL: Cause.APPLIED,
            Status.FAILED: Cause.APPLY_FAILED,
            Status.CANCELED: Cause.CANCELED,
            Status.TIMEOUT: Cause.TIMEOUT,
            Status.LOST: Cause.LOST,
        }[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What one host is asked about one setting: read it, or write a value, or only while it reads something."""

    address: str
    value: str | None = None
    expect: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One start of a playbook.

    Attributes:
        mark: what every process of the run carries in its environment.
        playbook: absolute path of apply.yml.
        modules: absolute path of the folder with our Ansible modules.
        check: only look (``--check --diff``).
        strict: a template in a value that is not ours fails the run (for tests of a knowledge base); otherwise it is
            left as the text that it is, because a tenant must not be able to keep a fix from being applied.
        settings: (address, wanted value) of the plan, in order.
        inventory: an Ansible inventory, for other hosts than this; empty for this host alone.
        hosts: the host pattern of that inventory.
        wanted: host → what is read or written there, for our own playbook that only does that.
        work: Ansible's private directory where it is not the run's own: that of a child that stood by.
        bare: the playbook brings its variables itself (`several.py`).
    """

    run: str
    mark: str
    playbook: str
    modules: str
    check: bool
    timeout_s: float
    host_root: str
    variables: Mapping[str, FactValue]
    settings: tuple[tuple[str, str], ...]
    strict: bool = False
    inventory: str = ""
    hosts: str = ""
    wanted: Mapping[str, tuple[Wanted, ...]] | None = None
    work: str = ""
    bare: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What a task changed, or would: as it tells itself (``--diff``)."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    """One event of a playbook, cut to what a person and the journal need; control characters are gone.

    Attributes:
        counter: number that Ansible gave it; there may be gaps.
        kind: e.g. ``playbook_on_task_start``, ``runner_on_ok``.
        answer: the numbers and short texts that a module returned.
        contents: address → what it reads now, of our module `unveil_setting`; None where it cannot be read.
    """

    counter: int
    kind: str
    task: str = ""
    host: str = ""
    changed: bool = False
    failed: bool = False
    message: str = ""
    differences: tuple[Difference, ...] = ()
    answer: Mapping[str, str] | None = None
    contents: Mapping[str, str | None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """How a run of a playbook ended.

    Attributes:
        rc: exit status of ansible-playbook, None when there is none.
        changed: tasks that changed something, or would.
        differences: of all tasks.
        survivors: processes of the run that could not be ended; anything but 0 needs a person.
        message: why it failed.
    """

    status: Status
    check: bool
    rc: int | None
    changed: int
    survivors: int
    duration_s: float
    message: str = ""
    differences: tuple[Difference, ...] = ()


def request_of(
    plan: Plan,
    *,
    run: str,
    mark: str,
    playbook: Path,
    modules: Path,
    check: bool,
    host_root: str,
    strict: bool,
    work: str = "",
) -> Request:
    """Return the request that carries out a plan, with the copies that are to be played."""
    return Request(
        run=run,
        mark=mark,
        playbook=str(playbook),
        modules=str(modules),
        check=check,
        timeout_s=plan.timeout_s,
        host_root=host_root,
        variables=plan.variables,
        settings=tuple((change.address, change.after) for change in plan.changes if change.after is not None),
        strict=strict,
        work=work,
    )


def extravars(request: Request) -> dict[str, Any]:
    """Return the playbook's variables as JSON, every text marked as data.

    Ansible would take ``{{ lookup('pipe', …) }}`` in an extra variable for a template and run it; one that is wrapped
    in ``__ansible_unsafe`` stays the text that it is (trap T6).
    """
    if request.bare:
        return {}
    values = given(request.variables, request.settings, request.host_root)
    if request.inventory:
        values["unveil_target"] = request.hosts
    if request.wanted is not None:
        values["unveil_wanted"] = {host: encode(each) for host, each in request.wanted.items()}
    return {name: inert(encode(value)) for name, value in values.items()}


def given(variables: Mapping[str, FactValue], settings: tuple[tuple[str, str], ...], host_root: str) -> dict[str, Any]:
    """Return what every playbook of a remediation is given."""
    asked = [{"address": address, "value": value} for address, value in settings]
    return {**variables, "unveil_settings": asked, "unveil_host_root": host_root}


def inert(value: Any) -> Any:
    """Return a JSON value with every text in it marked as data; numbers, booleans and null are what they are."""
    if isinstance(value, str):
        return {"__ansible_unsafe": value}
    if isinstance(value, list):
        return [inert(item) for item in value]
    if isinstance(value, dict):
        return {name: inert(item) for name, item in value.items()}
    return value


def load_request(directory: Path) -> Request:
    """Return the request in a run's directory.

    Raises:
        UnreadableError: there is none, or it is damaged.
    """
    return _load(Request, directory / REQUEST)


def load_result(directory: Path) -> RunResult | None:
    """Return the result in a run's directory, None while there is none."""
    if not (directory / RESULT).exists():
        return None
    return _load(RunResult, directory / RESULT)


def decode_event(line: str) -> RunEvent:
    """Return an event from its line in ``events.jsonl``."""
    return decode(RunEvent, json.loads(line))


def _load(record: type[Record], path: Path) -> Record:
    try:
        return decode(record, json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise UnreadableError(f"{path} cannot be used: {error}") from error
