from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unveil.errors import BadInputError, RefusedError
from unveil.records.fact import Fact, FactTable
from unveil.records.remediation import Variable
from unveil.remediation.variables import companions, resolve

if TYPE_CHECKING:
    from unveil.records.match import Episode


def one(variable: Variable, episode: Episode, *, facts: FactTable | None = None, site: Any = None) -> Any:
    return resolve((variable,), episode=episode, facts=facts or FactTable(), site=site or {})[variable.name]


def test_facts_are_looked_for_at_the_entity_then_its_companions_then_the_host(
    episode: Episode, facts: FactTable
) -> None:
    assert [str(entity) for entity in companions(episode)] == ["nic:eth0", "host"]
    assert one(Variable(name="n", type="integer", origin="fact.cpu.count"), episode, facts=facts) == 8
    irqs = Variable(name="irqs", type="list", origin="fact.network.nic_irqs", pattern="[0-9]+")
    assert one(irqs, episode, facts=facts) == ("24", "25")


def test_the_address_of_a_setting_is_there_even_when_the_fact_is_absent(episode: Episode, facts: FactTable) -> None:
    quota = Variable(name="quota", type="string", origin="setting.cpu.cgroup_quota", pattern="cgroup:.*")
    assert one(quota, episode, facts=facts) == "cgroup:/pod1/cpu.max"
    with pytest.raises(RefusedError, match="no setting behind it"):
        one(replace(quota, origin="setting.cpu.count"), episode, facts=facts)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("string", 3.0, "3"),
        ("string", "x", "x"),
        ("integer", 3.0, 3),
        ("integer", "3", 3),
        ("number", "2.5", 2.5),
        ("number", 700.0, 700),
        ("boolean", True, True),
        ("boolean", "false", False),
        ("list", ("a",), ("a",)),
    ],
)
def test_values_come_in_the_type_that_is_declared(episode: Episode, kind: str, value: Any, expected: Any) -> None:
    found = one(Variable(name="v", type=kind, origin="site.v"), episode, site={"v": value})
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("string", True),
        ("string", ("a",)),
        ("integer", 3.5),
        ("integer", True),
        ("integer", "3; reboot"),
        ("number", "nan"),
        ("number", float("nan")),
        ("number", float("inf")),
        ("boolean", 1.0),
        ("boolean", "yes"),
        ("list", "a"),
    ],
)
def test_another_type_is_refused(episode: Episode, kind: str, value: Any) -> None:
    with pytest.raises(BadInputError, match=f"is no {kind}"):
        one(Variable(name="v", type=kind, origin="site.v"), episode, site={"v": value})


def test_a_pattern_must_match_the_whole_text_and_a_newline_is_no_way_around(episode: Episode) -> None:
    variable = Variable(name="nic", type="string", origin="match.nic", pattern="^[a-z0-9]+$")
    assert one(variable, episode) == "eth0"
    for hostile in ("eth0\n", "eth0; reboot", "../eth0", "{{ x }}", "eth0\x1b[2J", ""):
        bound = replace(episode, last=replace(episode.last, bindings={"nic": hostile}))
        with pytest.raises(RefusedError, match="does not match") as caught:
            one(variable, bound)
        assert caught.value.what.isprintable()


def test_bounds_and_lengths_hold(episode: Episode) -> None:
    ratio = Variable(name="ratio", type="integer", origin="site.ratio", default=20, minimum=1, maximum=60)
    assert one(ratio, episode) == 20
    with pytest.raises(BadInputError, match="is 61, not within 1 … 60"):
        one(ratio, episode, site={"ratio": 61})
    with pytest.raises(BadInputError, match="more than 4"):
        one(Variable(name="v", type="string", origin="site.v", max_length=4), episode, site={"v": "abcde"})


def test_what_is_missing_says_where_to_put_it(episode: Episode) -> None:
    with pytest.raises(BadInputError) as caught:
        one(Variable(name="v", type="string", origin="site.watts"), episode)
    assert "inventory/values.yml" in str(caught.value.hint)
    absent = FactTable(facts=(Fact(name="cpu.model", value=None, reason="hidden by the hypervisor"),))
    with pytest.raises(RefusedError, match="hidden by the hypervisor"):
        one(Variable(name="v", type="string", origin="fact.cpu.model"), episode, facts=absent)
    with pytest.raises(RefusedError, match="binds no gpu"):
        one(Variable(name="v", type="string", origin="match.gpu"), episode)


@settings(suppress_health_check=list(HealthCheck))
@given(name=st.text(max_size=300))
def test_text_of_a_tenant_is_cleaned_and_cut_and_never_keeps_a_fix_away(episode: Episode, name: str) -> None:
    facts = FactTable(facts=(Fact(name="cpu.cgroup_name", value=name),))
    variable = Variable(name="tenant", type="string", origin="fact.cpu.cgroup_name", untrusted=True, max_length=20)
    shown = one(variable, episode, facts=facts)
    assert shown.isprintable()
    assert len(shown) <= 20
    assert one(variable, episode) == ""
