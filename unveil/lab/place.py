"""Place: where a workload runs: a container a side, in a network namespace of its own, and a bridge that joins them.

The host sees what a container host sees of its tenants: their cgroups, named as an engine names them, the outer ends
of their links, and their namespaces. Neighbours have a container, too.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.errors import UnreadableError
from unveil.lab.changes import Changes, ImpossibleError, alone, command, restore

if TYPE_CHECKING:
    from collections.abc import Iterator

CGROUP = "unveil-lab"
SIDES = ("a", "b")
NEIGHBOUR = "neighbour"
CONTROLLERS = ("cpu", "cpuacct", "memory", "blkio")
CGROUP_ROOT = Path("/sys/fs/cgroup")
NAMESPACES, LINKS = Path("/var/run/netns"), Path("/sys/class/net")
BRIDGE = "uvlab"
# `ip netns exec` mounts another /sys, so the cgroups are entered before it. Whoever is in a place dies with the lab:
# 1 is PR_SET_PDEATHSIG, which outlives an exec.
ENTER = (
    "import ctypes, os, sys\nctypes.CDLL(None).prctl(1, 9)\n"
    "for path in sys.argv[1].split(','): open(path, 'w').write('0')\n"
    "os.execvp(sys.argv[2], sys.argv[2:])"
)


def container(who: str) -> str:
    """Return the name of a container's cgroup: 64 hexadecimal digits, as engines have it."""
    return hashlib.sha256(f"unveil-lab {who}".encode()).hexdigest()


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
        folders: controller (``""`` for a v2 tree) → the cgroup that holds all containers of the lab.
        scratch: folder on a real disk for data sets, checkpoints and logs.
        changes: what is set on this host, and put back.
    """

    folders: dict[str, Path]
    scratch: Path
    changes: Changes = field(default_factory=Changes)

    def folder(self, controller: str, who: str) -> Path | None:
        """Return a container's cgroup in the hierarchy of a controller; None where the kernel has none."""
        whole = self.folders.get(controller, self.folders.get(""))
        return None if whole is None else whole / container(who)

    def start(self, module: str, arguments: list[str], *, side: str, log: Path) -> subprocess.Popen[bytes]:
        """Start a program of the lab in the container of a side; it is killed with this thread."""
        inside = ["ip", "netns", "exec", namespace(side), sys.executable, "-m", module, *arguments]
        with log.open("ab") as output, log.with_suffix(".errors").open("ab") as errors:
            return self._start(inside, side, output=output.fileno(), errors=errors.fileno())

    def start_neighbour(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start Python with some arguments in the neighbour's container; it is killed with this thread."""
        return self._start(
            [sys.executable, *arguments], NEIGHBOUR, output=subprocess.DEVNULL, errors=subprocess.DEVNULL
        )

    def _start(self, words: list[str], who: str, *, output: int, errors: int) -> subprocess.Popen[bytes]:
        places = ",".join(str(folder / container(who) / "cgroup.procs") for folder in self.folders.values())
        entered = [sys.executable, "-c", ENTER, places, *words]
        return subprocess.Popen(
            entered, stdout=output, stderr=errors, cwd=self.scratch, env=_environment(),
            start_new_session=True,  # Ctrl-C is for the lab, which ends them when it has noticed
        )  # fmt: skip


def _environment() -> dict[str, str]:
    """Return the environment of a program of the lab: one thread, and this very package wherever it runs."""
    alone = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {**os.environ, **alone, "PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONUNBUFFERED": "1"}


@contextmanager
def place(scratch: Path) -> Iterator[Place]:
    """Build a place and take it away again, with everything that still runs in it and all that was changed.

    Raises:
        UnreadableError: the kernel or this user may not; says what is missing.
        ConflictError: another lab is running.
    """
    if os.geteuid() != 0:
        raise UnreadableError("the lab changes kernel settings and needs root", hint="run it with sudo")
    if shutil.which("ip") is None:
        raise UnreadableError("the lab needs `ip`", hint="install iproute2")
    with ExitStack() as stack:
        lock = stack.enter_context(alone())
        restore(take_away=tear_down)  # what an earlier one left that was killed
        if left := tear_down():
            raise UnreadableError(f"an earlier lab's place is still there: {'; '.join(left)}")
        scratch.mkdir(parents=True, exist_ok=True)
        changes = Changes()
        stack.enter_context(_guardian(lock))
        stack.enter_context(changes.scope())
        changes.hold("containers and links", tear_down)  # so that a lab that is killed leaves word of them
        folders = _cgroups()
        _network()
        yield Place(folders=folders, scratch=scratch, changes=changes)


@contextmanager
def _guardian(lock: int) -> Iterator[None]:
    """Have a process at hand that restores everything when this one is killed; until then no other lab may begin."""
    words = [sys.executable, "-m", "unveil.lab", "--restore", "--when-gone", str(os.getpid())]
    guardian = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True, pass_fds=(lock,),
        env=_environment(),
    )  # fmt: skip
    try:
        yield
    finally:
        if guardian.stdin is not None:
            guardian.stdin.close()
        guardian.wait()


