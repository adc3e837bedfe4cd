"""What runs in the guest: a watcher, the ill workloads, and the whole way from each fault to its fix and back.

Everything goes through the project's own doors: the shipped fingerprints match and the plan is the watcher's. Of
memory and interrupts on the wrong node and of huge pages, the watcher plays the shipped playbooks with a real
ansible-playbook, one after the other, verifies and rolls back. For the quota, which needs a host with idle CPUs, the
playbook's modules are called as Ansible calls them, and the watcher's code for settings puts back what they wrote.
The faults are of different kinds and in different cgroups, so all are gone through at once. What was there before,
between and after is said as JSON lines; the host side judges it. Nothing here takes a speed for a proof.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import subprocess
import sys
import threading
import time
from functools import partial
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
STATE = Path("/run/unveil")
LOG = Path("/run/watch.log")
SPEAKING = threading.Lock()
PLAYING = threading.Lock()  # there are not the CPUs for two playbooks at a time
BUSY = {"planned", "approved", "applying", "verifying", "rolling_back"}


def say(**told: Any) -> None:
    """Tell the host side."""
    with SPEAKING:
        print(json.dumps(told), flush=True)


def wanted_settings(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the settings as a playbook gets them."""
    return [{"address": each["address"], "value": each["after"]} for each in plan["changes"] if each["after"]]


def filled(template: Any, given: dict[str, Any]) -> Any:
    """Return an argument of a task with its variable in place; our playbooks have one a value, maybe with a default."""
    found = re.fullmatch(r"\{\{ (\w+)(?: \| default\('(.*)'\))? \}\}", str(template))
    return template if found is None else given.get(found[1], found[2])


class Modules:
    """Calls our Ansible modules, each in a process of its own: see `module_server.py`."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("module_server.py"), MODULES], stdin=subprocess.PIPE
        )
        self._number = itertools.count()

    def call(self, name: str, arguments: dict[str, Any], *, check: bool) -> dict[str, Any]:
        """Return a module's answer."""
        given, answer = (Path(f"/run/module.{next(self._number)}") for _ in range(2))
        given.write_text(json.dumps({"ANSIBLE_MODULE_ARGS": {**arguments, "_ansible_check_mode": check}}))
        assert self._server.stdin
        os.write(self._server.stdin.fileno(), f"{MODULES / name}.py {given} {answer}\n".encode())
        end = time.monotonic() + 240
        while not answer.exists():
            if time.monotonic() > end:
                return {"failed": True, "changed": False, "msg": "no answer within 240 s"}
            time.sleep(0.1)
        try:
            told = json.loads(answer.read_text())
        except ValueError:
            return {"failed": True, "changed": False, "msg": answer.read_text()[-1000:]}
        return {key: value for key, value in told.items() if key not in {"invocation", "settings", "diff"}}

    def close(self) -> None:
        """End it."""
        self._server.kill()
        self._server.wait()


def contents(addresses: list[str]) -> dict[str, str]:
    """Return what settings hold, byte for byte, read without the project's code."""
    told = {}
    for address in addresses:
        scheme, _, rest = address.partition(":")
        place = {"file": rest, "irq": f"/proc/irq/{rest}", "cgroup": f"{CGROUPS}{rest}"}.get(scheme)
        if place is not None:
            told[address] = Path(place).read_text()
    return told


class Watch:
    """The watcher's process."""

    def __init__(self) -> None:
        with LOG.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "unveil", "watch", "--profile", "manual", "--no-gpu", "--verbose",
                 "--state-dir", STATE],
                stdout=log, stderr=log,
            )  # fmt: skip

    def cpu_s(self) -> float:
        """Return the CPU time that it has taken."""
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """End it."""
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()


