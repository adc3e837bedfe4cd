from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from unveil.errors import BadInputError, RefusedError
from unveil.records.codec import decode, encode
from unveil.records.fact import Fact, FactTable
from unveil.records.remediation import Mode, Variable, WantedSetting
from unveil.records.run import Plan
from unveil.remediation.planner import digest, drifted, needs_change

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.records.match import Episode


def test_a_plan_names_every_setting_with_what_is_there_and_what_shall_be(drawn: Callable[..., Plan]) -> None:
    plan = drawn()
    assert [(each.address, each.before, each.after, each.coupled) for each in plan.changes] == [
        ("irq:24/smp_affinity_list", "0-3", "4-7", False),
        ("irq:25/smp_affinity_list", "4-7", "4-7", False),
        ("sysctl:vm.dirty_ratio", "20", "30", False),
        ("sysctl:vm.dirty_bytes", "0", None, True),
    ]
    assert plan.variables["irqs"] == ("24", "25")
    assert plan.untrusted == ("tenant",)
    assert plan.mode == "auto"


def test_the_baseline_is_of_the_nearest_entity_that_has_the_feature(drawn: Callable[..., Plan]) -> None:
    assert drawn().baseline == {"network.irq_remote_share.rate[nic:eth0]": 0.8, "cpu.idle.rate": 0.6}


def test_one_hash_is_one_deed(drawn: Callable[..., Plan], episode: Episode) -> None:
    plan = drawn()
    assert plan.hash == digest(plan)
    assert drawn().hash == plan.hash
    assert drawn(episode=replace(episode, id="e000000000002")).hash == plan.hash, "another episode, the same deed"
    assert drawn(ceiling=Mode.MANUAL).hash == plan.hash
    assert drawn(site={"share": 0.4}).hash != plan.hash
    assert drawn(revision="abd").hash != plan.hash
    assert drawn(timeout_s=61.0).hash != plan.hash
    assert decode(Plan, encode(plan)) == plan, "it survives the journal …"
    assert digest(decode(Plan, encode(plan))) == plan.hash, "… and so does its hash"


def test_the_profile_can_only_lower_the_mode(drawn: Callable[..., Plan]) -> None:
    assert drawn(ceiling=Mode.APPROVE).mode == "approve"
    assert drawn(mode=Mode.MANUAL, ceiling=Mode.AUTO).mode == "manual"


def test_nothing_to_do_is_seen(drawn: Callable[..., Plan], facts: FactTable) -> None:
    assert needs_change(drawn())
    there = {**facts.settings, "irq:24/smp_affinity_list": "4,5,6,7", "sysctl:vm.dirty_ratio": "30\n"}
    done = drawn(facts=FactTable(facts=facts.facts, settings=there))
    assert not needs_change(done), "the same in other words is the same"
    assert needs_change(done, dry_run_changes=1), "a dry run knows of more than settings"
    assert not needs_change(drawn(), dry_run_changes=0)
    unknown = drawn(settings=(WantedSetting(address="sysctl:vm.dirty_ratio", value=None),))
    assert needs_change(unknown), "only the playbook knows"


def test_a_plan_is_stale_once_a_setting_moved(drawn: Callable[..., Plan], facts: FactTable) -> None:
    plan = drawn()
    assert drifted(plan, facts.settings.get) == ()
    assert drifted(plan, {**facts.settings, "sysctl:vm.dirty_ratio": "20\n"}.get) == ()
    moved = {**facts.settings, "sysctl:vm.dirty_bytes": "4096"}
    del moved["irq:24/smp_affinity_list"]
    assert drifted(plan, moved.get) == ("irq:24/smp_affinity_list", "sysctl:vm.dirty_bytes")


def test_what_cannot_be_read_is_not_changed(drawn: Callable[..., Plan]) -> None:
    with pytest.raises(RefusedError, match="irq:24/smp_affinity_list cannot be read"):
        drawn(read=lambda _address: None)
    plan = drawn(
        read={"irq:24/smp_affinity_list": "0", "irq:25/smp_affinity_list": "0", "sysctl:vm.dirty_ratio": "1"}.get
    )
    assert plan.changes[-1].before is None
    assert plan.changes[-1].reason, "a coupled one may be absent, and says so"


def test_templates_see_no_text_that_a_tenant_chose_or_that_has_no_pattern(drawn: Callable[..., Plan]) -> None:
    for setting in (
        WantedSetting(address="cgroup:/{{ tenant }}/cpu.max", value="max"),
        WantedSetting(address="sysctl:vm.dirty_ratio", value="{{ tenant }}"),
    ):
        with pytest.raises(BadInputError, match="uses tenant"):
            drawn(settings=(setting,))
    loose = (Variable(name="path", type="string", default="vm.dirty_ratio"),)
    with pytest.raises(BadInputError, match="uses path"):
        drawn(variables=loose, settings=(WantedSetting(address="sysctl:{{ path }}", value="1"),))


def test_hostile_names_do_not_get_into_an_address(drawn: Callable[..., Plan], facts: FactTable) -> None:
    pods = (Variable(name="pod", type="string", origin="fact.cpu.cgroup_name", pattern=".*"),)
    setting = (WantedSetting(address="cgroup:/{{ pod }}/cpu.max", value="max"),)
    for name in ("../../etc", "a\nb", "{{ 7 * 7 }}", "x" * 5000):
        table = FactTable(
            facts=(*facts.facts, Fact(name="cpu.cgroup_name", value=name)),
            settings={**facts.settings, "cgroup:/{{ 7 * 7 }}/cpu.max": "1"},
        )
        try:
            plan = drawn(variables=pods, settings=setting, facts=table)
        except (BadInputError, RefusedError):
            continue
        assert plan.changes[0].address == f"cgroup:/{name}/cpu.max", "never rendered twice"


def test_odd_declarations_are_told(drawn: Callable[..., Plan], episode: Episode, facts: FactTable) -> None:
    with pytest.raises(BadInputError, match="does not remediate"):
        drawn(episode=replace(episode, fingerprint="other"))
    with pytest.raises(BadInputError, match="two values"):
        drawn(settings=tuple(WantedSetting(address="sysctl:vm.dirty_ratio", value=each) for each in ("1", "2")))
    with pytest.raises(BadInputError, match="no list"):
        drawn(settings=(WantedSetting(address="irq:{{ item }}/smp_affinity", value="1", for_each="nic"),))
    with pytest.raises(BadInputError, match="cannot be printed"):
        drawn(settings=(WantedSetting(address="sysctl:vm.dirty_ratio", value="1\n2"),))
    empty = FactTable(
        facts=(Fact(name="network.nic_irqs", value=()), Fact(name="network.nic_local_cpus", value="1")),
        settings=facts.settings,
    )
    with pytest.raises(RefusedError, match="nothing to change"):
        drawn(facts=empty, settings=(WantedSetting(address="irq:{{ item }}/smp_affinity", value="1", for_each="irqs"),))
