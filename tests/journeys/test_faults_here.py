"""Faults that any kernel can have for a quarter of a minute: one watcher sees all of them at once, and none before.

Each is made by a program of a few lines in a cgroup of its own, or on the loopback interface. Where a setting of the
whole host has to stand on its default, it is put back.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [
    pytest.mark.slow,
    pytest.mark.root,
    pytest.mark.timeout(180),
    pytest.mark.xdist_group("faults-here"),
    pytest.mark.skipif(os.geteuid() != 0, reason="makes cgroups and sets a sysctl: needs root"),
]

CGROUPS = Path("/sys/fs/cgroup")
RMEM_MAX = Path("/proc/sys/net/core/rmem_max")
MIB = 1 << 20

IS_KILLED = """
import os, sys, time
while True:  # a worker takes more than it may have, is killed, and the next one is started
    if (pid := os.fork()) == 0:
        open(sys.argv[1], "w").write("0")
        kept = [bytearray(1 << 20) for _ in range(256)]
        os._exit(0)
    os.waitpid(pid, 0)
    time.sleep(0.3)
"""
READS_AGAIN = """
import mmap, os, sys
open(sys.argv[1], "w").write("0")
with open(sys.argv[2], "wb") as file:  # six times what it may have
    for _ in range(144):
        file.write(os.urandom(1 << 20))
with open(sys.argv[2], "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
    mapped.madvise(mmap.MADV_RANDOM)
    while True:
        for page in range(0, len(mapped), 4096):
            mapped[page]
"""
TAKES_NO_DATAGRAMS = """
import socket, time
taker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
taker.bind(("127.0.0.1", 0))
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    for _ in range(100):
        sender.sendto(bytes(1000), taker.getsockname())
    time.sleep(0.05)
"""

FAULTS = {
    "cgroup_out_of_memory": "cgroup:/unveil-fault-killed",
    "cgroup_memory_limit_reclaim": "cgroup:/unveil-fault-rereads",
    "udp_receive_buffers_short": "host:",
}


def _limited(name: str, mebibytes: int) -> Path:
    """Make a cgroup with a limit of memory."""
    folder = (CGROUPS / "memory" if (CGROUPS / "memory/cgroup.procs").exists() else CGROUPS) / name
    folder.mkdir()
    limits = [folder / "memory.limit_in_bytes", folder / "memory.max"]
    limit = next((each for each in limits if each.exists()), None)
    if limit is None:
        folder.rmdir()
        pytest.skip("no cgroup can have a limit of memory here")
    limit.write_text(str(mebibytes * MIB))
    return folder


@pytest.fixture(scope="module")
def sick(lasting_host: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Give a watcher that saw the host well, and then with all the faults."""
    scratch = tmp_path_factory.mktemp("faults")
    before = RMEM_MAX.read_text()
    made, running = [], []
    try:
        made = [_limited("unveil-fault-killed", 32), _limited("unveil-fault-rereads", 24)]
        RMEM_MAX.write_text("212992")
        watcher = lasting_host("--no-gpu")
        watcher.wait("windows", lambda: len(watcher.client.call("windows", limit=5)) >= 5, seconds=30)
        watcher.well = watcher.client.call("episodes", open_only=True)
        for program, *arguments in (
            (IS_KILLED, made[0] / "cgroup.procs"),
            (READS_AGAIN, made[1] / "cgroup.procs", scratch / "file"),
            (TAKES_NO_DATAGRAMS,),
        ):
            running.append(subprocess.Popen([sys.executable, "-c", str(program), *map(str, arguments)]))
        yield watcher
    finally:
        for process in running:
            process.kill()
            process.wait()
        RMEM_MAX.write_text(before)
        for folder in made:
            for _ in range(200):
                with contextlib.suppress(OSError):
                    folder.rmdir()
                if not folder.exists():
                    break
                time.sleep(0.05)


@pytest.mark.parametrize("fingerprint", FAULTS)
def test_it_is_seen_once_it_is_there(sick: Any, fingerprint: str) -> None:
    entity = FAULTS[fingerprint]
    assert fingerprint not in {
        each["fingerprint"] for each in sick.well if f"{each['entity']['kind']}:{each['entity']['key']}" == entity
    }
    sick.episode(fingerprint, entity, seconds=60)
