"""The faults of the paper on a kernel of its own with two NUMA nodes: found, shown, fixed, fixed twice, and undone.

One guest is booted under QEMU's software emulation and goes through all of them; what it says is judged here, on state
and counters alone: emulated memory is nowhere remote, and speed there says nothing. `.ci/guest` runs just this.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("UNVEIL_GUEST_CACHE") or Path.home() / ".cache/unveil-guest")
WHOLE_S = 15 * 60
SILENCE_S = 400  # the guest's own limits are shorter

pytestmark = [
    pytest.mark.slow,
    pytest.mark.ansible,
    pytest.mark.timeout(WHOLE_S + 60),
    pytest.mark.xdist_group("guest"),
    pytest.mark.skipif(os.geteuid() != 0, reason="makes a disk with root's files: needs root"),
    pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="the guest is x86_64"),
    *(
        pytest.mark.skipif(
            shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None, reason=f"no {name}"
        )
        for name in ("qemu-system-x86_64", "mke2fs", "apt-get", "dpkg-deb")
    ),
]


class Story:
    """What the guest said."""

    def __init__(self) -> None:
        self.faults: dict[str, dict[str, Any]] = {}
        self.shape: dict[str, Any] = {}
        self.failure = ""
        self.ended = False

    def take(self, told: dict[str, Any]) -> str:
        """Note a line, and return it for a person."""
        match told.pop("event"):
            case "told":
                name = told.pop("name")
                self.faults[name] = told
                shown = {key: told.get(key) for key in ("before", "after", "worst_stall_s", "ended", "rolled_back")}
                return f"{name}: {told['seconds']} s, {told.get('failed') or shown}"
            case "step":
                return f"  {told['what']}: {told['seconds']} s"
            case "shape":
                self.shape = told
            case "broken":
                self.failure = told["error"]
            case "end":
                self.ended = True
                return "the end"
        return ", ".join(f"{name} {str(value)[:300]}" for name, value in told.items())

    def fault(self, name: str) -> dict[str, Any]:
        """Return what became of a fault, to its end."""
        if (only := os.environ.get("UNVEIL_GUEST_FAULTS")) and name not in only.split(","):
            pytest.skip(f"UNVEIL_GUEST_FAULTS={only}")
        assert name in self.faults, f"the guest did not get there: {self.failure}"
        told = self.faults[name]
        assert "failed" not in told, f"{told['failed']}\n{told}"
        return told


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Story:
    """Build, boot and follow the guest."""
    sys.path.insert(0, str(HERE))
    try:
        import guest_image
        import guest_machine
    finally:
        sys.path.remove(str(HERE))
    terminal = request.config.get_terminal_writer()
    begun = time.monotonic()

    def say(text: str) -> None:
        terminal.line(f"guest {time.monotonic() - begun:5.0f} s  {text}", flush=True)

    folder = tmp_path_factory.mktemp("guest")
    try:
        kernel, busybox = guest_image.parts(CACHE)
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"no kernel for the guest: {error}")
    say(f"kernel: {kernel.name}")
    guest_image.initramfs(kernel, busybox, folder / "initrd")
    guest_image.disk(busybox, folder / "disk", folder)
    say(f"disk: {(folder / 'disk').stat().st_size >> 20} MiB")
    told = Story()
    machine = guest_machine.Machine(folder, kernel)
    try:
        for line in machine.lines(until=begun + WHOLE_S, silence_s=SILENCE_S):
            say(told.take(line))
    except TimeoutError as error:
        told.failure = str(error)
        say(told.failure)
    finally:
        machine.close()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        say(f"QEMU and what made its disk took {used.ru_utime + used.ru_stime:.0f} s of CPU time")
        (folder / "disk").unlink()
    if not told.ended:
        told.failure = f"{told.failure}\n{machine.tail()}"
    say("over")
    return told


def undone(told: dict[str, Any], *, by_playbook: bool) -> None:
    """Hold what is the same for every fault."""
    assert [each.get("failed") for each in told["looked_through"]] == [None] * len(told["looked_through"])
    assert any(each["changed"] for each in told["looked_through"]), "check mode says what would change"
    if by_playbook:
        assert told["ended"] == "kept", told["steps"]
        assert told["rolled_back"] == "rolled_back"
    else:
        assert told["ended"] == "cleared", "the watcher sees that the fault is gone"
        assert set(told["rolled_back"]) == {"restored"}
    assert [each.get("failed") for each in told["second"]] == [None] * len(told["second"])
    assert not any(each["changed"] for each in told["second"]), "a second apply changes nothing"
    assert told["settings_rolled_back"] == told["settings_before"], "byte for byte what was there"
    assert told["alive"], "the workload lives through it"
    assert told["alive_at_end"]


def test_the_guest_has_two_nodes_and_its_nic_is_on_the_second(story: Story) -> None:
    assert story.shape == {"nodes": ["node0", "node1"], "nic_node": 1}, story.failure


def test_pages_of_a_running_workload_go_home_to_the_node_of_its_device(story: Story) -> None:
    told = story.fault("numa")
    undone(told, by_playbook=True)
    assert told["remediation"] == "migrate_memory_home"
    assert told["before"]["remote_share"] >= 0.999, "all of it is on the other node"
    assert told["after_dry_run"]["remote_share"] > 0.98, "a dry run moves nothing"
    assert told["after"]["remote_share"] < 0.02
    assert told["after_second"]["remote_share"] < 0.02
    assert told["worst_stall_s"] is not None


def test_interrupts_of_a_nic_go_to_the_cpus_next_to_it_and_back(story: Story) -> None:
    told = story.fault("irq")
    undone(told, by_playbook=True)
    assert told["remediation"] == "pin_nic_irqs_local"
    before, dry, after, back = (
        told[name]["input.0"] for name in ("before", "after_dry_run", "after", "after_rollback")
    )
    for each in (before, dry, back):
        assert each["wanted"] == "0-1"
        assert each["effective"] in {"0", "1", "0-1"}
    assert after["wanted"] == "2-3"
    assert after["effective"] in {"2", "3", "2-3"}
    assert after["counts"][1] - dry["counts"][1] > 100, "the CPUs next to the NIC are those that are interrupted"
    assert all(value.strip() == "2-3" for value in told["settings_after"].values())


def test_memory_of_a_running_workload_becomes_huge_and_the_setting_goes_back(story: Story) -> None:
    told = story.fault("huge")
    undone(told, by_playbook=True)
    assert told["remediation"] == "enable_huge_pages"
    assert told["before"]["huge_kb"] < 0.02 * told["before"]["anonymous_kb"]
    assert told["after"]["huge_kb"] > 0.9 * told["after"]["anonymous_kb"]
    assert told["settings_before"]["file:/sys/kernel/mm/transparent_hugepage/enabled"] == "always [madvise] never\n"


def test_the_quota_of_a_workload_that_is_held_back_is_lifted_and_put_back(story: Story) -> None:
    told = story.fault("quota")
    undone(told, by_playbook=False)
    assert told["remediation"] == "raise_cpu_quota"
    assert told["before"]["throttled"] > 0
    assert told["after_dry_run"]["throttled"] > 0, "a dry run lifts nothing"
    assert told["after"]["throttled"] == 0
    assert told["after_rollback"]["throttled"] > 0
    assert told["settings_before"] == {"cgroup:/guest-quota/cpu.max": "10000 100000\n"}
    assert told["settings_after"] == {"cgroup:/guest-quota/cpu.max": "max 100000\n"}
