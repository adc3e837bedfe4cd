"""Place: where a workload runs: a cgroup of its own, and two network namespaces that a bridge of the host joins.

The host sees what a hypervisor or a container host sees of a tenant: the cgroup, and the outer ends of its two links.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.errors import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterator

CGROUP = "unveil-lab"
SIDES = ("a", "b")
CONTROLLERS = ("cpu", "cpuacct", "memory", "blkio")


def namespace(side: str) -> str:
    """Return the name of a network namespace."""
    return f"unveil-lab-{side}"


def outer(side: str) -> str:
    """Return the name of the host's end of a link."""
    return f"uvlab{side}"


def address(side: str) -> str:
    """Return the IPv4 address of a namespace."""
    return f"10.213.47.{SIDES.index(side) + 1}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place that stands.

    Attributes:
        folders: controller (``""`` for a v2 tree) → the workload's cgroup.
        scratch: folder on a real disk for data sets, checkpoints and logs.
    """

    folders: dict[str, Path]
    scratch: Path

    def folder(self, controller: str) -> Path | None:
        """Return the cgroup's folder in the hierarchy of a controller; None where the kernel has none."""
        return self.folders.get(controller, self.folders.get(""))

    def start(self, module: str, arguments: list[str], *, side: str, log: Path) -> subprocess.Popen[bytes]:
        """Start a program of the lab in the cgroup and in a namespace; it is killed with this process."""
        # `ip netns exec` mounts another /sys, so the cgroups are entered before it.
        enter = (
            "import os, sys\nfor path in sys.argv[1].split(','): open(path, 'w').write('0')\n"
            "os.execvp(sys.argv[2], sys.argv[2:])"
        )
        places = ",".join(str(folder / "cgroup.procs") for folder in self.folders.values())
        inside = ["ip", "netns", "exec", namespace(side), sys.executable, "-m", module, *arguments]
        command = [sys.executable, "-c", enter, places, *inside]
        with log.open("ab") as output:
            return subprocess.Popen(
                command, stdout=output, stderr=subprocess.DEVNULL, cwd=self.scratch,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )  # fmt: skip


@contextmanager
def place(scratch: Path) -> Iterator[Place]:
    """Build a place and take it away again, with everything that still runs in it.

    Raises:
        UnreadableError: the kernel or this user may not; says what is missing.
    """
    if os.geteuid() != 0:
        raise UnreadableError("the lab changes kernel settings and needs root", hint="run it with sudo")
    if shutil.which("ip") is None:
        raise UnreadableError("the lab needs `ip`", hint="install iproute2")
    scratch.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        folders = stack.enter_context(_cgroup())
        stack.enter_context(_network())
        yield Place(folders=folders, scratch=scratch)


@contextmanager
def _cgroup() -> Iterator[dict[str, Path]]:
    root = Path("/sys/fs/cgroup")
    v1 = {name: root / name / CGROUP for name in CONTROLLERS if (root / name / "cgroup.procs").exists()}
    folders = v1 or {"": root / CGROUP}
    try:
        for folder in set(folders.values()):
            folder.mkdir(exist_ok=True)
        yield folders
    finally:
        for folder in set(folders.values()):
            _empty(folder)


def _empty(folder: Path) -> None:
    """Kill what runs in a cgroup and remove it."""
    for _ in range(100):
        for number in (folder / "cgroup.procs").read_text().split() if folder.exists() else ():
            try:
                os.kill(int(number), signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.05)
        else:
            return


@contextmanager
def _network() -> Iterator[None]:
    bridge = "uvlab"
    try:
        _ip("link", "add", bridge, "type", "bridge")
        _ip("link", "set", bridge, "up")
        for side in SIDES:
            _ip("netns", "add", namespace(side))
            _ip("link", "add", outer(side), "type", "veth", "peer", "name", "eth0", "netns", namespace(side))
            _ip("link", "set", outer(side), "master", bridge, "up")
            _ip("-n", namespace(side), "addr", "add", f"{address(side)}/24", "dev", "eth0")
            for device in ("eth0", "lo"):
                _ip("-n", namespace(side), "link", "set", device, "up")
        yield
    finally:
        for side in SIDES:
            subprocess.run(["ip", "netns", "del", namespace(side)], check=False, capture_output=True)
            subprocess.run(["ip", "link", "del", outer(side)], check=False, capture_output=True)
        subprocess.run(["ip", "link", "del", bridge], check=False, capture_output=True)


def _ip(*words: str) -> None:
    ended = subprocess.run(["ip", *words], check=False, capture_output=True, text=True)
    if ended.returncode:
        raise UnreadableError(f"ip {' '.join(words)}: {ended.stderr.strip()}", hint="is an earlier lab still running?")
