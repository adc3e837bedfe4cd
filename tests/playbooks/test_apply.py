"""Each remediation the whole way, on a tree that stands for a host: planned, tried, applied, applied again, undone."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from unveil.execution import snapshot
from unveil.execution.request import Status
from unveil.execution.settings import Outcome, Settings
from unveil.execution.supervisor import RunSupervisor
from unveil.knowledge.loading import load
from unveil.records.entity import HOST, Entity, EntityKind
from unveil.records.fact import Fact, FactTable
from unveil.records.match import Answer, Episode, EpisodeState, Match
from unveil.remediation import lifecycle, planner

if TYPE_CHECKING:
    from unveil.execution.request import RunResult
    from unveil.execution.supervisor import ChildRun

ROOT = Path(__file__).parents[2]
NIC, POD = Entity(EntityKind.NIC, "eth0"), Entity(EntityKind.CGROUP, "/pod1")
HOSTILE = "web\x1b[2J {{ lookup('pipe', 'id') }}; reboot"
FACTS = FactTable(
    facts=(
        Fact(name="network.nic_irqs_movable", entity=NIC, value=("24", "25")),
        Fact(name="network.nic_local_cpus", entity=NIC, value="2-3"),
        Fact(name="cpu.cgroup_quota", entity=POD, value=0.5, setting="cgroup:/pod1/cpu.max"),
        Fact(name="cpu.cgroup_name", entity=POD, value=HOSTILE),
        Fact(name="cpu.cgroup_weight", entity=POD, value=100.0, setting="cgroup:/pod1/cpu.weight"),
        Fact(name="cpu.steered", entity=HOST, value=("0", "1")),
        Fact(name="storage.cgroup_io_device", entity=POD, value="254:0", setting="cgroup:/pod1/io.max"),
        Fact(name="storage.cgroup_read_limit", entity=POD, value=1048576.0, setting="cgroup:/pod1/io.max"),
        Fact(name="interconnect.cgroup_home_node", entity=POD, value=1.0),
        Fact(name="interconnect.cgroup_mems", entity=POD, value="0-1", setting="cgroup:/pod1/cpuset.mems"),
    )
)

# remediation, entity, files as they shall be after apply
CASES: list[tuple[str, Entity, dict[str, str]]] = [
    ("enable_huge_pages", POD, {"sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n"}),
    ("pin_nic_irqs_local", NIC, {f"proc/irq/{irq}/smp_affinity_list": "2-3\n" for irq in (24, 25)}),
    ("raise_cpu_quota", POD, {"sys/fs/cgroup/pod1/cpu.max": "max\n"}),
    ("relax_dirty_limits", HOST, {"proc/sys/vm/dirty_ratio": "20\n", "proc/sys/vm/dirty_background_ratio": "10\n"}),
    ("migrate_memory_home", POD, {}),
    ("bind_memory_home", POD, {"sys/fs/cgroup/pod1/cpuset.mems": "1\n"}),
    ("raise_cpu_weight", POD, {"sys/fs/cgroup/pod1/cpu.weight": "400\n"}),
    ("raise_io_limit", POD, {"sys/fs/cgroup/pod1/io.max": "254:0 rbps=4194304 wbps=max riops=max wiops=max\n"}),
    (
        "set_performance_governor",
        HOST,
        {f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor": "performance\n" for cpu in (0, 1)},
    ),
]


def episode_of(fingerprint: str, entity: Entity) -> Episode:
    bindings = {} if entity is HOST else {str(entity.kind): entity.key}
    match = Match(
        window=1, wall_s=1.0, fingerprint=fingerprint, entity=entity, answer=Answer.MATCH, clauses=(), bindings=bindings
    )
    return Episode(
        id="e000000000001",
        fingerprint=fingerprint,
        revision="1",
        entity=entity,
        state=EpisodeState.FIRING,
        started_s=0.0,
        fired_s=1.0,
        last_s=1.0,
        cleared_s=None,
        windows=1,
        last=match,
    )


def plan_of(name: str, entity: Entity, *, facts: FactTable, host: Settings) -> Any:
    found = load(ROOT).knowledge
    assert found is not None
    remediation = next(each for each in found.remediations if each.name == name)
    episode = episode_of(remediation.remediates[0], entity)
    return planner.plan(remediation, episode, facts=facts, site={}, read=host.peek, baseline=lambda *_: None, now_s=1.0)


def finish(child: ChildRun) -> RunResult:
    end = time.monotonic() + 90
    while (result := child.poll().result) is None:
        assert time.monotonic() < end
        time.sleep(0.05)
    if child._process is not None:
        child._process.wait(60)
    return result


def content(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.ansible
@pytest.mark.parametrize(("name", "entity", "after"), CASES, ids=[case[0] for case in CASES])
def test_planned_tried_applied_and_undone(
    name: str, entity: Entity, after: dict[str, str], host_tree: Path, tmp_path: Path
) -> None:
    host = Settings(host_tree)
    supervisor = RunSupervisor(tmp_path / "runs", ROOT / "playbooks/modules", host_root=str(host_tree))
    before = content(host_tree)
    plan = plan_of(name, entity, facts=FACTS, host=host)
    assert content(host_tree) == before, "planning changes nothing"

    dry = finish(supervisor.dry_run(plan))
    assert dry.status is Status.SUCCESSFUL, dry.message
    assert (dry.changed > 0) is bool(after)
    assert planner.needs_change(plan, dry_run_changes=dry.changed) is bool(after)
    assert content(host_tree) == before, "a dry run changes nothing"

    run = lifecycle.new_run("r000000000001", plan, "uid:0", 1.0)
    saved = snapshot.take(plan, host.peek)
    result = finish(supervisor.start(run))
    assert (result.status, result.survivors) == (Status.SUCCESSFUL, 0), result.message
    assert content(host_tree) == {**before, **{path: text.encode() for path, text in after.items()}}, "and nothing else"
    assert snapshot.missed(plan, host.peek) == ()
    assert bool(snapshot.changed(saved, host.peek)) is bool(after)
    written = snapshot.written(plan, saved, host.peek)
    assert set(written) == set(saved)

    again = finish(supervisor.start(lifecycle.new_run("r000000000002", plan, "uid:0", 1.0)))
    assert (again.status, again.changed) == (Status.SUCCESSFUL, 0)

    assert all(each.outcome is Outcome.RESTORED for each in host.restore(saved, written))
    assert content(host_tree) == before, "byte for byte"


@pytest.mark.gcc
@pytest.mark.slow
@pytest.mark.ansible
def test_a_power_limit_is_restored_through_the_playbook(
    nvml: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Backend:
        """Reads and writes the stand-in's state, as the engine's own backend does the driver's."""

        def read(self, key: str, item: str) -> str:
            return f"{float(nvml.state.get('gpu0.power_limit')) / 1000:g}"

        def write(self, key: str, item: str, value: str) -> None:
            nvml.state.set_gpu(0, power_limit=round(float(value) * 1000))

    nvml.state.set_gpu(0, power_limit=350000, power_default=700000)
    monkeypatch.setenv("UNVEIL_NVML_LIBRARY", nvml.env["UNVEIL_NVML_LIBRARY"])
    gpu = Entity(EntityKind.GPU, nvml.uuid(0))
    host = Settings("/", backends={"nvml": Backend()})
    facts = FactTable(facts=(Fact(name="gpu.power_default", entity=gpu, value=700.0),))
    plan = plan_of("restore_gpu_power_limit", gpu, facts=facts, host=host)
    assert [(each.before, each.after) for each in plan.changes] == [("350", "700")]
    supervisor = RunSupervisor(tmp_path / "runs", ROOT / "playbooks/modules")
    saved = snapshot.take(plan, host.peek)
    result = finish(supervisor.start(lifecycle.new_run("r000000000001", plan, "uid:0", 1.0)))
    assert result.status is Status.SUCCESSFUL, result.message
    assert float(nvml.state.get("gpu0.power_limit")) == 700000
    written = snapshot.written(plan, saved, host.peek)
    assert host.restore(saved, written)[0].outcome is Outcome.RESTORED
    assert float(nvml.state.get("gpu0.power_limit")) == 350000
