from __future__ import annotations

import errno
import os
import subprocess
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


def test_below_another_root_plain_files_stand_for_devices(tree: Path) -> None:
    (tree / "ethtool/eth0/ring").mkdir(parents=True)
    (tree / "ethtool/eth0/ring/rx").write_text("256\n")
    host = Settings(tree)
    assert host.write("ethtool:eth0/ring/rx", "1024") == "1024"
    with pytest.raises(SourceAbsentError):
        host.read("ethtool:eth1/ring/rx")
