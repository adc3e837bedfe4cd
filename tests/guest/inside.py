"""What runs in the guest: a watcher, one ill workload after the other, and the whole way from fault to fix and back.

Everything goes through the project's own doors: the shipped fingerprints match and the plan is the watcher's. Of the
fault that no other machine of ours can have, memory on the wrong node, the watcher plays the shipped playbook with a
real ansible-playbook, verifies and rolls back. That takes minutes on an emulated CPU, so the modules of the other
playbooks are called as Ansible calls them, and the watcher's code for settings puts back what they wrote. What was
there before, between and after is said as JSON lines; the host side judges it. Nothing here takes a speed for a proof.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from faults import CGROUPS, FAULTS, Fault, Patient

from unveil.engine.client import Client
from unveil.errors import UnveilError
from unveil.execution.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

MODULES = Path(__file__).parents[2] / "playbooks/modules"
THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")
AS_ANSIBLE_DOES = """
import runpy, sys, os
import ansible.module_utils
sys.argv = sys.argv[1:]
ansible.module_utils.__path__.append(os.path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
"""
STATE = Path("/run/unveil")
LOG = Path("/run/watch.log")
BUSY = {"planned", "approved", "applying", "verifying", "rolling_back"}


def say(**told: Any) -> None:
    """Tell the host side."""
    print(json.dumps(told), flush=True)


def wanted_settings(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the settings as a playbook gets them."""
    return [{"address": each["address"], "value": each["after"]} for each in plan["changes"] if each["after"]]


def filled(template: Any, given: dict[str, Any]) -> Any:
    """Return an argument of a task with its variable in place; our playbooks have one a value, maybe with a default."""
    found = re.fullmatch(r"\{\{ (\w+)(?: \| default\('(.*)'\))? \}\}", str(template))
    return template if found is None else given.get(found[1], found[2])


def call_module(name: str, arguments: dict[str, Any], *, check: bool) -> dict[str, Any]:
    """Call one of our Ansible modules as Ansible does, in a process of its own."""
    path = Path("/run/arguments.json")
    path.write_text(json.dumps({"ANSIBLE_MODULE_ARGS": {**arguments, "_ansible_check_mode": check}}))
    command = [sys.executable, "-c", AS_ANSIBLE_DOES, MODULES / f"{name}.py", path]
    said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    try:
        answer = json.loads(said.stdout)
    except ValueError:
        return {"failed": True, "changed": False, "msg": f"{said.stdout} {said.stderr}"[-1000:]}
    return {key: value for key, value in answer.items() if key not in {"invocation", "settings", "diff"}}


def contents(addresses: list[str]) -> dict[str, str]:
    """Return what settings hold, byte for byte, read without the project's code."""
    told = {}
    for address in addresses:
        scheme, _, rest = address.partition(":")
        place = {"file": rest, "irq": f"/proc/irq/{rest}", "cgroup": f"{CGROUPS}{rest}"}.get(scheme)
        if place is not None:
            told[address] = Path(place).read_text()
    return told


class Guest:
    """The watcher, its client, and the way of a fault."""

    def __init__(self) -> None:
        with LOG.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "unveil", "watch", "--profile", "manual", "--no-gpu", "--verbose",
                 "--state-dir", STATE],
                stdout=log, stderr=log,
            )  # fmt: skip
        self.client = Client(STATE / "control.sock", timeout_s=60)

    def wait(self, what: str, condition: Callable[[], Any], *, seconds: float) -> Any:
        """Return the first truthy value of a condition.

        Raises:
            TimeoutError: the time is up.
        """
        begun, end = time.monotonic(), time.monotonic() + seconds
        while time.monotonic() < end:
            with contextlib.suppress(UnveilError):
                if value := condition():
                    say(event="step", what=what, seconds=round(time.monotonic() - begun, 1))
                    return value
            if self.process.poll() is not None:
                break
            time.sleep(0.25)
        raise TimeoutError(f"{what}: not within {seconds} s\n{LOG.read_text()[-3000:]}")

    def episode(self, fault: Fault) -> dict[str, Any] | None:
        for each in self.client.call("episodes", open_only=True):
            there = f"{each['entity']['kind']}:{each['entity']['key']}"
            if (each["fingerprint"], there, each["state"]) == (fault.fingerprint, fault.entity, "firing"):
                return dict(each)
        return None

    def explained(self, fault: Fault) -> str:
        """Return how the newest window stands against a fault's fingerprint, for a person who asks why not."""
        with contextlib.suppress(UnveilError):
            held = self.client.call("explain", fingerprint=fault.fingerprint, entity=fault.entity)
            return "\n".join(f"{each['name']}: {each['answer']} {each['value']} {each['reason']}"
                             for match in held for each in match["clauses"])  # fmt: skip
        return ""

    def state(self, run: str) -> str:
        return str(self.client.call("run", id=run)["run"]["steps"][-1]["state"])

    def ended(self, run: str, *, but: str = "") -> str | None:
        state = self.state(run)
        return None if state in BUSY or state == but else state

    def modules(self, plan: dict[str, Any], *, check: bool) -> list[dict[str, Any]]:
        """Call the modules of a plan's playbook with what the playbook gives them; return their answers."""
        begun = time.monotonic()
        given = {**plan["variables"], "unveil_settings": wanted_settings(plan)}
        answers = []
        for task in yaml.safe_load(Path(plan["playbook"]).read_text())[0]["tasks"]:
            for name in task:
                if name.startswith("unveil_"):
                    arguments = {key: filled(value, given) for key, value in task[name].items()}
                    answers.append({"module": name, **call_module(name, arguments, check=check)})
        say(event="step", what=f"modules called, check={check}", seconds=round(time.monotonic() - begun, 1))
        return answers

    def go(self, fault: Fault) -> None:
        """Take a fault from its injection to the rollback."""
        told = fault.told
        patient = Patient(fault.name, *fault.patient)
        try:
            self.wait("the workload works", patient.beats, seconds=60)
            fault.inject(patient)
            told["before"] = fault.look(patient)
            found = self.wait(f"{fault.fingerprint} fires", lambda: self.episode(fault), seconds=150)
            told["clauses"] = {each["name"]: each["value"] for each in found["last"]["clauses"]}
            run = self.client.call("plan", episode=found["id"], remediation=None)
            told["remediation"] = run["plan"]["remediation"]
            told["addresses"] = [each["address"] for each in run["plan"]["changes"]]
            told["looked_through"] = self.modules(run["plan"], check=True)
            told["after_dry_run"] = fault.look(patient)
            told["settings_before"] = contents(told["addresses"])
            (self._by_playbook if fault.by_playbook else self._by_modules)(fault, patient, run)
            told["settings_rolled_back"] = contents(told["addresses"])
            told["after_rollback"] = fault.look(patient)
            told["alive_at_end"] = patient.alive()
            told["watcher_cpu_s"] = self.cpu_s()
        finally:
            patient.close()

    def _by_playbook(self, fault: Fault, patient: Patient, run: dict[str, Any]) -> None:
        """Approve, apply, verify and roll back as an operator does it; the watcher and ansible-playbook act."""
        told, applied_s = fault.told, time.monotonic()
        self.client.call("approve", id=run["id"], hash=run["plan"]["hash"])
        self.client.call("apply", id=run["id"], hash=run["plan"]["hash"])
        told["ended"] = self.wait("applied and verified", lambda: self.ended(run["id"]), seconds=300)
        story = self.client.call("run", id=run["id"])["run"]["steps"]
        told["steps"] = [f"{each['state']}: {each['cause']} {each['detail']}" for each in story]
        self._applied(fault, patient, run, since=applied_s)
        self.client.call("rollback", id=run["id"])
        told["rolled_back"] = self.wait("rolled back", lambda: self.ended(run["id"], but="kept"), seconds=30)

    def _by_modules(self, fault: Fault, patient: Patient, run: dict[str, Any]) -> None:
        """Apply with the playbook's modules, see the episode clear, and put back with the watcher's settings code."""
        told, applied_s = fault.told, time.monotonic()
        settings = Settings()
        saved = {address: settings.read(address) for address in told["addresses"]}
        told["applied"] = self.modules(run["plan"], check=False)
        written = {address: settings.read(address) for address in told["addresses"]}
        self.wait("the episode clears", lambda: self.episode(fault) is None, seconds=90)
        told["ended"] = "cleared"
        self._applied(fault, patient, run, since=applied_s)
        told["rolled_back"] = [str(each.outcome) for each in settings.restore(saved, written)]
        self.client.call("cancel", id=run["id"])

    def _applied(self, fault: Fault, patient: Patient, run: dict[str, Any], *, since: float) -> None:
        """Note what an apply did, and what a second one does."""
        told = fault.told
        told["after"] = fault.look(patient)
        told["settings_after"] = contents(told["addresses"])
        told["alive"] = patient.alive()
        told["worst_stall_s"] = max((each["late"] for each in patient.beats() if each["at"] >= since), default=None)
        told["second"] = self.modules(run["plan"], check=False)
        told["after_second"] = fault.look(patient)

    def cpu_s(self) -> float:
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()