class Treatment(threading.Thread):
    """Takes one fault from its injection to the rollback."""

    def __init__(self, fault: Fault, watch: Watch, modules: Modules) -> None:
        super().__init__(name=fault.name)
        self.fault, self.told = fault, fault.told
        self._watch, self._modules = watch, modules
        self._client = Client(STATE / "control.sock", timeout_s=180)
        self._patient = Patient(fault.name, *fault.patient)

    def run(self) -> None:
        """Go; what goes wrong is told, and does not keep the others."""
        begun = time.monotonic()
        try:
            self._go()
        except (TimeoutError, UnveilError, OSError, LookupError, ArithmeticError) as error:
            self.told["failed"] = f"{type(error).__name__}: {error}\n{self._explained()}"
        finally:
            self._patient.close()
        say(event="told", name=self.name, seconds=round(time.monotonic() - begun, 1), **self.told)

    def _go(self) -> None:
        fault, told, patient = self.fault, self.told, self._patient
        self.wait("the workload works", patient.beats, seconds=90)
        fault.inject(patient)
        told["before"] = fault.look(patient)
        self.wait("the watcher answers", lambda: self._client.call("ping"), seconds=180)
        found, run = self.wait(f"{fault.fingerprint} fires", self._planned, seconds=240)
        told["clauses"] = {each["name"]: each["value"] for each in found["last"]["clauses"]}
        told["remediation"] = run["plan"]["remediation"]
        told["addresses"] = [each["address"] for each in run["plan"]["changes"]]
        told["looked_through"] = self._called(run["plan"], check=True)
        told["after_dry_run"] = fault.look(patient)
        told["settings_before"] = contents(told["addresses"])
        (self._by_playbook if fault.by_playbook else self._by_modules)(run)
        told["settings_rolled_back"] = contents(told["addresses"])
        told["after_rollback"] = fault.look(patient)
        told["alive_at_end"] = patient.alive()

    def wait(self, what: str, condition: Callable[[], Any], *, seconds: float) -> Any:
        """Return the first truthy value of a condition.

        Raises:
            TimeoutError: the time is up.
        """
        begun, end = time.monotonic(), time.monotonic() + seconds
        while time.monotonic() < end:
            with contextlib.suppress(UnveilError):
                if value := condition():
                    say(event="step", what=f"{self.name}: {what}", seconds=round(time.monotonic() - begun, 1))
                    return value
            if self._watch.process.poll() is not None:
                break
            time.sleep(1.5)  # each question costs the watcher time that it has little of here
        raise TimeoutError(f"{what}: not within {seconds} s\n{LOG.read_text()[-3000:]}")

    def _episode(self) -> dict[str, Any] | None:
        for each in self._client.call("episodes", open_only=True):
            there = f"{each['entity']['kind']}:{each['entity']['key']}"
            if (each["fingerprint"], there, each["state"]) == (self.fault.fingerprint, self.fault.entity, "firing"):
                return dict(each)
        return None

    def _planned(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Return the episode with the run that is planned for it; refused when it has cleared in between."""
        if (found := self._episode()) is None:
            return None
        return found, self._client.call("plan", episode=found["id"], remediation=None)

    def _explained(self) -> str:
        """Return how the newest window stands against the fault's fingerprint, for a person who asks why not."""
        with contextlib.suppress(UnveilError):
            held = self._client.call("explain", fingerprint=self.fault.fingerprint, entity=self.fault.entity)
            return "\n".join(f"{each['name']}: {each['answer']} {each['value']} {each['reason']}"
                             for match in held for each in match["clauses"])  # fmt: skip
        return ""

    def _ended(self, run: str, *, but: str = "") -> str | None:
        state = str(self._client.call("run", id=run)["run"]["steps"][-1]["state"])
        return None if state in BUSY or state == but else state

    def _called(self, plan: dict[str, Any], *, check: bool) -> list[dict[str, Any]]:
        """Call the modules of a plan's playbook with what the playbook gives them; return their answers."""
        begun = time.monotonic()
        given = {**plan["variables"], "unveil_settings": wanted_settings(plan)}
        answers = []
        for task in yaml.load(Path(plan["playbook"]).read_text(), yaml.CSafeLoader)[0]["tasks"]:
            for name in task:
                if name.startswith("unveil_"):
                    arguments = {key: filled(value, given) for key, value in task[name].items()}
                    answers.append({"module": name, **self._modules.call(name, arguments, check=check)})
        seconds = round(time.monotonic() - begun, 1)
        say(event="step", what=f"{self.name}: modules called, check={check}", seconds=seconds)
        return answers

    def _by_playbook(self, run: dict[str, Any]) -> None:
        """Approve, apply, verify and roll back as an operator does it; the watcher and ansible-playbook act."""
        told, applied_s = self.told, time.monotonic()
        with PLAYING:
            for order in ("approve", "apply"):  # refused while the newest window does not tell if it still matches
                given = partial(self._client.call, order, id=run["id"], hash=run["plan"]["hash"])
                self.wait(f"taken: {order}", lambda given=given: given() or True, seconds=240)
            told["ended"] = self.wait("applied and verified", lambda: self._ended(run["id"]), seconds=300)
        story = self._client.call("run", id=run["id"])["run"]["steps"]
        told["steps"] = [f"{each['state']}: {each['cause']} {each['detail']}" for each in story]
        self._applied(run, since=applied_s)
        self._client.call("rollback", id=run["id"])
        told["rolled_back"] = self.wait("rolled back", lambda: self._ended(run["id"], but="kept"), seconds=120)

    def _by_modules(self, run: dict[str, Any]) -> None:
        """Apply with the playbook's modules, see the episode clear, and put back with the watcher's settings code."""
        told, applied_s = self.told, time.monotonic()
        settings = Settings()
        saved = {address: settings.read(address) for address in told["addresses"]}
        told["applied"] = self._called(run["plan"], check=False)
        written = {address: settings.read(address) for address in told["addresses"]}
        self.wait("the episode clears", lambda: self._episode() is None, seconds=240)
        told["ended"] = "cleared"
        self._applied(run, since=applied_s)
        told["rolled_back"] = [str(each.outcome) for each in settings.restore(saved, written)]
        self._client.call("cancel", id=run["id"])

    def _applied(self, run: dict[str, Any], *, since: float) -> None:
        """Note what an apply did, and what a second one does."""
        told, look = self.told, self.fault.look
        told["after"] = look(self._patient)
        told["settings_after"] = contents(told["addresses"])
        told["alive"] = self._patient.alive()
        late = [each["late"] for each in self._patient.beats() if each["at"] >= since]
        told["worst_stall_s"] = max(late, default=None)
        told["second"] = self._called(run["plan"], check=False)
        told["after_second"] = look(self._patient)


def furnish() -> None:
    """Set the guest up: controllers, huge pages on request as most distributions ship them, and a NIC that is up."""
    (CGROUPS / "cgroup.subtree_control").write_text("+cpu +cpuset +memory +io")
    THP.write_text("madvise")
    for words in ("addr add 10.0.2.15/24 dev eth0", "link set eth0 up"):
        subprocess.run(["ip", *words.split()], check=True)


def main(names: list[str]) -> None:
    """Go through the faults, all at once."""
    say(event="up", seconds=float(Path("/proc/uptime").read_text().split()[0]), kernel=os.uname().release)
    furnish()
    nodes = [path.name for path in sorted(Path("/sys/devices/system/node").glob("node[0-9]*"))]
    nic = Path("/sys/class/net/eth0/device").resolve().parent  # a virtio device has its node one up
    say(event="shape", nodes=nodes, nic_node=int((nic / "numa_node").read_text()))
    watch, modules = Watch(), Modules()
    try:
        treatments = [Treatment(fault, watch, modules) for fault in FAULTS if not names or fault.name in names]
        for each in treatments:
            each.start()
        for each in treatments:
            each.join()
        with contextlib.suppress(UnveilError):
            problems = Client(STATE / "control.sock").call("status").get("problems")
            say(event="watched", problems=problems, cpu_s=watch.cpu_s(), log=LOG.read_text()[-3000:])
    finally:
        modules.close()
        watch.close()
    say(event="end")


if __name__ == "__main__":
    try:
        asked = re.search(r"unveil\.faults=(\S+)", Path("/proc/cmdline").read_text())
        main(asked[1].split(",") if asked else [])
    except Exception as error:
        say(event="broken", error=f"{type(error).__name__}: {error}")
        raise
