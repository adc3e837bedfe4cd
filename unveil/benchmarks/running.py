"""A real watcher to measure: started, waited for, asked, ended."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unveil.engine.client import Client
from unveil.errors import BadInputError, UnveilError, WatcherAbsentError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Running:
    """A watcher that runs.

    Attributes:
        pid: of its process.
    """

    def __init__(self, pid: int, client: Client) -> None:
        self.pid = pid
        self._client = client

    def status(self) -> dict[str, Any]:
        """Return what it says of itself."""
        told: dict[str, Any] = self._client.call("status")
        return told

    def quiet(self) -> None:
        """Hang up, so that nobody asks it anything while it is measured."""
        self._client.close()


@contextmanager
def running(*arguments: str, wait_s: float = 60.0) -> Iterator[Running]:
    """Run `unveil watch` on this host with a state of its own, from its first window on until this is left.

    Args:
        arguments: further ones of the command line.
        wait_s: for the first window.

    Raises:
        BadInputError: it did not start; it said why.
    """
    with tempfile.TemporaryDirectory(prefix="unveil-bench-") as folder:
        command = [sys.executable, "-m", "unveil", "watch", "--state-dir", folder, *arguments]
        watcher = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        client = Client(Path(folder) / "control.sock", timeout_s=30.0)
        try:
            until_s = time.monotonic() + wait_s
            while not _begun(client):
                if watcher.poll() is not None or time.monotonic() > until_s:
                    raise BadInputError("the watcher did not start")
                time.sleep(0.5)
            yield Running(watcher.pid, client)
        finally:
            client.close()
            watcher.terminate()
            watcher.wait(30)


def _begun(client: Client) -> bool:
    try:
        return client.call("status")["window"] is not None
    except WatcherAbsentError:
        return False


@contextmanager
def at_work(command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program until this is left."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def said(error: UnveilError, program: str) -> int:
    """Print an error in one line and return its exit code."""
    print(f"unveil.benchmarks.{program}: {error.what}", file=sys.stderr)
    return error.exit_code
