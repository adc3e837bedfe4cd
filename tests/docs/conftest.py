"""A desk to try the documents' commands at: a scratch knowledge base, and a watcher of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from unveil.engine.client import Client
from unveil.errors import UnveilError

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass
class Desk:
    """Where commands are tried."""

    folder: Path
    environment: dict[str, str]

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", command], cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False,
            stdin=subprocess.DEVNULL, timeout=110,
        )  # fmt: skip


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, few: Path) -> Desk:
    """Give a desk with a small knowledge base: nothing that a document shows may write into the checkout."""
    return _desk(tmp_path_factory, few)


@pytest.fixture(scope="module")
def workbench(tmp_path_factory: pytest.TempPathFactory, few: Path) -> Desk:
    """Give another, for commands that change the knowledge base."""
    return _desk(tmp_path_factory, few)


def _desk(tmp_path_factory: pytest.TempPathFactory, few: Path) -> Desk:
    folder = Path(shutil.copytree(few, tmp_path_factory.mktemp("desk") / "kb"))
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path_factory.mktemp("home")),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "NO_COLOR": "1",
        "UNVEIL_STATE_DIR": str(tmp_path_factory.mktemp("state") / "unveil"),
    }
    return Desk(folder, environment)


@pytest.fixture(scope="module")
def watcher(desk: Desk) -> Iterator[None]:
    """Start the watcher that the commands ask; it only observes."""
    log = desk.folder / "watch.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "unveil", "watch", "--profile", "observe", "--no-gpu"],
            env=desk.environment, cwd=desk.folder, stdout=output, stderr=output,
        )  # fmt: skip
    client = Client(Path(desk.environment["UNVEIL_STATE_DIR"]) / "control.sock")
    try:
        end = time.monotonic() + 30
        while not _has_a_window(client):
            assert time.monotonic() < end, log.read_text()
            assert process.poll() is None, log.read_text()
            time.sleep(0.2)
        yield
    finally:
        client.close()
        process.send_signal(signal.SIGTERM)
        process.wait(20)


def _has_a_window(client: Client) -> bool:
    try:
        return bool(client.call("windows", limit=1))
    except UnveilError:
        return False
