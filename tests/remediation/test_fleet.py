from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from unveil.errors import BadInputError, RefusedError
from unveil.records.remediation import Variable, WantedSetting
from unveil.remediation.fleet import addresses_of, batches, given_values, plan_for

if TYPE_CHECKING:
    from unveil.records.remediation import Remediation

HOSTS = tuple(f"h{number}" for number in range(10))


@pytest.mark.parametrize(
    ("serial", "sizes"),
    [
        (("1",), [1] * 10),
        (("1", "10%", "50%"), [1, 1, 5, 3]),
        (("1", "4"), [1, 4, 4, 1]),
        ((), [1, 1, 5, 3]),
        (("100%",), [10]),
    ],
)
def test_hosts_go_in_batches_and_the_last_size_repeats(serial: tuple[str, ...], sizes: list[int]) -> None:
    made = batches(HOSTS, serial)
    assert [len(batch) for batch in made] == sizes
    assert [host for batch in made for host in batch] == list(HOSTS)


@pytest.mark.parametrize("size", ["0", "-1", "x", "101%", "", "1.5", "%"])
def test_what_is_no_size_is_refused(size: str) -> None:
    with pytest.raises(BadInputError, match="no size"):
        batches(HOSTS, (size,))


@pytest.fixture
def fix(remediation: Remediation) -> Remediation:
    variables = (
        Variable(name="nic", type="string", origin="match.nic", pattern="[a-z0-9]{1,15}"),
        Variable(name="length", type="integer", origin="site.length", default=10, minimum=1, maximum=99),
    )
    settings = (WantedSetting(address="file:/sys/class/net/{{ nic }}/tx_queue_len", value="{{ length }}"),)
    return replace(remediation, variables=variables, settings=settings)


def test_what_only_a_match_could_tell_has_to_be_given(fix: Remediation) -> None:
    with pytest.raises(RefusedError, match="takes nic") as caught:
        given_values(fix, {})
    assert caught.value.hint == "give it: --set nic=…"
    with pytest.raises(BadInputError, match="no variable 'nick'"):
        given_values(fix, {"nick": "eth0"})


def test_a_host_gets_the_plan_that_a_match_would_have_drawn(fix: Remediation) -> None:
    given = given_values(fix, {"nic": "eth0"})
    assert addresses_of(given, site={"length": 20}) == ("file:/sys/class/net/eth0/tx_queue_len",)
    drawn = plan_for(given, "h1", site={"length": 20}, read=lambda _address: "5", now_s=1.0)
    assert [(change.before, change.after) for change in drawn.changes] == [("5", "20")]
    own = given_values(fix, {"nic": "eth0", "length": "30"})
    assert plan_for(own, "h1", site={"length": 20}, read=lambda _a: "5", now_s=1.0).changes[0].after == "30"


@pytest.mark.parametrize("value", ["eth0; reboot", "../../x", "{{ 7*7 }}", "", "A"])
def test_what_a_person_gives_is_checked_like_everything_else(fix: Remediation, value: str) -> None:
    with pytest.raises((RefusedError, BadInputError)):
        addresses_of(given_values(fix, {"nic": value}), site={})
