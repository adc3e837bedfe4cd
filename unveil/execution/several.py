"""Several playbooks in one ansible-playbook, one after the other, each for a host of its own name.

Starting Ansible costs more than most playbooks, so the tests of a knowledge base share a start. Each play gets the
variables that a run of its own would get, as data, and its own root; nothing of one is there in another. The first that
fails ends them all, as Ansible has it: what a shared start says counts only when every part of it passed.
"""

from __future__ import annotations

import secrets
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unveil.execution.played import PLAYED, take_along
from unveil.execution.remote import HostAnswer, answers_in, play_to_the_end
from unveil.execution.request import Request, given, inert, load_result
from unveil.execution.snapshot import write_whole
from unveil.records.codec import encode

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping

    from unveil.execution.request import RunResult
    from unveil.records.run import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One of the playbooks: that of a plan, on a root."""

    plan: Plan
    host_root: str


def play_several(
    parts: Mapping[str, Part], folder: Path, modules: Path, *, check: bool, strict: bool, stop: threading.Event
) -> tuple[RunResult | None, dict[str, HostAnswer]]:
    """Play the parts, each for the host that it stands under, and return how it ended and what became of each.

    Args:
        parts: a host's name (letters, digits, underscores) → what is played for it.
        folder: new and private.
        modules: our Ansible modules.
        stop: ends it.

    Raises:
        RefusedError: one of the playbooks may be written by others.
    """
    (folder / PLAYED).mkdir(mode=0o700, parents=True)
    plays, where = [], modules
    for name, part in parts.items():
        (folder / PLAYED / name).mkdir(mode=0o700)
        taken = take_along(Path(part.plan.playbook), modules, folder / PLAYED / name)
        where = taken.modules
        plays.append({"import_playbook": str(taken.playbook), "vars": {"unveil_target": name, **_variables(part)}})
    playbook, inventory = folder / PLAYED / "several.json", folder / PLAYED / "hosts.json"
    write_whole(playbook, plays)
    host = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    write_whole(inventory, {"all": {"hosts": dict.fromkeys(parts, host)}})
    request = Request(
        run=folder.name, mark=f"{folder.name}.{secrets.token_hex(8)}", playbook=str(playbook), modules=str(where),
        check=check, timeout_s=sum(part.plan.timeout_s for part in parts.values()), host_root="/", variables={},
        settings=(), strict=strict, inventory=str(inventory), bare=True,
    )  # fmt: skip
    play_to_the_end(folder, request, stop)
    return load_result(folder), answers_in(folder)


def _variables(part: Part) -> dict[str, Any]:
    wanted = tuple((change.address, change.after) for change in part.plan.changes if change.after is not None)
    values = given(part.plan.variables, wanted, part.host_root)
    return {name: inert(encode(value)) for name, value in values.items()}
