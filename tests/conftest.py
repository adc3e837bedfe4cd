"""Fixtures of more than one room: the stand-in for NVIDIA's NVML library, and knowledge bases of a few fingerprints."""

from __future__ import annotations

import fcntl
import gc
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

ROOT = Path(__file__).parents[1]
_SOURCE = Path(__file__).parent / "nvml" / "libnvml_standin.c"
_SHOWN = "reduced_huge_page_coverage"  # by the demo's recording
_FEW = (
    _SHOWN,
    "cgroup_cpu_quota_throttling",
    "dirty_writeback_stall",
    "gpu_power_limit_below_default",
    "power_limit_on_several_gpus",  # a correlation
)

ASKS = """
import os, socket, struct, sys, time
os.sched_setaffinity(0, {0})
try:  # tests run beside others, and each echo waits for this program
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
except PermissionError:
    os.nice(-15)
link = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
link.settimeout(1)
packet = struct.pack("!BBHHH", 8, 0, 0xFFFF - 0x0800 - 8, 7, 1)  # an echo's checksum, in one's complement
answered = 0
while True:
    link.sendto(packet, (sys.argv[1], 0))
    try:
        link.recv(2048)
        answered += 1
    except TimeoutError:
        pass
    if answered == 100:
        print("answered", flush=True)
    time.sleep(0.0002)
"""

# How long an example takes says how busy the machine is; a test without end is ended by pytest.
settings.register_profile("any speed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any speed")

# A shell without job control starts what it puts in the background deaf to Ctrl-C; so would be all that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


class NvmlState:
    """The state file of the stand-in: what the next call of any process answers. Keys: see libnvml_standin.c."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_text("gpus=1\n")

    def set(self, **values: object) -> None:
        """Set keys of the host: ``set(gpus=2, order="1,0")``."""
        self.update(values)

    def set_gpu(self, number: int | None = None, **values: object) -> None:
        """Set keys of one GPU (by its number, not its index), or of all: ``set_gpu(0, util=97)``."""
        prefix = "gpu" if number is None else f"gpu{number}"
        self.update({f"{prefix}.{key}": value for key, value in values.items()})

    def update(self, values: dict[str, object]) -> None:
        """Set keys by their full names; None removes one."""
        with self.path.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # the library rewrites the file, too
            lines = dict(line.split("=", 1) for line in file.read().splitlines() if "=" in line)
            for key, value in values.items():
                lines.pop(key, None)
                if value is not None:
                    lines[key] = f"{value}"
            file.seek(0)
            file.truncate()
            file.write("".join(f"{key}={value}\n" for key, value in lines.items()))

    def get(self, key: str) -> str | None:
        """Return the text of a key, None when it is not set."""
        with self.path.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            return dict(line.split("=", 1) for line in file.read().splitlines() if "=" in line).get(key)


@dataclass(frozen=True)
class Nvml:
    """The stand-in: its library, its state, and the environment in which a process finds both."""

    library: Path
    state: NvmlState
    env: dict[str, str]

    @staticmethod
    def uuid(number: int = 0) -> str:
        """Return the UUID that a GPU has unless the state says otherwise."""
        return f"GPU-5eed0000-0000-4000-8000-{number:012d}"


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the stand-in; skip where there is no C compiler."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("gcc is not installed: the stand-in for the NVML library cannot be built")
    library = tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1"
    flags = "-std=gnu11 -O1 -Wall -Wextra -Werror -shared -fPIC -fvisibility=hidden -Wl,-soname,libnvidia-ml.so.1"
    subprocess.run([compiler, *flags.split(), "-o", str(library), str(_SOURCE), "-lm"], check=True)
    return library


@pytest.fixture
def nvml(nvml_library: Path, tmp_path: Path) -> Nvml:
    """Give one host with one idle GPU; processes started with ``.env`` see it."""
    library = Path(shutil.copy(nvml_library, tmp_path))  # of its own: the state lies beside it
    state = NvmlState(library.with_name(f"{library.name}.state"))
    return Nvml(library=library, state=state, env=dict(os.environ, UNVEIL_NVML_LIBRARY=str(library)))


@pytest.fixture(scope="session")
def build_kb() -> Callable[..., Path]:
    """Give what builds a knowledge base of some shipped fingerprints in a folder that is not there yet.

    All of them take a second to load, and several to test: what does not ask for all of them takes a few.
    """
    return _build


@pytest.fixture(scope="session")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give one of four fingerprints and a correlation, with their fixes, to be read only."""
    return _build(tmp_path_factory.mktemp("few") / "kb", _FEW)


def _build(kb: Path, names: tuple[str, ...] = (_SHOWN,)) -> Path:
    """Write it; a fix is for these fingerprints only, whatever else it is for."""
    for folder in ("schemas", "inventory", "playbooks/modules"):
        shutil.copytree(ROOT / folder, kb / folder)
    for file in (file for name in names for file in (ROOT / "fingerprints").glob(f"*/{name}.*")):
        (kb / file.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, kb / file.relative_to(ROOT))
    for fix in sorted((ROOT / "playbooks").glob("*/remediation.yml")):
        line = re.search(r"(?m)^remediates: \[(.*)\]$", fix.read_text())
        assert line, fix
        if seen := [name for name in line[1].split(", ") if name in names]:
            shutil.copytree(fix.parent, kb / "playbooks" / fix.parent.name)
            text = fix.read_text().replace(line[0], f"remediates: [{', '.join(seen)}]")
            (kb / "playbooks" / fix.parent.name / fix.name).write_text(text)
    return kb


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Set what is collected aside: hundreds of thousands of objects that live to the end, not to be looked at again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests that change this kernel's settings on one worker, one after the other."""
    for item in items:
        if item.get_closest_marker("root") is not None:
            item.add_marker(pytest.mark.xdist_group("kernel"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let them wait for those of another worker, and of another run: there is one kernel."""
    if item.get_closest_marker("root") is None:
        return (yield)
    with (Path(tempfile.gettempdir()) / f"unveil-tests-{os.geteuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return (yield)


def _gateway() -> tuple[str, str]:
    """Return the NIC that leads out of this machine, and whom it leads to."""
    for line in Path("/proc/net/route").read_text().splitlines()[1:]:
        nic, target, gateway = line.split()[:3]
        if target == "00000000":
            return nic, ".".join(str(byte) for byte in reversed(bytes.fromhex(gateway)))
    pytest.skip("this machine has no way out")


@pytest.fixture
def packets() -> Generator[str]:
    """Have the gateway answer echoes; gives the NIC that they come through."""
    nic, gateway = _gateway()
    with subprocess.Popen([sys.executable, "-c", ASKS, gateway], stdout=subprocess.PIPE) as asking:
        assert asking.stdout
        if not select.select([asking.stdout], [], [], 10)[0] or not asking.stdout.readline():
            asking.kill()
            pytest.skip("nobody at the other end of this machine's NIC answers echoes")
        yield nic
        asking.kill()
