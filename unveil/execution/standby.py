"""Standby: a run's child that has Ansible loaded before there is a run.

Starting Python and importing Ansible is two thirds of the way from a match to the first task. A match is seen seconds
before it fires, and a person looks at a plan before applying it; so the child is started then and told later, on its
standard input, which run is its. It serves that one run and is as any other run's child is. One that nobody needs ends
by itself after two minutes, and at once when the watcher does.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.execution.request import LOG

if TYPE_CHECKING:
    from collections.abc import Callable

FLAG = "--standby"
WAIT_S = 120.0  # it stands by no longer: a match that took so long did not fire
_MARGIN_S = 5.0  # so long before, it is given no run any more: it might be leaving already


class Standby:
    """At most one child that stands by.

    Args:
        folder: where it stands; only its owner may write there.
        environment: mark → the environment of a child.
    """

    def __init__(self, folder: Path, environment: Callable[[str], dict[str, str]]) -> None:
        self._folder = folder
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self._mark = ""
        self._until_s = 0.0

    def make_ready(self) -> None:
        """Start one, unless one stands by already, or is about to leave. Never waits for it."""
        if self.mark or self._process is not None:
            return
        self._until_s = time.monotonic() + WAIT_S - _MARGIN_S
        self._mark = f"standby.{os.urandom(12).hex()}"
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-m", "unveil.execution.child", FLAG, str(self.work)],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self._folder,
            env=self._environment(self._mark), start_new_session=True, umask=0o077,
        )  # fmt: skip

    @property
    def mark(self) -> str:
        """Return the mark of the one that stands by, empty when there is none."""
        if self._process is not None and self._process.poll() is not None:
            self.dismiss()
        return self._mark if self._process is not None and time.monotonic() < self._until_s else ""

    @property
    def work(self) -> Path:
        """Return Ansible's private directory of the one that stands by."""
        return self._folder / self._mark

    def hand_over(self, directory: Path) -> subprocess.Popen[bytes] | None:
        """Tell the child which run is its, and return it; None when it has just ended."""
        process, self._process = self._process, None
        if process is None or process.stdin is None:
            return None
        try:
            with process.stdin as told:
                told.write(os.fsencode(directory) + b"\n")
        except OSError:
            process.wait()
            return None
        return process

    def dismiss(self) -> None:
        """Let the one that stands by go."""
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.stdin.close()  # which it takes for the end
            process.wait()


def await_run() -> Path | None:
    """Wait, in the child, for the directory of its run, and take its place there; None when it is not needed."""
    if not select.select([0], [], [], WAIT_S)[0]:
        return None
    directory = os.fsdecode(os.read(0, 4096).partition(b"\n")[0])
    if not directory:
        return None  # the watcher has ended
    os.chdir(directory)
    nothing, log = os.open(os.devnull, os.O_RDONLY), os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    return Path(directory)
