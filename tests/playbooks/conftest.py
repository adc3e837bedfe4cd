"""Our Ansible modules and playbooks: called as Ansible calls them, on a tree of plain files or on this kernel."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from unveil.knowledge.content import shipped_root
from unveil.knowledge.loading import load
from unveil.records.entity import HOST, Entity
from unveil.records.fact import Fact, FactTable
from unveil.records.match import Answer, Episode, EpisodeState, Match
from unveil.remediation import planner

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

    from unveil.records.fact import FactValue
    from unveil.records.run import Plan

OF_THE_HOST = {"network.conntrack_max": None, "network.tcp_receive_max": "sysctl:net.ipv4.tcp_rmem"}
PLAYBOOKS = Path(__file__).parents[2] / "playbooks"
AS_ANSIBLE_DOES = """
import runpy, sys, os
import ansible.module_utils
sys.argv = sys.argv[1:]
ansible.module_utils.__path__.append(os.path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture(scope="session")
def playbooks() -> Path:
    """Give the folder of the playbooks."""
    return PLAYBOOKS


@pytest.fixture
def module(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Call a module as Ansible does, in a process of its own; ``check=True`` for check mode, *within* a namespace."""

    def call(
        name: str, *, check: bool = False, env: dict[str, str] | None = None, within: str = "", **arguments: Any
    ) -> dict[str, Any]:
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({"ANSIBLE_MODULE_ARGS": {**arguments, "_ansible_check_mode": check}}))
        said = subprocess.run(
            [
                *(("ip", "netns", "exec", within) if within else ()),
                *(sys.executable, "-c", AS_ANSIBLE_DOES, PLAYBOOKS / f"modules/{name}.py", path),
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
            env={**os.environ, **(env or {})},
        )
        try:
            answer: dict[str, Any] = json.loads(said.stdout)
        except ValueError:
            raise AssertionError(f"no answer: {said.stdout} {said.stderr}") from None
        assert said.returncode == (1 if answer.get("failed") else 0)
        return answer

    return call


@pytest.fixture(scope="session")
def loaded() -> Callable[[str], ModuleType]:
    """Import a module to look at its functions."""

    @cache
    def load(name: str) -> ModuleType:
        import ansible.module_utils

        if str(PLAYBOOKS / "modules") not in ansible.module_utils.__path__:
            ansible.module_utils.__path__.append(str(PLAYBOOKS / "modules"))
        spec = importlib.util.spec_from_file_location(f"_playbook_module_{name}", PLAYBOOKS / f"modules/{name}.py")
        assert spec is not None
        assert spec.loader is not None
        found = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found)
        return found

    return load


@pytest.fixture
def host_tree(tmp_path: Path) -> Path:
    """Give a tree that stands for a host with what most kinds of remediations may change, but GPUs."""
    root = tmp_path / "host"
    for name, text in {
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
        "proc/sys/vm/dirty_ratio": "0\n",
        "proc/sys/vm/dirty_bytes": "2097152\n",
        "proc/sys/vm/dirty_background_ratio": "0\n",
        "proc/sys/vm/dirty_background_bytes": "1048576\n",
        "proc/irq/24/smp_affinity_list": "0-1\n",
        "proc/irq/25/smp_affinity_list": "1\n",
        "sys/fs/cgroup/pod1/cpu.max": "50000 100000\n",
        "sys/fs/cgroup/pod1/cpu.weight": "100\n",
        "sys/fs/cgroup/pod1/io.max": "254:0 rbps=1048576 wbps=max riops=max wiops=max\n",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
        "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "ondemand\n",
        "sys/fs/cgroup/pod1/cpuset.mems": "0-1\n",
        "sys/fs/cgroup/pod1/cgroup.procs": "",
        "sys/fs/cgroup/pod1/memory.stat": "anon 0\nanon_thp 0\n",
        "sys/devices/system/node/node1/meminfo": "",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def _table(entity: Entity, values: Mapping[str, FactValue]) -> FactTable:
    return FactTable(
        facts=tuple(
            Fact(name=name, entity=HOST if name in OF_THE_HOST else entity, value=value, setting=OF_THE_HOST.get(name))
            for name, value in values.items()
        )
    )


@pytest.fixture(scope="session")
def plan_of() -> Callable[..., Plan]:
    """Plan a remediation for an episode of the fingerprint that it is made for."""
    knowledge = load(shipped_root()).knowledge
    assert knowledge is not None

    def plan(
        name: str,
        entity: Entity,
        facts: FactTable | Mapping[str, FactValue],
        read: Callable[[str], str | None],
    ) -> Plan:
        remediation = knowledge.remediation(name)
        assert remediation is not None
        fingerprint = remediation.remediates[0]
        match = Match(
            window=1, wall_s=1.0, fingerprint=fingerprint, entity=entity, answer=Answer.MATCH, clauses=(),
            bindings={} if entity is HOST else {str(entity.kind): entity.key},
        )  # fmt: skip
        episode = Episode(
            id="e000000000001", fingerprint=fingerprint, revision="1", entity=entity, state=EpisodeState.FIRING,
            started_s=0.0, fired_s=1.0, last_s=1.0, cleared_s=None, windows=1, last=match,
        )  # fmt: skip
        table = facts if isinstance(facts, FactTable) else _table(entity, facts)
        return planner.plan(remediation, episode, facts=table, site={}, read=read, baseline=lambda *_: None, now_s=1.0)

    return plan


@pytest.fixture(scope="session")
def wanted() -> Callable[..., list[dict[str, str]]]:
    """Give what the playbooks of some plans hand to the module."""

    def of(*plans: Plan) -> list[dict[str, str]]:
        return [
            {"address": each.address, "value": each.after}
            for plan in plans
            for each in plan.changes
            if each.after is not None
        ]

    return of
