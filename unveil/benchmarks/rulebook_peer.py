"""ansible-rulebook as a peer: an event to its webhook starts a playbook; what that takes, and what a name does to it.

Needs a virtual environment with ansible-rulebook and a Java runtime; nothing of it is imported here.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
import time
import urllib.request
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_RULES = """\
- name: fixes
  hosts: all
  sources:
    - {source}:
        host: 127.0.0.1
        port: {port}
  rules:
    - name: a match
      condition: event.payload.fix is defined
      action:
        run_playbook:
          name: {playbook}
          extra_vars: {variables}
"""
PATIENCE_S = 60.0


class Peer:
    """A running ansible-rulebook.

    Args:
        python: of its environment.
        folder: to work in; made.
        playbook: what it starts, with the modules of a folder, over a scratch host.
        variables: the playbook's variables, as its rule passes them on (YAML in one line).
    """

    def __init__(
        self, python: Path, folder: Path, playbook: Path, modules: Path, root: Path, *, variables: str = ""
    ) -> None:
        folder.mkdir(mode=0o700)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        wanted = [{"address": f"sysctl:vm.made_up_{number}", "value": "2"} for number in range(10)]
        given = variables or json.dumps({"unveil_settings": wanted, "unveil_host_root": str(root)})
        (folder / "apply.yml").write_text(playbook.read_text())
        (folder / "rules.yml").write_text(
            _RULES.format(source="eda.builtin.webhook", port=self._port, playbook="apply.yml", variables=given)
        )
        host = {"ansible_connection": "local", "ansible_python_interpreter": str(python)}
        (folder / "hosts.yml").write_text(json.dumps({"all": {"hosts": {"localhost": host}}}))
        self._lines: list[tuple[float, str]] = []
        self._process = subprocess.Popen(
            [str(python.parent / "ansible-rulebook"), "--rulebook", "rules.yml", "-i", "hosts.yml"],
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
            env={**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}", "ANSIBLE_LIBRARY": str(modules),
                 "ANSIBLE_MODULE_UTILS": str(modules), "ANSIBLE_NOCOLOR": "1"},
        )  # fmt: skip
        threading.Thread(target=self._listen, daemon=True).start()
        self._wait(self._answers, "it did not come up")

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.append((time.perf_counter(), line))

    def _answers(self) -> bool:
        if self._process.poll() is not None:
            raise SystemExit(f"ansible-rulebook ended: {self.said()}")
        with socket.socket() as knock:
            return knock.connect_ex(("127.0.0.1", self._port)) == 0

    def _wait(self, holds: Callable[[], bool], wrong: str) -> float:
        end = time.perf_counter() + PATIENCE_S
        while not holds():
            if time.perf_counter() > end:
                raise SystemExit(f"ansible-rulebook: {wrong}: {self.said()}")
            time.sleep(0.002)
        return time.perf_counter()

    def heard(self) -> int:
        """Return how many lines it has printed."""
        return len(self._lines)

    def said(self, since: int = 0) -> str:
        """Return the end of what it printed, from a line on."""
        return "".join(line for _, line in self._lines[since:][-8:])[-800:]

    def post(self, **payload: Any) -> None:
        """Send one event."""
        request = urllib.request.Request(  # our own loopback address
            f"http://127.0.0.1:{self._port}/endpoint", json.dumps({"fix": 1, **payload}).encode(),
            {"Content-Type": "application/json"},
        )  # fmt: skip
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310
            answer.read()

    def fixed(self, changed: Callable[[], bool]) -> tuple[float, float]:
        """Return seconds from an event to the first task's line, and to the last setting written."""
        seen = len(self._lines)
        began = time.perf_counter()
        self.post()
        done = self._wait(changed, "it changed nothing") - began
        self._wait(lambda: any("PLAY RECAP" in line for _, line in self._lines[seen:]), "it did not end")
        first = next(at for at, line in self._lines[seen:] if line.startswith("TASK"))
        time.sleep(0.5)  # its own tidying up is not held against the next run
        return first - began, done

    def close(self) -> None:
        """End it with all that it started."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
