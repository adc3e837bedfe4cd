"""AnsibleAtHand: ansible-runner with an ansible-playbook that loads its libraries first and is told later what to play.

Most of the way from a match to the first task is the import of Ansible. It needs nothing of the run but where its
private directory is, so it can be done before there is a run; and when there is one already, nothing is lost. The only
door to ansible-runner.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unveil.execution.events import printable
from unveil.execution.request import extravars
from unveil.execution.snapshot import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.execution.request import Request

READY = Path(__file__).with_name("ready_ansible.py")
_TOLD, _HOSTS, _VARIABLES, _MODULES = "told", "inventory/hosts.json", "env/extravars", "modules"


class AnsibleAtHand:
    """One ansible-playbook, for one run.

    Args:
        work: Ansible's private directory; made, readable by nobody else.
        put: takes an event of ansible-runner over, without ever waiting.
        remote: it will be told of other hosts, by an inventory of someone's.
        strict: a template in a text that is not ours is an error.
    """

    def __init__(
        self, work: Path, put: Callable[[dict[str, Any]], bool], *, remote: bool = False, strict: bool = False
    ) -> None:
        shutil.rmtree(work, ignore_errors=True)
        for name in ("inventory", "env", "project", "home", "tmp"):
            (work / name).mkdir(parents=True, mode=0o700)
        (work / "ansible.cfg").touch(mode=0o600)
        os.environ.update(_environment(work, remote=remote, strict=strict))
        self.work = work
        self._put = put
        os.mkfifo(work / _TOLD, 0o600)
        # Open for reading, too, so that neither end waits for the other. The kernel closes it when this process ends.
        self._told = os.open(work / _TOLD, os.O_RDWR | os.O_CLOEXEC)
        self._ended: tuple[int | None, str, str] = (None, "", "ansible-runner did not answer")
        self._thread = threading.Thread(target=self._run, name="ansible-runner", daemon=True)
        self._thread.start()

    def play(self, request: Request) -> tuple[int | None, str, str]:
        """Carry out a request to its end: (exit status, what was said, what is wrong with how it was run)."""
        if not request.inventory:
            host = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
            write_whole(self.work / _HOSTS, {"all": {"hosts": {"localhost": host}}})
        write_whole(self.work / _VARIABLES, extravars(request))
        (self.work / _MODULES).symlink_to(request.modules)
        inventory = request.inventory or str(self.work / _HOSTS)
        check = ["--check"] if request.check else []
        arguments = [*check, "--diff", "-i", inventory, "-e", f"@{self.work / _VARIABLES}", request.playbook]
        os.write(self._told, json.dumps(arguments).encode() + b"\n")
        self._thread.join()
        return self._ended

    def _run(self) -> None:
        try:
            import ansible_runner  # here: it takes its time, and a request that cannot be read fails without it

            said, _error, rc = ansible_runner.run_command(
                sys.executable,
                ["-I", str(READY), str(self.work / _TOLD)],
                private_data_dir=str(self.work),
                host_cwd=str(self.work / "project"),
                ident="run",
                quiet=True,
                event_handler=self._put,
                cancel_callback=lambda: False,
                fact_cache_type="memory",
                settings={"pexpect_timeout": 0.2},
            )
            self._ended = (rc, said, "")
        except Exception as error:  # noqa: BLE001  # whatever ansible-runner raises, the run has a result that says so
            self._ended = (None, "", printable(f"{type(error).__name__}: {error}"))


def _environment(work: Path, *, remote: bool, strict: bool) -> dict[str, str]:
    """Return what Ansible is to know before it is loaded."""
    environment = {
        "HOME": str(work / "home"),
        "TMPDIR": str(work / "tmp"),
        "ANSIBLE_HOME": str(work / "home/.ansible"),
        "ANSIBLE_LOCAL_TEMP": str(work / "tmp"),
        "ANSIBLE_REMOTE_TEMP": str(work / "tmp"),
        "ANSIBLE_CONFIG": str(work / "ansible.cfg"),  # empty: nothing of /etc/ansible or of a user counts
        "ANSIBLE_LIBRARY": str(work / _MODULES),
        "ANSIBLE_MODULE_UTILS": str(work / _MODULES),
        "ANSIBLE_ROLES_PATH": str(work / "project"),
        "ANSIBLE_COLLECTIONS_PATH": str(work / "project"),
        "ANSIBLE_GATHERING": "explicit",
        "ANSIBLE_FORKS": "10" if remote else "1",
        "ANSIBLE_PYTHON_INTERPRETER": "auto_silent",
        "ANSIBLE_SSH_ARGS": "-C -o ControlMaster=no -o ControlPath=none",  # a kept connection would survive the run
        "ANSIBLE_PIPELINING": "1",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_RETRY_FILES_ENABLED": "0",
        "_ANSIBLE_TEMPLAR_UNTRUSTED_TEMPLATE_BEHAVIOR": "error" if strict else "ignore",
    }
    if not remote:  # our own file: five plugins less to load
        environment["ANSIBLE_INVENTORY_ENABLED"] = "yaml"
    return environment
