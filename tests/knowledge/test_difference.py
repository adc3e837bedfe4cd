"""Two whole knowledge bases: what is new, gone, renamed, edited, and what is only layout."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from unveil.errors import UnreadableError
from unveil.knowledge.difference import compare, read_side

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FINGERPRINT = "fingerprints/cpu/quota_throttling.yml"
TESTS = "fingerprints/cpu/quota_throttling.test.yml"
POWER = "fingerprints/gpu/power_limit_low.yml"


@pytest.fixture
def differ(kb: Path, tmp_path: Path) -> Callable[..., list[str]]:
    """Return a function that edits a copy and says what is different in it."""
    after = tmp_path / "after"
    shutil.copytree(kb, after)

    def tell(*edits: tuple[str, str, str]) -> list[str]:
        for file, old, new in edits:
            text = (after / file).read_text()
            assert old in text
            (after / file).write_text(text.replace(old, new, 1))
        changes = compare(read_side(kb, "before"), read_side(after, "after"))
        return [f"{each.effect} {each.kind} {each.name}: {each.what}" for each in changes]

    return tell


def test_a_copy_has_no_differences(differ: Callable[..., list[str]]) -> None:
    assert differ() == []


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        ((FINGERPRINT, "gte: 0.2", "gte: 0.3"),
         ("tightened fingerprint quota_throttling: clause throttled: "
          "cpu.cgroup_throttled_share.rate gte 0.2 → cpu.cgroup_throttled_share.rate gte 0.3")),
        ((FINGERPRINT, "owner: platform", "owner: platform # the night shift"),
         "text fingerprint quota_throttling: comments or layout"),
        ((TESTS, "cpu.idle.rate: 0.5x10", "cpu.idle.rate: 0.6x10"),
         "changed tests quota_throttling: case: throttled in four of ten periods"),
        ((TESTS, "name: it has to hold", "name: it must hold"),
         "added tests quota_throttling: case: it must hold for six seconds"),
        ((TESTS, "apiVersion", "# nothing\napiVersion"), "text tests quota_throttling: comments or layout"),
        (("playbooks/raise_quota/apply.yml", "Say for whom", "Tell for whom"),
         "changed remediation raise_quota: apply.yml was edited"),
        (("playbooks/raise_quota/remediation.yml", "title:", "# x\ntitle:"),
         "text remediation raise_quota: comments or layout"),
        (("playbooks/modules/unveil_setting.py", "#", "##"),
         "changed module unveil_setting: was edited: it runs in every fix that uses it"),
        (("inventory/values.yml", "quota_share: 1", "quota_share: 2"), "changed value quota_share: 1 → 2"),
        (("inventory/values.yml", "quota_share: 1", "quota_share: 1, other: 3"), "added value other: None → 3"),
        (("inventory/profiles.yml", "default: observe", "default: manual"),
         "risk profiles default: default observe → manual"),
        (("inventory/profiles.yml", "mode: approve", "mode: manual"),
         "tightened profiles pilot: mode approve → manual"),
        (("inventory/profiles.yml", '["gpu-*"]', '["*"]'), "changed profiles pilot: hosts ['gpu-*'] → ['*']"),
        (("inventory/filters/night_cap.yml", "2999-03-31", "2999-04-30"),
         "changed filter night_cap: expires 2999-03-31 → 2999-04-30"),
        (("inventory/filters/night_cap.yml", "see change 4711", "see change 4712"),
         "text filter night_cap: reason edited"),
    ],
)  # fmt: skip
def test_each_edit_is_told(differ: Callable[..., list[str]], edit: tuple[str, str, str], told: str) -> None:
    assert told in differ(edit)


def test_what_is_new_and_what_is_gone_is_told_first_what_is_a_risk(
    kb: Path, tmp_path: Path, differ: Callable[..., list[str]]
) -> None:
    after = tmp_path / "after"
    for file in ("gpu/power_limit_low.yml", "gpu/power_limit_low.test.yml"):
        (after / "fingerprints" / file).unlink()
    (after / "inventory/filters/night_cap.yml").unlink()
    assert differ() == [
        "loosened filter night_cap: is gone",
        "removed fingerprint power_limit_low: is gone",
        "removed tests power_limit_low: 3 cases are gone",
    ]
    changes = compare(read_side(after, "after"), read_side(kb, "before"))
    assert [f"{each.effect} {each.kind} {each.name}: {each.what}" for each in changes] == [
        "tightened filter night_cap: is new: no_remediation until 2999-03-31",
        "added fingerprint power_limit_low: is new: status experimental, per gpu",
        "added tests power_limit_low: 3 cases are new",
    ]


def test_a_new_fix_says_what_it_changes(kb: Path, tmp_path: Path, differ: Callable[..., list[str]]) -> None:
    shutil.rmtree(kb / "playbooks/raise_quota")
    profiles = (kb / "inventory/profiles.yml").read_text()
    (kb / "inventory/profiles.yml").write_text(profiles.replace("{raise_quota: auto}", "{}"))
    text = (kb / FINGERPRINT).read_text()
    (kb / FINGERPRINT).write_text(text.replace("remediations: [raise_quota]\n", ""))
    tests = (kb / TESTS).read_text()
    begin, end = tests.index("    plan:"), tests.index("  - name: it has to hold")
    (kb / TESTS).write_text(tests[:begin] + tests[end:])
    told = differ()
    assert told[:2] == [
        "risk fingerprint quota_throttling: fix raise_quota is new",
        "risk remediation raise_quota: is new: status stable, mode auto, changes {{ quota_setting }}",
    ]


def test_a_rename_is_known_by_the_id(tmp_path: Path, differ: Callable[..., list[str]]) -> None:
    after = tmp_path / "after"
    for end in (".yml", ".test.yml"):
        path = after / f"fingerprints/gpu/power_limit_low{end}"
        path.rename(path.with_name(f"power_cap_low{end}"))
    told = differ(
        ("fingerprints/gpu/power_cap_low.yml", "name: power_limit_low", "name: power_cap_low"),
        ("fingerprints/gpu/power_cap_low.test.yml", "power_limit_low", "power_cap_low"),
        ("inventory/filters/night_cap.yml", "[power_limit_low]", "[power_cap_low]"),
    )
    assert "changed fingerprint power_cap_low: name power_limit_low → power_cap_low" in told
    assert not [line for line in told if "fingerprint" in line and "is gone" in line]


def test_a_side_that_cannot_be_loaded_is_named(kb: Path) -> None:
    (kb / POWER).write_text("kind: [")
    with pytest.raises(UnreadableError, match=r"main cannot be loaded: fingerprints/gpu/power_limit_low\.yml:2:"):
        read_side(kb, "main")