def tear_down() -> list[str]:
    """Take every container and link of the lab away, with all that runs in them; nothing where there is none.

    Returns:
        What is still there.
    """
    left: list[str] = []
    for tree in (CGROUP_ROOT, *(CGROUP_ROOT / name for name in CONTROLLERS)):
        for who in (*SIDES, NEIGHBOUR):
            left += _empty(tree / CGROUP / container(who))
        left += _empty(tree / CGROUP)
    links = {LINKS / name: ("link", "del", name) for name in (*map(outer, SIDES), BRIDGE)}
    namespaces = {NAMESPACES / namespace(side): ("netns", "del", namespace(side)) for side in SIDES}
    for path, words in (links | namespaces).items():
        if os.path.lexists(path):
            with suppress(ImpossibleError):
                command("ip", *words)
            left += [f"{path} is still there"] if os.path.lexists(path) else []
    return left


def _cgroups() -> dict[str, Path]:
    v1 = {name: CGROUP_ROOT / name / CGROUP for name in CONTROLLERS if (CGROUP_ROOT / name / "cgroup.procs").exists()}
    folders = v1 or {"": CGROUP_ROOT / CGROUP}
    for folder in set(folders.values()):
        folder.mkdir(exist_ok=True)
        for name in ("+cpu", "+memory", "+io") if not v1 else ():
            _allow(folder / "cgroup.subtree_control", name)
        for who in (*SIDES, NEIGHBOUR):
            (folder / container(who)).mkdir(exist_ok=True)
    return folders


def _allow(path: Path, controller: str) -> None:
    """Hand a controller down to the containers; where the kernel will not, the faults that need it say so."""
    try:
        path.write_text(controller)
    except OSError:
        return


def _empty(folder: Path, tries: int = 100) -> list[str]:
    """Kill what runs in a cgroup and remove it; return that it is still there, if it is."""
    for _ in range(tries):
        try:
            for number in (folder / "cgroup.procs").read_text().split():
                if number != "0":  # of another PID namespace; to kill 0 is to kill our own group
                    with suppress(ProcessLookupError):
                        os.kill(int(number), signal.SIGKILL)
            folder.rmdir()
        except FileNotFoundError:
            return []
        except OSError:
            time.sleep(0.05)
        else:
            return []
    return [f"{folder} cannot be emptied"]


def _network() -> None:
    _ip("link", "add", BRIDGE, "type", "bridge")
    _ip("link", "set", BRIDGE, "up")
    for side in SIDES:
        _ip("netns", "add", namespace(side))
        _ip("link", "add", outer(side), "type", "veth", "peer", "name", "eth0", "netns", namespace(side))
        _ip("link", "set", outer(side), "master", BRIDGE, "up")
        _ip("-n", namespace(side), "addr", "add", f"{address(side)}/24", "dev", "eth0")
        for device in ("eth0", "lo"):
            _ip("-n", namespace(side), "link", "set", device, "up")


def _ip(*words: str) -> None:
    ended = subprocess.run(["ip", *words], check=False, capture_output=True, text=True)
    if ended.returncode:
        raise UnreadableError(f"ip {' '.join(words)}: {ended.stderr.strip()}", hint="is an earlier lab still running?")
