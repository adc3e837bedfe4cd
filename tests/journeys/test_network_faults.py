"""Faults of the network on this kernel, in a namespace of its own: seen by the shipped fingerprints, gone by the fix.

What a fault looks like is recorded, the setting that the fix would write is written half-way, and the recording is
watched by the same code as a live host. Nothing outside of the namespace is changed.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.root, pytest.mark.slow]

SECONDS, FIXED_AT = 21, 11

ACCEPTS_SLOWLY = """
import socket, threading, time
def call():
    while True:
        client = socket.socket()
        client.setblocking(False)
        try:
            client.connect(("127.0.0.1", 7000))
        except OSError:
            pass
        time.sleep(0.01)
        client.close()
for _ in range(8):
    threading.Thread(target=call, daemon=True).start()
first = True
while True:  # listens anew each second, as a server does when it is restarted
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", 7000))
    server.listen(100000)
    if first:
        print("ready", flush=True)
        first = False
    for _ in range(20):
        time.sleep(0.05)
        server.accept()[0].close()
    server.close()
"""

A_SLOW_GUEST = """
import fcntl, os, socket, struct, subprocess, threading, time
tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
fcntl.ioctl(tap, 0x400454CA, struct.pack("16sH22x", b"tap0", 0x1002))  # TUNSETIFF: a tap without a header
for words in ("link set tap0 txqueuelen 250", "addr add 10.9.9.1/24 dev tap0", "link set tap0 up",
              "neigh add 10.9.9.2 lladdr 02:00:00:00:00:02 dev tap0"):
    subprocess.run(("ip", *words.split()), check=True)
def flood():
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    while True:
        for _ in range(400):
            sender.sendto(bytes(200), ("10.9.9.2", 9))
        time.sleep(0.1)
threading.Thread(target=flood, daemon=True).start()
print("ready", flush=True)
while True:  # takes 8000 a second in bursts, more than the flood sends
    time.sleep(0.05)
    try:
        for _ in range(400):
            os.read(tap, 4096)
    except BlockingIOError:
        pass
"""


@dataclass
class Namespace:
    """A network namespace and what runs in it."""

    name: str
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def do(self, words: str) -> None:
        """Run a command to its end."""
        subprocess.run(("ip", "netns", "exec", self.name, *words.split()), check=True, capture_output=True)

    def start(self, *words: object) -> subprocess.Popen[bytes]:
        """Start a command."""
        self.running.append(
            subprocess.Popen(("ip", "netns", "exec", self.name, *map(str, words)), stdout=subprocess.PIPE)
        )
        return self.running[-1]

    def fault(self, program: str) -> None:
        """Start a Python program, and wait until it says that all is in place."""
        process = self.start(sys.executable, "-c", program)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"


@pytest.fixture
def here() -> Iterator[Namespace]:
    """Give a network namespace."""
    if os.geteuid() != 0:
        pytest.skip("it takes root to make a network namespace")
    made = Namespace(f"unveil-{uuid.uuid4().hex[:8]}")
    subprocess.run(("ip", "netns", "add", made.name), check=True)
    try:
        made.do("ip link set lo up")
        yield made
    finally:
        for process in made.running:
            process.kill()
            process.communicate(timeout=30)
        subprocess.run(("ip", "netns", "delete", made.name), check=True)


def seen(where: Namespace, fix: str, folder: Path) -> list[set[tuple[str, str]]]:
    """Record a host, fix it half-way, and return what matched in each window: fingerprint and entity."""
    recording = folder / "host.parquet"
    unveil = (sys.executable, "-m", "unveil.cli.main")
    recorder = where.start(*unveil, "record", recording, "--for", f"{SECONDS}s", "--no-gpu", "--quiet")
    end = time.monotonic() + 60
    while not reads_the_host(recorder.pid):
        assert time.monotonic() < end
        time.sleep(0.05)
    time.sleep(FIXED_AT)
    where.do(fix)
    recorder.communicate(timeout=120)
    assert recorder.returncode == 0
    said = subprocess.run(
        (*unveil, "replay", recording, "--all", "--json"), check=False, capture_output=True, text=True
    )
    assert said.returncode == 1, f"an episode fired: {said.stderr}"
    windows: list[dict[str, Any]] = json.loads(said.stdout)
    return [
        {(one["fingerprint"], one["entity"]) for one in each["window"]["sightings"] if one["answer"] == "match"}
        for each in windows
    ]


def reads_the_host(pid: int) -> bool:
    """Return whether a recorder has begun: it keeps what it reads open."""
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):  # closed meanwhile
            if str(file.readlink()) == "/proc/stat":
                return True
    return False


def assert_seen_and_cured(windows: list[set[tuple[str, str]]], fingerprint: str, entity: str) -> None:
    matched = [(fingerprint, entity) in window for window in windows]
    assert len(windows) >= SECONDS - 6
    assert sum(matched[:9]) >= 6, matched
    assert not any(matched[-4:]), f"the fix ends it: {matched}"


def test_a_short_accept_queue_is_seen_and_a_longer_one_ends_it(here: Namespace, tmp_path: Path) -> None:
    here.do("sysctl -qw net.core.somaxconn=16")
    here.fault(ACCEPTS_SLOWLY)
    windows = seen(here, "sysctl -qw net.core.somaxconn=65535", tmp_path)
    assert_seen_and_cured(windows, "tcp_accept_queue_overflow", "host")


def test_a_short_queue_to_a_guest_is_seen_and_a_longer_one_ends_it(here: Namespace, tmp_path: Path) -> None:
    here.fault(A_SLOW_GUEST)
    windows = seen(here, "ip link set tap0 txqueuelen 10000", tmp_path)
    assert_seen_and_cured(windows, "tap_queue_drops", "nic:tap0")
