"""A guest that waits for the host's CPUs, seen by `unveil record` on the host; nobody looks into the guest.

Its two virtual CPUs are busy, it has a tap, and it lies in a cgroup as libvirt makes one. After a while something on
the host takes the CPUs from it. Weights decide who waits, so that other work on this machine decides little.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import pytest

from unveil.engine.replaying import RecordedWatch
from unveil.records.entity import Entity, EntityKind
from unveil.records.match import EpisodeState

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("UNVEIL_GUEST_CACHE") or Path.home() / ".cache/unveil-guest")
QEMU = "qemu-system-x86_64"
NAMED = "guest_waits_for_cpus"
NAME = f"uv{os.getpid() % 100_000}"
MACHINE = "-M q35 -accel tcg,thread=multi -cpu Nehalem -smp 2 -m 192 -display none -monitor none -nodefaults"
CALM_S, HELD_UP_S = 30, 40
BUSY_INIT = """#!/bin/busybox sh
b=/bin/busybox
$b mount -t devtmpfs dev /dev; $b mount -t proc proc /proc; $b mount -t sysfs sys /sys
while read m; do $b insmod /modules/$m; done < /modules/order
$b ip addr add 169.254.77.2/24 dev eth0; $b ip link set eth0 up
$b ping 169.254.77.1 > /dev/null &
(while :; do :; done) &
echo both busy > /dev/ttyS0
while :; do :; done
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.longest,
    pytest.mark.root,
    pytest.mark.timeout(400),
    pytest.mark.xdist_group("guest"),
    pytest.mark.skipif(os.geteuid() != 0, reason="makes cgroups and a tap: needs root"),
    pytest.mark.skipif(os.uname().machine != "x86_64", reason="the guest is x86_64"),
    *(
        pytest.mark.skipif(shutil.which(name) is None, reason=f"no {name}")
        for name in (QEMU, "ip", "apt-get", "dpkg-deb")
    ),
    pytest.mark.skipif(not Path("/dev/net/tun").exists(), reason="this kernel has no taps"),
]


class Cgroup(NamedTuple):
    """A cgroup in every hierarchy that counts."""

    key: str
    folders: list[Path]

    def enter(self, pid: int) -> None:
        for folder in self.folders:
            (folder / "cgroup.procs").write_text(str(pid))


@contextlib.contextmanager
def cgroup(name: str, *, of_all: float) -> Iterator[Cgroup]:
    """Make a cgroup with a part of the greatest weight there is; remove it when all in it have ended."""
    base = Path("/sys/fs/cgroup")
    v1 = [base / each for each in ("memory", "cpu", "cpuacct") if (base / each / "cgroup.procs").exists()]
    folders = [hierarchy / name for hierarchy in dict.fromkeys(path.resolve() for path in v1 or [base])]
    try:
        for folder in folders:
            folder.mkdir(parents=True)
            for file, most in (("cpu.shares", 262_144), ("cpu.weight", 10_000)):
                if (folder / file).exists():
                    (folder / file).write_text(str(int(most * of_all)))
    except OSError as error:
        pytest.skip(f"this kernel lets nobody make a cgroup: {error}")
    try:
        yield Cgroup(f"/{name}", folders)
    finally:
        for folder in folders:
            end = time.monotonic() + 10
            while folder.exists() and time.monotonic() < end:
                with contextlib.suppress(OSError):
                    folder.rmdir()
                time.sleep(0.05)