def furnish() -> None:
    """Set the guest up: controllers, huge pages on request as most distributions ship them, and a NIC that is up."""
    (CGROUPS / "cgroup.subtree_control").write_text("+cpu +cpuset +memory +io")
    THP.write_text("madvise")
    for words in ("addr add 10.0.2.15/24 dev eth0", "link set eth0 up"):
        subprocess.run(["ip", *words.split()], check=True)


def main(names: list[str]) -> None:
    """Go through the faults; one that fails does not keep the others."""
    say(event="up", seconds=float(Path("/proc/uptime").read_text().split()[0]), kernel=os.uname().release)
    furnish()
    nodes = [path.name for path in sorted(Path("/sys/devices/system/node").glob("node[0-9]*"))]
    nic = Path("/sys/class/net/eth0/device").resolve().parent  # a virtio device has its node one up
    say(event="shape", nodes=nodes, nic_node=int((nic / "numa_node").read_text()))
    guest = Guest()
    try:
        guest.wait("the watcher answers", lambda: guest.client.call("ping"), seconds=180)
        for fault in FAULTS:
            if names and fault.name not in names:
                continue
            begun = time.monotonic()
            say(event="fault", name=fault.name)
            try:
                guest.go(fault)
            except (TimeoutError, UnveilError, OSError, LookupError) as error:
                fault.told["failed"] = f"{type(error).__name__}: {error}\n{guest.explained(fault)}"
            say(event="told", name=fault.name, seconds=round(time.monotonic() - begun, 1), **fault.told)
        say(event="watched", problems=guest.client.call("status").get("problems"), log=LOG.read_text()[-3000:])
    finally:
        guest.close()
    say(event="end")


if __name__ == "__main__":
    try:
        asked = re.search(r"unveil\.faults=(\S+)", Path("/proc/cmdline").read_text())
        main(asked[1].split(",") if asked else [])
    except Exception as error:
        say(event="broken", error=f"{type(error).__name__}: {error}")
        raise
