"""Three hosts: network namespaces with an sshd of their own; a network setting goes out to one after the other."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/bin:/sbin")
pytestmark = [
    pytest.mark.longest,
    pytest.mark.slow,
    pytest.mark.root,
    pytest.mark.ansible,
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.geteuid() != 0, reason="makes network namespaces: needs root"),
    pytest.mark.skipif(SSHD is None, reason="no sshd is installed"),
]
ROOT = Path(__file__).parents[2]
SYSCTL = "net.core.somaxconn"


@dataclass
class Hosts:
    """Three namespaces that share this kernel and this disk, each with its own network."""

    folder: Path
    names: tuple[str, ...] = ("h1", "h2", "h3")

    def __post_init__(self) -> None:
        self.tag = f"uv{os.getpid()}"
        self.daemons: list[subprocess.Popen[bytes]] = []

    def up(self) -> None:
        left_behind()
        key = self.folder / "id"
        for name in ("id", "host"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / name], check=True)
        Path("/run/sshd").mkdir(exist_ok=True)
        lines = []
        for number, name in enumerate(self.names, 1):
            space, ours, address = f"{self.tag}{name}", f"{self.tag}{name}v", f"10.213.{number}.2"
            for command in (
                f"ip netns add {space}",
                f"ip link add {ours} type veth peer name eth0 netns {space}",
                f"ip addr add 10.213.{number}.1/24 dev {ours}",
                f"ip link set {ours} up",
                f"ip -n {space} addr add {address}/24 dev eth0",
                f"ip -n {space} link set eth0 up",
                f"ip -n {space} link set lo up",
            ):
                subprocess.run(command.split(), check=True, capture_output=True)
            log = (self.folder / f"{name}.log").open("wb")
            options = {
                "ListenAddress": address, "UsePAM": "no", "StrictModes": "no", "PidFile": "none", "UseDNS": "no",
                "AuthorizedKeysFile": f"{key}.pub", "PermitRootLogin": "yes", "MaxStartups": "100",
            }  # fmt: skip
            flags = [word for option, value in options.items() for word in ("-o", f"{option}={value}")]
            self.daemons.append(
                subprocess.Popen(
                    ["ip", "netns", "exec", space, str(SSHD), "-D", "-f/dev/null", "-h", self.folder / "host", *flags],
                    stdout=log, stderr=log,
                )
            )  # fmt: skip
            log.close()
            lines.append(f"{name} ansible_host={address}")
            answers(address)
        common = (
            f"[all:vars]\nansible_user=root\nansible_python_interpreter=/usr/bin/python3\nansible_ssh_private_key_file={key}\n"
            "ansible_ssh_common_args='-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null'\n"
        )
        self.inventory = self.folder / "hosts.ini"
        self.inventory.write_text("[fleet]\n" + "\n".join(lines) + "\n" + common)

    def down(self) -> None:
        for daemon in self.daemons:
            daemon.terminate()
            daemon.wait(10)
        for name in self.names:
            subprocess.run(["ip", "netns", "del", f"{self.tag}{name}"], check=False, capture_output=True)

    def read(self) -> dict[str, str]:
        """Return what the setting reads on each host."""
        told = {}
        for name in self.names:
            command = ["ip", "netns", "exec", f"{self.tag}{name}", "cat", f"/proc/sys/{SYSCTL.replace('.', '/')}"]
            told[name] = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        return told

    def write(self, name: str, value: str) -> None:
        place = f"/proc/sys/{SYSCTL.replace('.', '/')}"
        shell = ["ip", "netns", "exec", f"{self.tag}{name}", "sh", "-c", f"echo {value} > {place}"]
        subprocess.run(shell, check=True)


def answers(address: str) -> None:
    """Wait until a host's sshd takes connections."""
    for _ in range(200):
        try:
            socket.create_connection((address, 22), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    pytest.fail(f"no sshd at {address}")


def left_behind() -> None:
    """Take away what a killed test run has left: its hosts have the addresses of ours."""
    listed = subprocess.run(["ip", "netns", "list"], check=False, capture_output=True, text=True).stdout
    for space, number in re.findall(r"^(uv(\d+)h\d)\b", listed, re.MULTILINE):
        if int(number) != os.getpid() and not Path(f"/proc/{number}").exists():
            inside = subprocess.run(["ip", "netns", "pids", space], check=False, capture_output=True, text=True).stdout
            for process in inside.split():
                os.kill(int(process), signal.SIGKILL)
            subprocess.run(["ip", "netns", "del", space], check=False, capture_output=True)


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    made = Hosts(tmp_path)
    try:
        made.up()
    except (subprocess.CalledProcessError, OSError) as error:
        made.down()
        pytest.skip(f"this kernel makes no network namespaces: {error}")
    except BaseException:
        made.down()
        raise
    yield made
    made.down()


@pytest.fixture
def verify(tmp_path: Path) -> Path:
    """Give a look of the site's own, which finds the second host wrong."""
    path = tmp_path / "verify.yml"
    path.write_text(
        '- hosts: "{{ unveil_target }}"\n  gather_facts: false\n  tasks:\n'
        "    - name: The service answers\n      ansible.builtin.assert:\n"
        "        that: inventory_hostname != 'h2'\n        fail_msg: it does not answer here\n"
    )
    path.chmod(0o600)
    return path


def unveil(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "unveil", "fleet", *words, "--state-dir", str(folder / "state")],
        capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip


def planned(hosts: Hosts, *words: str) -> str:
    """Plan it for all three and return the plan's id."""
    told = unveil(
        hosts.folder, "plan", "raise_accept_queue", "--inventory", str(hosts.inventory), "--hosts", "fleet",
        "--set", "somaxconn=8192", "--serial", "1", "--kb", str(ROOT), "--json", *words,
    )  # fmt: skip
    assert told.returncode == 0, told.stdout + told.stderr
    made: dict[str, Any] = json.loads(told.stdout)
    assert [host["name"] for host in made["fleet"]["hosts"]] == ["h1", "h2", "h3"]
    for run in made["runs"].values():
        (change,) = run["plan"]["changes"]
        assert (change["address"], change["before"], change["after"]) == (f"sysctl:{SYSCTL}", "4096", "8192")
    identity: str = made["fleet"]["id"]
    return identity


def states(hosts: Hosts, identity: str) -> dict[str, str]:
    told = json.loads(unveil(hosts.folder, "show", identity, "--json").stdout)
    return {host: run["steps"][-1]["state"] for host, run in told["runs"].items()}


def test_a_failed_look_at_the_second_host_leaves_the_third_untouched_restores_the_second_and_keeps_the_first(
    hosts: Hosts, verify: Path
) -> None:
    before = hosts.read()
    assert set(before.values()) == {"4096"}
    identity = planned(hosts, "--verify", str(verify))
    assert hosts.read() == before, "a plan changes nothing"
    refused = unveil(hosts.folder, "apply", identity, "--yes", "--kb", str(ROOT))
    assert refused.returncode == 1
    assert "observe" in refused.stderr, "as shipped nothing is changed anywhere"
    applied = unveil(hosts.folder, "apply", identity, "--yes", "--kb", str(ROOT), "--profile", "manual")
    assert applied.returncode == 1, applied.stdout + applied.stderr
    assert hosts.read() == {"h1": "8192", "h2": "4096", "h3": "4096"}
    assert states(hosts, identity) == {"h1": "kept", "h2": "rolled_back", "h3": "planned"}
    assert "it does not answer here" in applied.stdout
    again = unveil(hosts.folder, "apply", identity, "--yes", "--kb", str(ROOT), "--profile", "manual")
    assert again.returncode == 1
    assert hosts.read()["h3"] == "4096", "nothing goes on past a failure by itself"
    back = unveil(hosts.folder, "rollback", identity, "--yes", "--kb", str(ROOT))
    assert back.returncode == 0, back.stdout + back.stderr
    assert hosts.read() == before


def test_with_rollback_all_the_first_is_put_back_too_and_what_someone_else_wrote_is_left(
    hosts: Hosts, verify: Path
) -> None:
    identity = planned(hosts, "--verify", str(verify))
    applied = unveil(
        hosts.folder, "apply", identity, "--yes", "--kb", str(ROOT), "--profile", "manual", "--rollback", "all"
    )
    assert applied.returncode == 1, applied.stdout + applied.stderr
    assert set(hosts.read().values()) == {"4096"}
    assert states(hosts, identity) == {"h1": "rolled_back", "h2": "rolled_back", "h3": "planned"}
    identity = planned(hosts)
    hosts.write("h1", "5000")
    stale = unveil(hosts.folder, "apply", identity, "--yes", "--kb", str(ROOT), "--profile", "manual")
    assert stale.returncode == 1
    assert "changed since" in stale.stdout
    assert hosts.read() == {"h1": "5000", "h2": "4096", "h3": "4096"}


def test_a_controller_that_is_killed_goes_on_where_it_was(hosts: Hosts) -> None:
    identity = planned(hosts)
    words = ["apply", identity, "--yes", "--kb", str(ROOT), "--profile", "manual", "--state-dir"]
    process = subprocess.Popen(
        [sys.executable, "-m", "unveil", "fleet", *words, str(hosts.folder / "state")],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    end = time.monotonic() + 90
    while hosts.read()["h2"] != "8192" and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    went_on = unveil(hosts.folder, "apply", identity, "--yes", "--kb", str(ROOT), "--profile", "manual")
    assert went_on.returncode == 0, went_on.stdout + went_on.stderr
    assert set(hosts.read().values()) == {"8192"}
    assert set(states(hosts, identity).values()) == {"kept"}
