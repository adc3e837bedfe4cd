from __future__ import annotations

import errno
import os
import shutil
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from unveil.errors import SourceAbsentError, SourceFailedError
from unveil.execution import device_settings
from unveil.execution.settings import Outcome, Settings

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def veth() -> Iterator[str]:
    """Make a pair of virtual interfaces that nobody uses, and give the name of one."""
    if os.geteuid() != 0:
        pytest.skip("makes a network interface: needs root")
    name = f"uv{os.getpid() % 100000}a"
    made = subprocess.run(
        ["ip", "link", "add", name, "type", "veth", "peer", "name", f"{name[:-1]}b"], check=False, capture_output=True
    )
    if made.returncode:
        pytest.skip(f"this kernel makes no virtual interface: {made.stderr.decode()}")
    yield name
    subprocess.run(["ip", "link", "del", name], check=True)


@pytest.fixture
def tap() -> Iterator[str]:
    """Make a tap that nobody uses, and give its name."""
    if os.geteuid() != 0:
        pytest.skip("makes a network interface: needs root")
    name = f"uv{os.getpid() % 100000}t"
    made = subprocess.run(["ip", "tuntap", "add", "dev", name, "mode", "tap"], check=False, capture_output=True)
    if made.returncode:
        pytest.skip(f"this kernel makes no tap: {made.stderr.decode()}")
    yield name
    subprocess.run(["ip", "link", "del", name], check=True)


@pytest.mark.root
def test_an_offload_is_switched_and_put_back_with_what_it_took_along(veth: str) -> None:
    host = Settings()
    # Without scatter-gather there is no segmentation offload: the kernel switches it off along.
    address, partner = f"ethtool:{veth}/feature/tx-scatter-gather", f"ethtool:{veth}/feature/tx-tcp-segmentation"
    saved = {each: host.read(each) for each in (address, partner)}
    assert saved == {address: "on", partner: "on"}
    written = {address: host.write(address, "off"), partner: host.read(partner)}
    assert written == {address: "off", partner: "off"}
    assert [each.outcome for each in host.restore(saved, written)] == [Outcome.RESTORED] * 2
    assert {each: host.read(each) for each in (address, partner)} == saved


@pytest.mark.root
def test_what_a_device_does_not_have_or_keep_is_told(veth: str) -> None:
    host = Settings()
    for absent in ("feature/no-such", "coalesce/rx-usecs", "ring/rx"):
        with pytest.raises(SourceAbsentError):
            host.read(f"ethtool:{veth}/{absent}")
    with pytest.raises(SourceAbsentError):
        host.read("ethtool:nosuchnic/feature/rx-gro")
    with pytest.raises(SourceFailedError, match="on or off"):
        host.write(f"ethtool:{veth}/feature/rx-gro", "1")
    with pytest.raises(OSError, match="what the device can do"):
        device_settings.write("ethtool", veth, "channels/rx-max", "4")


def test_without_systemd_a_service_is_absent_with_the_reason() -> None:
    if Path("/run/systemd/system").is_dir():
        pytest.skip("systemd runs here")
    with pytest.raises(OSError, match="systemd does not run here") as caught:
        device_settings.read("service", "irqbalance.service", "active")
    assert caught.value.errno == errno.ENODEV
    with pytest.raises(SourceAbsentError, match="systemd does not run here"):
        Settings().read("service:irqbalance.service/active")


