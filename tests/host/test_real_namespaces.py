"""Network namespaces of this kernel: whose counters are read, and what reading must not do to them."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from unveil.host.cgroups import CgroupTrees
from unveil.host.namespaces import Member, NetworkNamespaces
from unveil.host.root import HostRoot
from unveil.host.sampler import Sampler
from unveil.host.sources import cgroup_network
from unveil.records.metric import Channel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

IP = shutil.which("ip") or "/usr/sbin/ip"
TICK = 100_000_000

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="makes namespaces and cgroups: takes root"),
]


def until(done: Callable[[], object], *, within_s: float = 30.0) -> None:
    end = time.monotonic() + within_s
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


def inode(pid: int) -> int:
    return Path(f"/proc/{pid}/net/snmp").stat().st_ino


def outside(pid: int) -> bool:
    """Tell whether a process has left the namespace of this one."""
    return inode(pid) != inode(os.getpid())


class Places:
    """Cgroups and processes that are gone afterwards."""

    def __init__(self) -> None:
        trees = CgroupTrees(HostRoot())
        hierarchy = trees.cpu or trees.memory or trees.unified
        if hierarchy is None:
            pytest.skip("this kernel has no cgroups")
        self.base = Path("/", hierarchy.mount, f"unveil-test-{os.getpid()}")
        self.processes: list[subprocess.Popen[bytes]] = []
        self.folders: list[Path] = []
        try:
            self.base.mkdir()
        except OSError:
            pytest.skip("no cgroup can be made here")

    def container(self, number: int, *processes: subprocess.Popen[bytes]) -> str:
        """Make a container's cgroup with these processes; return its key."""
        folder = self.base / f"docker-{number:064x}.scope"
        folder.mkdir(exist_ok=True)
        self.folders.append(folder)
        for process in processes:
            (folder / "cgroup.procs").write_text(f"{process.pid}\n")
        return f"/{self.base.name}/{folder.name}"

    def process(self, *words: str) -> subprocess.Popen[bytes]:
        """Begin a process in a namespace of its own, or what else the words say."""
        command = words or ("unshare", "-n", "sleep", "300")
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        self.processes.append(process)
        if not words:
            until(lambda: outside(process.pid))
        return process

    def end(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.communicate()

    def close(self) -> None:
        for process in self.processes:
            self.end(process)
        for folder in (*self.folders, self.base):
            with contextlib.suppress(FileNotFoundError):
                until(lambda at=folder: _removed(at))


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:  # its processes are not quite gone
        return False
    return True


@pytest.fixture
def places() -> Iterator[Places]:
    if not shutil.which("unshare") or subprocess.run(["unshare", "-n", "true"], check=False).returncode:
        pytest.skip("no network namespace can be made here")
    made = Places()
    yield made
    made.close()


def found() -> dict[str, Member]:
    trees = CgroupTrees(HostRoot())
    trees.walk(0)
    members = NetworkNamespaces(HostRoot(), trees).look()
    assert members is not None
    return {member.key: member for member in members if "unveil-test" in member.key}


def traffic(pid: int, datagrams: int) -> None:
    """Send datagrams to nobody, within a process's namespace."""
    script = f"""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("127.0.0.1", 0))
for _ in range({datagrams}): s.sendto(b"x", s.getsockname()); s.recv(9)
"""
    inside = ["nsenter", "-t", str(pid), "-n"]
    subprocess.run([*inside, IP, "link", "set", "lo", "up"], check=True)
    subprocess.run([*inside, sys.executable, "-c", script], check=True)


def test_each_container_has_its_own_counters_and_the_host_is_left_out(places: Places) -> None:
    one, other, host = places.process(), places.process(), places.process("sleep", "300")
    keys = [places.container(number, process) for number, process in enumerate((one, other, host))]
    traffic(one.pid, 40)
    counted = counters(keys)
    assert [counted[key].get("udp_in_datagrams") for key in keys] == [40, 0, None]
    assert len(counted[keys[0]]) == len(cgroup_network.METRICS)


def test_a_namespace_that_two_containers_share_is_one(places: Places) -> None:
    one = places.process()
    other = places.process("nsenter", "-t", str(one.pid), "-n", "sleep", "300")
    until(lambda: inode(other.pid) == inode(one.pid))
    first, second = places.container(1, one), places.container(2, other)
    members = found()
    assert first in members
    assert second not in members


def test_reading_keeps_no_namespace_alive_as_an_open_file_does(places: Places) -> None:
    one = places.process()
    key = places.container(1, one)
    mine, inside = f"uvn{os.getpid() % 10**8}", f"uvm{os.getpid() % 10**8}"
    if subprocess.run([IP, *f"link add {mine} type veth peer name {inside}".split()], check=False).returncode:
        pytest.skip("this kernel makes no veth pairs")
    try:
        subprocess.run([IP, "link", "set", inside, "netns", str(one.pid)], check=True)
        sampler = Sampler(HostRoot(), sources=(cgroup_network.SOURCE,))
        for tick in range(0, 200, 10):
            sampler.tick(tick * TICK)
        assert found()[key].read()
        pinning = os.open(f"/proc/{one.pid}/net/snmp", os.O_RDONLY)
        places.end(one)
        time.sleep(0.3)
        assert Path("/sys/class/net", mine).exists()  # the trap: its process is gone, and the namespace is not
        os.close(pinning)
        until(lambda: not Path("/sys/class/net", mine).exists())
        sampler.close()
    finally:
        subprocess.run([IP, "link", "del", mine], check=False, capture_output=True)


def test_a_process_that_goes_over_to_another_namespace_is_not_taken_for_the_old_one(places: Places) -> None:
    one = places.process("unshare", "-n", "sh", "-c", "read line; exec unshare -n sleep 300")
    until(lambda: outside(one.pid))
    key = places.container(1, one)
    traffic(one.pid, 10)
    member = found()[key]
    (before,) = (place.whose for place in member.places)
    assert member.read()
    assert one.stdin is not None
    one.stdin.write(b"\n")
    one.stdin.flush()
    until(lambda: inode(one.pid) != before[0])
    assert len(member.read()) == 1
    (after,) = (place.whose for place in member.places)
    assert after != before


def test_a_pid_that_is_used_again_is_not_taken_for_the_old_one(places: Places) -> None:
    last = Path("/proc/sys/kernel/ns_last_pid")
    if not os.access(last, os.W_OK):
        pytest.skip("this kernel lets nobody choose a PID")
    one = places.process()
    key = places.container(1, one)
    member = found()[key]
    assert member.read()
    places.end(one)
    for _ in range(50):
        last.write_text(str(one.pid - 1))
        again = places.process("sleep", "300")
        if again.pid == one.pid:
            break
        places.end(again)
    else:
        pytest.skip("others were faster each time")
    assert member.read() == ()  # this one is in the host's namespace
    places.container(1, again)
    assert member.read() == ()


def test_a_process_that_ends_between_the_list_and_the_reading_costs_nothing(places: Places) -> None:
    one = places.process()
    other = places.process("nsenter", "-t", str(one.pid), "-n", "sleep", "300")
    until(lambda: inode(other.pid) == inode(one.pid))
    key = places.container(1, one, other)
    member = found()[key]
    seen_through = member.places[0].pid
    places.end(one if str(one.pid) == seen_through else other)
    assert len(member.read()) == 1
    assert member.places[0].pid != seen_through
    places.end(one)
    places.end(other)
    assert member.read() == ()


def test_counters_of_a_replaced_namespace_make_no_rate(places: Places) -> None:
    one = places.process()
    key = places.container(1, one)
    traffic(one.pid, 20)
    channel = Channel("network.cgroup_udp_in_datagrams", (("cgroup", key),))
    sampler = Sampler(HostRoot(), sources=(cgroup_network.SOURCE,))
    values: list[float] = []
    try:
        for second in range(31):
            if second == 12:
                two = places.process()
                traffic(two.pid, 500)
                places.container(1, two)
                places.end(one)
            sampler.tick(second * 10 * TICK)
            for block in sampler.collect(second * 10 * TICK):
                if channel in block.layout.column:
                    values += block.values[:, block.layout.column[channel]].tolist()
    finally:
        sampler.close()
    (gap,) = np.flatnonzero(np.isnan(values)).tolist()
    assert set(values[:gap]) == {20}
    assert set(values[gap + 1 :]) == {500}


def test_hidden_processes_are_said_and_others_need_no_rights(places: Places) -> None:
    places.container(1, places.process())
    script = """
import os, sys
from unveil.host.cgroups import CgroupTrees
from unveil.host.namespaces import NetworkNamespaces
from unveil.host.root import HostRoot
os.setgroups([]); os.setegid(65534); os.seteuid(65534)
trees = CgroupTrees(HostRoot()); trees.walk(0)
namespaces = NetworkNamespaces(HostRoot(), trees)
print(len([m for m in namespaces.look() if "unveil-test" in m.key]), namespaces.hidden)
"""
    python = f"exec {sys.executable} -c '{script}'"
    hidden = f"mount -t proc -o hidepid=2 proc /proc && {python}"
    plain = subprocess.run(["sh", "-c", python], check=True, capture_output=True, text=True)
    assert plain.stdout.split()[0] == "1"
    told = subprocess.run(["unshare", "-m", "sh", "-c", hidden], check=False, capture_output=True, text=True)
    if told.returncode:
        pytest.skip(f"procfs cannot be mounted anew here: {told.stderr.strip()[-200:]}")
    seen, unseen = map(int, told.stdout.split())
    assert (seen, unseen > 0) == (0, True)


def test_losses_between_two_containers_show_at_the_one_that_sends(places: Places) -> None:
    sender, receiver = places.process(), places.process()
    keys = [places.container(number, process) for number, process in enumerate((sender, receiver))]
    within = {process.pid: ["nsenter", "-t", str(process.pid), "-n"] for process in (sender, receiver)}

    def run(process: subprocess.Popen[bytes], words: str) -> None:
        subprocess.run([*within[process.pid], *words.split()], check=True, capture_output=True)

    link = f"link add uva netns {sender.pid} type veth peer name uvb netns {receiver.pid}"
    if not shutil.which("nft") or subprocess.run([IP, *link.split()], check=False, capture_output=True).returncode:
        pytest.skip("no veth pair, or no nft, to lose packets with")
    for process, name, address in ((sender, "uva", "10.213.99.1"), (receiver, "uvb", "10.213.99.2")):
        run(process, f"{IP} addr add {address}/30 dev {name}")
        run(process, f"{IP} link set {name} up")
    run(receiver, "nft add table netdev lossy")
    run(receiver, "nft add chain netdev lossy in { type filter hook ingress device uvb priority 0 ; }")
    run(receiver, "nft add rule netdev lossy in numgen random mod 1000 < 20 drop")
    taking = """
import socket
with socket.create_server(("10.213.99.2", 5001)) as server:
    print("ready", flush=True)
    with server.accept()[0] as peer:
        while peer.recv(1 << 16): pass
"""
    giving = """
import socket
with socket.create_connection(("10.213.99.2", 5001)) as peer: peer.sendall(bytes(20_000_000))
"""
    with subprocess.Popen([*within[receiver.pid], sys.executable, "-c", taking], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        subprocess.run([*within[sender.pid], sys.executable, "-c", giving], check=True)
    counted = counters(keys)
    assert counted[keys[0]]["tcp_out_segs"] > 10_000
    assert counted[keys[0]]["tcp_retrans"] > 10
    assert counted[keys[1]]["tcp_ofo_queue"] > 0
    assert counted[keys[1]]["tcp_in_segs"] > 100


def counters(keys: list[str]) -> dict[str, dict[str, float]]:
    """Return what the source tells of some containers."""
    sampler = Sampler(HostRoot(), sources=(cgroup_network.SOURCE,))
    try:
        sampler.tick(0)
        sampler.tick(200 * TICK)
        blocks = sampler.collect(200 * TICK)
    finally:
        sampler.close()
    told: dict[str, dict[str, float]] = {key: {} for key in keys}
    for block in blocks:
        for column, channel in enumerate(block.layout.channels):
            if (key := channel.label("cgroup") or "") in told:
                told[key][channel.metric.removeprefix("network.cgroup_")] = block.values[-1, column]
    return told
