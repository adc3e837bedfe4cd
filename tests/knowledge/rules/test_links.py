"""What is named in one file exists in another, and both say the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unveil.knowledge.loading import load

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FINGERPRINT = "fingerprints/cpu/quota_throttling.yml"
REMEDIATION = "playbooks/raise_quota/remediation.yml"
FILTER = "inventory/filters/night_cap.yml"
PROFILES = "inventory/profiles.yml"

MISTAKES = [
    (FINGERPRINT, "remediations: [raise_quota]", "remediations: [raise_qouta]", [
        "27:16: error K401: there is no remediation 'raise_qouta' (did you mean raise_quota?)",
        ("playbooks/raise_quota/remediation.yml:4:7: warning K403: no fingerprint leads to it (name it under "
         "remediations)"),
    ]),
    (REMEDIATION, "remediates: [quota_throttling]", "remediates: [quota_throtling]", [
        ("fingerprints/cpu/quota_throttling.yml:27:16: error K402: remediation 'raise_quota' does not say that "
         "it remediates 'quota_throttling' (add it to remediates in playbooks/raise_quota/remediation.yml)"),
        "12:14: error K401: there is no fingerprint 'quota_throtling' (did you mean quota_throttling?)",
    ]),
    (FINGERPRINT, "status: test", "status: stable", [
        ("7:9: warning K707: it is called stable, and nothing proves it (a case with a recording, or metadata: {proof: "
         "FILE::TEST})"),
    ]),
    (FINGERPRINT, "status: test", 'status: stable\nmetadata: {proof: "tests/there.py::test_it"}', [
    ]),
    (FILTER, "fingerprints: [power_limit_low]", "fingerprints: [power_limit_lo]", [
        "8:16: error K401: there is no fingerprint 'power_limit_lo' (did you mean power_limit_low?)",
    ]),
    (FILTER, "2999-03-31", "2020-03-31", [
        "10:10: warning K404: the filter expired on 2020-03-31 (remove it, or renew it)",
    ]),
    (FILTER, "2999-03-31", "2999-02-30", [
        "10:10: error K005: there is no day 2999-02-30",
    ]),
    (PROFILES, "{raise_quota: auto}", "{raise_quoda: auto}", [
        "5:67: error K401: there is no remediation 'raise_quoda' (did you mean raise_quota?)",
    ]),
    (PROFILES, "default: observe",
     'default: observe\nfreezes: [{first: "2026-02-30", last: "2026-03-01", reason: x}]', [
        "4:19: error K005: there is no day 2026-02-30",
    ]),
    (PROFILES, "default: observe",
     'default: observe\nfreezes: [{first: "2026-02-03", last: "2026-02-01", reason: x}]', [
        "4:39: error K005: the freeze ends before it begins",
    ]),
    (PROFILES, "default: observe",
     ("default: observe\n"
      "roles: [{name: admin, users: [root]}, {name: admin, groups: [adm]}]\napprovals: {high: admni}"), [
        "4:46: error K005: the role admin is there twice",
        "5:19: error K401: there is no role 'admni', so nobody could approve it (did you mean admin?)",
    ]),
    (PROFILES, "default: observe", 'default: observe\nmaintenance: ["2-6"]', [
        "4:15: error K005: '2-6' is not a window (write Sat-Sun 02:00-06:00, or 22:00-04:00; times are UTC)",
    ]),
    (REMEDIATION, "from: match.cgroup", "from: match.disk", [
        "15:32: error K402: a match of quota_throttling is about a cgroup and binds no disk",
    ]),
    (REMEDIATION, "default: 1, min: 0", "min: 0", [
    ]),
    (REMEDIATION, "site.quota_share, default: 1", "site.quota_shar", [
        "17:31: error K406: the site has no value 'quota_shar' (did you mean quota_share?)",
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new", "expected"), MISTAKES)
def test_a_link_that_leads_nowhere_is_told(
    told: Callable[[str, str, str], list[str]], file: str, old: str, new: str, expected: list[str]
) -> None:
    assert told(file, old, new) == expected


def test_a_test_stands_beside_its_fingerprint(kb: Path) -> None:
    (kb / "fingerprints/cpu/quota_throttling.test.yml").rename(kb / "fingerprints/gpu/quota_throttling.test.yml")
    assert [f"{problem.check} {problem.what}" for problem in load(kb).problems] == [
        "K103 the test of 'quota_throttling' does not stand beside it"
    ]