@contextlib.contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def guest(folder: Path, home: Cgroup) -> Iterator[None]:
    """Boot the guest in its cgroup, and wait until both of its virtual CPUs are busy."""
    sys.path.insert(0, str(HERE))
    try:
        import guest_image
    finally:
        sys.path.remove(str(HERE))
    try:
        kernel, busybox = guest_image.parts(CACHE)
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"no kernel for the guest: {error}")
    guest_image.initramfs(kernel, busybox, folder / "initrd", BUSY_INIT)
    console = folder / "console.log"
    command = [
        "setpriv", "--pdeathsig", "KILL", QEMU, "-name", f"guest={NAME},debug-threads=on",
        *MACHINE.split(),
        "-kernel", str(next(kernel.glob("boot/vmlinuz-*"))), "-initrd", str(folder / "initrd"),
        "-append", "console=ttyS0 quiet mitigations=off panic=-1 tsc=reliable no_timer_check",
        "-netdev", f"tap,id=net,ifname={NAME},script=no,downscript=no", "-device", "virtio-net-pci,netdev=net",
        "-serial", f"file:{console}", "-no-reboot",
    ]  # fmt: skip
    with (folder / "qemu.log").open("wb") as log, ended(subprocess.Popen(command, stderr=log)) as process:
        home.enter(process.pid)
        end = time.monotonic() + 120
        while "both busy" not in (console.read_text() if console.exists() else ""):
            assert process.poll() is None, (folder / "qemu.log").read_text()
            assert time.monotonic() < end, "the guest did not boot"
            time.sleep(0.2)
        for words in (["addr", "add", "169.254.77.1/24", "dev", NAME], ["link", "set", NAME, "up"]):
            subprocess.run(["ip", *words], check=True, capture_output=True, timeout=30)
        yield


def test_a_guest_that_waits_for_the_hosts_cpus_is_seen_from_outside(tmp_path: Path) -> None:
    recording = tmp_path / "host.parquet"
    spin = [sys.executable, "-c", "while True: pass"]
    with (
        cgroup(f"qemu-1-{NAME}.libvirt-qemu", of_all=0.1) as home,
        cgroup(f"watcher-{NAME}", of_all=0.2) as seat,
        cgroup(f"hog-{NAME}", of_all=0.2) as neighbour,
        guest(tmp_path, home),
        ended(subprocess.Popen([sys.executable, "-m", "unveil", "record", recording, "--no-gpu", "--quiet"])) as record,
    ):
        seat.enter(record.pid)
        time.sleep(CALM_S)
        begun_s = time.time()
        with contextlib.ExitStack() as hogs:
            for _ in range(2 * (os.cpu_count() or 1)):
                neighbour.enter(hogs.enter_context(ended(subprocess.Popen(spin))).pid)
            time.sleep(HELD_UP_S)
        record.send_signal(signal.SIGINT)
        assert record.wait(60) == 0
    entity = Entity(EntityKind.CGROUP, home.key)
    shares: dict[bool, list[float]] = {False: [], True: []}
    matched: list[float] = []
    fired: list[float] = []
    with closing(RecordedWatch(str(recording))) as watch:
        for outcome in watch.outcomes():
            vector, wall_s = outcome.vector, outcome.window.wall_s
            told = [(each.fingerprint, each.entity) for each in outcome.matches]
            fired += [
                wall_s - begun_s
                for each in outcome.changed
                if (each.fingerprint, each.entity, each.state) == (NAMED, entity, EpisodeState.FIRING)
            ]
            matched += [wall_s - begun_s] * told.count((NAMED, entity))
            share = vector.get("cpu.vcpu_wait_share.rate", entity)
            if share is not None and not 0 <= wall_s - begun_s < 15:  # what is read each five seconds lags behind
                shares[wall_s >= begun_s].append(share)
        facts = watch.facts
        sent = vector.get("network.cgroup_tap_sent_bytes.rate", entity)
        part = vector.get("cpu.vcpu_part.rate", entity)
    assert facts.value("cpu.cgroup_kind", entity) == "vm"
    assert facts.value("cpu.cgroup_vcpus", entity) == 2
    assert facts.value("network.cgroup_taps", entity) == (NAME,)
    calm, held_up = median(shares[False]), median(shares[True])
    print(f"waited {calm:.0%} of the time before and {held_up:.0%} beside the hog; matched {len(matched)} windows")
    assert held_up > max(0.2, 1.5 * calm)
    assert any(after_s > 0 for after_s in matched)
    assert fired, "and long enough for an episode"
    assert min(fired) > 0 or calm > 0.15, "only beside the hog, unless others were in the way"
    assert sent is not None
    assert sent > 0, "the pings of the guest are seen at its tap"
    assert part is not None
    assert part > 0.5, "most of its CPU time is that of its virtual CPUs"