def test_a_service_is_enabled_without_a_reload_of_systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reload takes their GPUs from running containers: trap 11."""
    said, program = tmp_path / "said", tmp_path / "systemctl"
    program.write_text(f'#!/bin/sh\necho "$@" >> {said}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(device_settings.os.path, "isdir", lambda path: path == "/run/systemd/system")
    for item, value in (("enabled", "disabled"), ("enabled", "enabled"), ("active", "inactive")):
        device_settings.write("service", "x.service", item, value)
    assert said.read_text().splitlines() == [
        "disable --no-reload -- x.service", "enable --no-reload -- x.service", "stop -- x.service",
    ]  # fmt: skip


@pytest.mark.root
def test_moderation_of_a_tap_is_set_and_put_back(tap: str) -> None:
    host = Settings()
    address, absent = f"ethtool:{tap}/coalesce/rx-frames", f"ethtool:{tap}/coalesce/rx-usecs"
    saved = {address: host.read(address)}
    assert saved == {address: "0"}
    assert host.write(address, "8") == "8"
    with pytest.raises(SourceAbsentError):
        host.write(absent, "16")
    assert [each.outcome for each in host.restore(saved, {address: "8"})] == [Outcome.RESTORED]
    assert host.read(address) == "0"


BALANCER = """
import os, socket
door = socket.socket(socket.AF_UNIX)
door.bind(f"\\0irqbalance{os.getpid()}.sock")
door.listen()
bans = ["7"]
print("ready", flush=True)
while True:
    caller = door.accept()[0]
    caller.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    with caller:
        said, credentials = caller.recvmsg(500, 200)[:2]
        if not credentials:
            continue
        if said == b"setup":
            told = "".join(f"IRQ {ban} LOAD 0 DIFF 0 CLASS 0 " for ban in bans)
            caller.sendall(f"SLEEP 10 {told}BANNED 00000000".encode())
        elif said.startswith(b"settings ban irqs "):
            words = said.decode().split()[3:]
            bans = [] if words == ["NONE"] else words
"""


@pytest.fixture
def balancer(tmp_path: Path) -> Iterator[None]:
    """Give a process that answers as irqbalance does; a real one would move the interrupts of this machine."""
    if os.geteuid() != 0:
        pytest.skip("irqbalance is root's")
    program = tmp_path / "balancer.py"
    program.write_text(BALANCER)
    with subprocess.Popen([sys.executable, "-I", program], stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        yield
        process.kill()


@pytest.mark.root
def test_an_interrupt_is_banned_from_irqbalance_and_only_that_ban_is_lifted(balancer: None) -> None:
    host = Settings()
    ours, theirs = "irqbalance:24/banned", "irqbalance:7/banned"
    saved = {ours: host.read(ours)}
    assert saved == {ours: "no"}
    assert host.write(ours, "yes") == "yes"
    assert host.read(theirs) == "yes", "what was banned before stays banned"
    with pytest.raises(SourceFailedError, match="yes or no"):
        host.write(ours, "maybe")
    assert [each.outcome for each in host.restore(saved, {ours: "yes"})] == [Outcome.RESTORED]
    assert (host.read(ours), host.read(theirs)) == ("no", "yes")

    def ban_many() -> None:
        for number in range(100, 300):
            device_settings.write("irqbalance", str(number), "banned", "yes")

    with pytest.raises(OSError, match="no list that long"):
        ban_many()
    assert (host.read("irqbalance:100/banned"), host.read("irqbalance:299/banned")) == ("yes", "no")


@pytest.mark.root
def test_sockets_of_others_keep_nobody_waiting_and_lead_nowhere(
    balancer: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_settings, "BALANCER_S", 600.0)
    with ExitStack() as opened:

        def bind(name: str) -> socket.socket:
            door = opened.enter_context(socket.socket(socket.AF_UNIX))
            door.bind(name)
            door.listen(0)
            return door

        bind(f"\0irqbalance0{os.getpid()}.sock")  # takes one connection, and no other
        opened.enter_context(socket.socket(socket.AF_UNIX)).connect(f"\0irqbalance0{os.getpid()}.sock")
        elsewhere = bind(str(tmp_path / "irqbalance1.sock"))
        assert Settings().read("irqbalance:7/banned") == "yes"
        elsewhere.setblocking(False)
        with pytest.raises(BlockingIOError):
            elsewhere.accept()


@pytest.mark.root
def test_without_irqbalance_a_ban_is_absent_with_the_reason() -> None:
    if shutil.which("pgrep") is None or subprocess.run(["pgrep", "-x", "irqbalance"], check=False).returncode == 0:
        pytest.skip("irqbalance runs here")
    with pytest.raises(SourceAbsentError, match="does not run here"):
        Settings().read("irqbalance:24/banned")


def test_below_another_root_plain_files_stand_for_devices(tree: Path) -> None:
    (tree / "ethtool/eth0/ring").mkdir(parents=True)
    (tree / "ethtool/eth0/ring/rx").write_text("256\n")
    host = Settings(tree)
    assert host.write("ethtool:eth0/ring/rx", "1024") == "1024"
    with pytest.raises(SourceAbsentError):
        host.read("ethtool:eth1/ring/rx")
