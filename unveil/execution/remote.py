"""Settings of other hosts, by Ansible over an inventory: read, written by a remediation's playbook, put back.

The module that acts there is the one that acts here, `unveil_setting`; what it says of each host comes back in events.
The child that runs ansible-playbook is the same as for a run on this host, with the same traps met; only here it is
waited for.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.errors import RefusedError
from unveil.execution import processes
from unveil.execution.played import PLAYED, refuse_open_to_others, take_along
from unveil.execution.request import (
    EVENTS,
    LOG,
    REQUEST,
    Request,
    Wanted,
    decode_event,
    load_request,
    load_result,
)
from unveil.execution.snapshot import write_durably
from unveil.execution.supervisor import scrubbed_environment
from unveil.records.codec import encode

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable, Iterator, Mapping

    from unveil.execution.request import RunEvent
    from unveil.records.fact import FactValue

_ASK = """\
- hosts: "{{ unveil_target }}"
  gather_facts: false
  tasks:
    - name: Look at the settings
      unveil_setting:
        settings: "{{ unveil_wanted[inventory_hostname] | default(unveil_wanted['*']) }}"
        root: "{{ unveil_host_root }}"
"""
_PASSED_ON = ("LD_LIBRARY_PATH", "SSH_AUTH_SOCK", "UNVEIL_NVML_LIBRARY")
_LOOK_S = 0.1


@dataclass(slots=True)
class HostAnswer:
    """What became of one host.

    Attributes:
        contents: address → what it reads, of the settings that were asked for.
        failure: why a task failed there, or why it could not be reached.
    """

    contents: dict[str, str | None] = field(default_factory=dict)
    failure: str = ""
    changed: int = 0


class Remote:
    """Hosts of an inventory.

    Args:
        folder: private; each question gets a folder of its own in it.
        inventory: path of an inventory, or hosts that end with a comma.
        modules: the folder with our Ansible modules.
    """

    def __init__(self, folder: Path, inventory: str, modules: Path) -> None:
        self._folder = folder
        self._inventory = inventory
        self._modules = modules

    def ask(
        self, pattern: str, wanted: Mapping[str, Iterable[Wanted]], *, write: bool = False
    ) -> dict[str, HostAnswer]:
        """Read, or with *write* write, settings of hosts; ``*`` in *wanted* stands for every host that is not named.

        Raises:
            RefusedError: no host answers to the pattern, Ansible cannot use the inventory, or others may write it.
        """
        folder = self._new()
        (folder / PLAYED).mkdir(mode=0o700)
        for module in sorted(self._modules.glob("*.py")):
            refuse_open_to_others(module)
            (folder / PLAYED / "modules").mkdir(exist_ok=True, mode=0o700)
            shutil.copy(module, folder / PLAYED / "modules" / module.name)
        playbook = folder / PLAYED / "ask.yml"
        playbook.write_text(_ASK, encoding="utf-8")
        asked = {host: tuple(each) for host, each in wanted.items()}
        return self._play(
            folder, pattern, playbook, folder / PLAYED / "modules", check=not write, variables={}, wanted=asked,
            settings=(), timeout_s=120.0,
        )  # fmt: skip

    def play(
        self,
        pattern: str,
        playbook: Path,
        *,
        variables: Mapping[str, FactValue],
        settings: tuple[tuple[str, str], ...],
        timeout_s: float,
        check: bool = False,
    ) -> dict[str, HostAnswer]:
        """Run a playbook on hosts.

        Raises:
            RefusedError: it may be written by others, or no host answers to the pattern.
        """
        folder = self._new()
        played = take_along(playbook, self._modules, folder)
        return self._play(
            folder, pattern, played.playbook, played.modules, check=check, variables=variables, wanted=None,
            settings=settings, timeout_s=timeout_s,
        )  # fmt: skip

    def end_left_behind(self) -> int:
        """End the processes of an earlier controller that was killed; return how many cannot be ended."""
        left = 0
        for request in self._folder.glob(f"*/{REQUEST}"):
            mark = load_request(request.parent).mark
            left += processes.end(lambda mark=mark: processes.marked(mark), within_s=5.0)  # type: ignore[misc]  # bound at once
            shutil.rmtree(request.parent, ignore_errors=True)
        return left

    def _new(self) -> Path:
        folder = self._folder / f"ask-{secrets.token_hex(6)}"
        folder.mkdir(mode=0o700, parents=True)
        return folder

    def _play(
        self,
        folder: Path,
        pattern: str,
        playbook: Path,
        modules: Path,
        *,
        check: bool,
        variables: Mapping[str, FactValue],
        wanted: Mapping[str, tuple[Wanted, ...]] | None,
        settings: tuple[tuple[str, str], ...],
        timeout_s: float,
    ) -> dict[str, HostAnswer]:
        for path in _inventory_files(self._inventory):
            refuse_open_to_others(path)
        mark = f"{folder.name}.{secrets.token_hex(8)}"
        request = Request(
            run=folder.name, mark=mark, playbook=str(playbook), modules=str(modules), check=check,
            timeout_s=timeout_s, host_root="/", variables=variables, settings=settings,
            inventory=self._inventory, hosts=pattern, wanted=wanted,
        )  # fmt: skip
        play_to_the_end(folder, request)
        answers = answers_in(folder)
        result = load_result(folder)
        if not answers:
            said = result.message if result is not None else "its child ended without an answer"
            raise RefusedError(f"no host answered to {pattern!a}: {said}", hint="look at the inventory and the pattern")
        shutil.rmtree(folder, ignore_errors=True)
        return answers


def play_to_the_end(folder: Path, request: Request, stop: threading.Event | None = None) -> None:
    """Carry out a request in its folder, and wait until it is over.

    Args:
        stop: whoever sets it ends the playbook with all its processes.
    """
    write_durably(folder / REQUEST, encode(request))
    with os.fdopen(os.open(folder / LOG, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as log:
        child = subprocess.Popen(
            [sys.executable, "-I", "-m", "unveil.execution.child", str(folder)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder, start_new_session=True, umask=0o077,
            env=scrubbed_environment(request.mark, folder, _PASSED_ON),
        )  # fmt: skip
    try:
        while stop is not None and child.poll() is None:
            if stop.wait(_LOOK_S):
                child.send_signal(signal.SIGTERM)
                break
        child.wait()
    except BaseException:  # a person ends it: nothing may go on over there
        child.send_signal(signal.SIGTERM)
        child.wait()
        raise


def _inventory_files(inventory: str) -> Iterator[Path]:
    """Yield what Ansible takes variables and programs from beside the playbook: an inventory may name any command."""
    if inventory.endswith(","):
        return
    path = Path(inventory)
    yield path
    beside = (path,) if path.is_dir() else (path.parent / "group_vars", path.parent / "host_vars")
    for folder in beside:
        if folder.is_dir():
            yield from (folder, *sorted(folder.rglob("*")))


def answers_in(folder: Path) -> dict[str, HostAnswer]:
    """Return what each host said, from the events."""
    answers: dict[str, HostAnswer] = {}
    try:
        lines = (folder / EVENTS).read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    for line in lines:
        event = decode_event(line)
        if event.host and event.kind.startswith("runner_on_"):
            _note(answers.setdefault(event.host, HostAnswer()), event)
    return answers


def _note(answer: HostAnswer, event: RunEvent) -> None:
    answer.contents.update(event.contents or {})
    answer.changed += event.changed
    if event.failed and not answer.failure:
        what = "cannot be reached" if event.kind == "runner_on_unreachable" else event.task
        answer.failure = f"{what}: {event.message}".strip(": ")


def reading(addresses: Iterable[str]) -> tuple[Wanted, ...]:
    """Return what reads addresses."""
    return tuple(Wanted(address=address) for address in addresses)


def putting_back(saved: Mapping[str, str], written: Mapping[str, str]) -> tuple[Wanted, ...]:
    """Return what puts saved values back, each only while it reads what we wrote."""
    asked = [
        Wanted(address=address, value=before, expect=written[address])
        for address, before in saved.items()
        if address in written
    ]
    # Of a coupled pair the kernel takes no 0: the one with a value first, and the other has followed.
    return tuple(sorted(asked, key=lambda each: each.value in ("0", "")))
