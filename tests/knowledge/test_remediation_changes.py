"""Whether a changed remediation may do more to a host, or with less care: each key of the format, both ways."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unveil.knowledge.loading import load
from unveil.knowledge.remediation_changes import remediation_changes

if TYPE_CHECKING:
    from pathlib import Path

FILE = "playbooks/raise_quota/remediation.yml"


def told(kb: Path, old: str, new: str) -> list[tuple[str, str]]:
    before = load(kb).knowledge
    text = (kb / FILE).read_text()
    assert old in text
    (kb / FILE).write_text(text.replace(old, new, 1))
    after = load(kb)
    assert before is not None
    assert after.knowledge is not None, after.errors
    both = before.remediation("raise_quota"), after.knowledge.remediation("raise_quota")
    assert both[0] is not None
    assert both[1] is not None
    back = [(str(effect), what) for effect, what in remediation_changes(both[1], both[0])]
    forth = [(str(effect), what) for effect, what in remediation_changes(*both)]
    assert len(back) == len(forth)
    assert not list(remediation_changes(both[0], both[0]))
    return forth


@pytest.mark.parametrize(
    ("old", "new", "effect", "what"),
    [
        ("mode: auto", "mode: manual", "tightened", "mode auto → manual"),
        ("impact: low", "impact: high", "risk", "impact low → high"),
        ("mode: auto\nrisk: {impact: low, reversible: true", "mode: auto\nrisk: {impact: medium, reversible: true",
         "risk", "impact low → medium"),
        ("max_hosts: 5", "max_hosts: 9", "loosened", "max_hosts 5 → 9"),
        ("cooldown: 30m", "cooldown: 10m", "loosened", "cooldown 1800 s → 600 s"),
        ("max_attempts: 2", "max_attempts: 1", "tightened", "max_attempts 2 → 1"),
        ("within: 24h", "within: 1h", "loosened", "attempts counted within 86400 s → 3600 s"),
        ("[still_matching, no_silence]", "[still_matching]", "loosened", "precondition no_silence is gone"),
        (", timeout, operator]", ", operator]", "risk", "rollback on timeout is gone"),
        ("available_for: 24h", "available_for: 48h", "tightened", "rollback available for 86400 s → 172800 s"),
        ("fingerprint_clear_for: 6s", "fingerprint_clear_for: 3s", "loosened",
         "verify.fingerprint_clear_for 6 s → 3 s"),
        ("direction: down, effect: 0.5", "direction: down, effect: 0.1", "loosened",
         "verify.improve cpu.cgroup_throttled_share.rate down 0.5 → 0.1"),
        ("direction: up, effect: 0.5", "direction: up, effect: 0.9", "loosened",
         "verify.must_not_worsen cpu.psi_some.rate up 0.5 → 0.9"),
        ("  must_not_worsen: [{feature: cpu.psi_some.rate, direction: up, effect: 0.5}]\n", "", "loosened",
         "verify.must_not_worsen cpu.psi_some.rate up is gone"),
        ("direction: up, effect: 0.5", "direction: up, effect: 0.5, optional: true", "loosened",
         "verify.must_not_worsen cpu.psi_some.rate up is optional"),
        ("direction: up, effect: 0.5", "direction: up, effect: 0.5, after: 9s", "changed",
         "verify.must_not_worsen cpu.psi_some.rate up after 0 s → 9 s"),
        ("min: 0, max: 4", "min: 0, max: 8", "loosened", "variable share: maximum 4 → 8"),
        ("min: 0, max: 4", "max: 4", "loosened", "variable share: minimum 0 → unbounded"),
        ("[A-Za-z0-9_./:-]*$", "[A-Za-z0-9_./-]*$", "changed",
         "variable cgroup: pattern ^/[A-Za-z0-9_./:-]*$ → ^/[A-Za-z0-9_./-]*$"),
        ("'-1' if", "'-2' if", "changed",
         ("{{ quota_setting }} becomes \"{{ '-2' if share >= 1 else '50000' }}\", "
          "was \"{{ '-1' if share >= 1 else '50000' }}\"")),
        ("timeout: 60s", "timeout: 90s", "loosened", "timeout 60 s → 90 s"),
        ("title: Lift the CPU", "title: Raise the CPU", "text", "title edited"),
    ],
)  # fmt: skip
def test_each_edit_is_told_with_its_effect(kb: Path, old: str, new: str, effect: str, what: str) -> None:
    assert told(kb, old, new) == [(effect, what)]


def test_a_setting_that_comes_is_a_risk(kb: Path) -> None:
    more = 'settings:\n  - {address: "sysctl:vm.swappiness", value: \'1\', coupled: ["sysctl:vm.x"]}\n'
    assert told(kb, "settings:\n", more) == [("risk", "changes sysctl:vm.swappiness, too")]


def test_what_gets_worse_for_the_workload_is_a_risk(kb: Path) -> None:
    risk = "reversible: true, interrupts_workload: false, requires_reboot: false"
    worse = "reversible: false, interrupts_workload: true, requires_reboot: true"
    assert told(kb, f"mode: auto\nrisk: {{impact: low, {risk}}}", f"mode: approve\nrisk: {{impact: low, {worse}}}") == [
        ("tightened", "mode auto → approve"),
        ("risk", "cannot be undone now"),
        ("risk", "interrupts the workload now"),
        ("risk", "needs a reboot now"),
    ]
