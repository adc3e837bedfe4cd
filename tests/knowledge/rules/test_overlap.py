"""Fingerprints that say the same, and fixes that undo each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.knowledge.loading import load

if TYPE_CHECKING:
    from pathlib import Path

POWER = "fingerprints/gpu/power_limit_low.yml"
FIX = "playbooks/raise_quota/remediation.yml"


def told(kb: Path) -> list[str]:
    """Return the findings, those about missing tests and links left out."""
    found = [str(problem).replace(f"{kb}/", "") for problem in load(kb).problems]
    return [line for line in found if not any(check in line for check in ("K704", "K403", "K402", "K401"))]


def copy(kb: Path, file: str, other: str, *edits: tuple[str, str]) -> None:
    text = (kb / file).read_text()
    for old, new in (("2b9f4f5e", "2b9f4f5f"), ("9a7d1b2c", "9a7d1b2d"), *edits):
        text = text.replace(old, new)
    (kb / other).parent.mkdir(exist_ok=True)
    (kb / other).write_text(text)


def test_two_fingerprints_that_ask_for_the_same_are_told(kb: Path) -> None:
    edits = ("power_limit_low", "power_again"), ("board", "card"), ("gte: 0.6}", "gte: 0.6, note: why}")
    copy(kb, POWER, "fingerprints/gpu/power_again.yml", *edits, ("for: 3s", "for: 9s"))
    assert told(kb) == [f"{POWER}:12:1: warning K211: it asks for the same as power_again (one of the two is enough)"]
    copy(kb, POWER, "fingerprints/gpu/power_again.yml", *edits, ("gte: 0.6", "gte: 0.5"))
    assert told(kb) == []


def test_two_fixes_that_want_one_setting_differently_are_told(kb: Path) -> None:
    setting = (kb / FIX).read_text().partition("settings:\n")[2].partition("\n")[0]
    fixed = '  - {address: "sysctl:vm.swappiness", value: "0"}'
    (kb / FIX).write_text((kb / FIX).read_text().replace(setting, fixed))
    copy(kb, FIX, "playbooks/other_fix/remediation.yml", ("raise_quota", "other_fix"), ("of a throttled", "of some"),
         ("[quota_throttling]", "[power_limit_low]"), ('"0"', '"1"'), ("mode: auto", "mode: manual"))  # fmt: skip
    (kb / "playbooks/other_fix/apply.yml").write_text((kb / "playbooks/raise_quota/apply.yml").read_text())
    assert told(kb) == [
        (
            f"{FIX}:20:5: warning K407: sysctl:vm.swappiness: other_fix wants '1', this one '0': they can undo each "
            "other for ever (let each fingerprint ask that the other does not hold, and say so in an ignore)"
        )
    ]
    other = kb / "playbooks/other_fix/remediation.yml"
    other.write_text(other.read_text().replace("[power_limit_low]", "[quota_throttling]"))
    assert told(kb) == [], "of one fault they are alternatives"
    other.write_text(other.read_text().replace("[quota_throttling]", "[power_limit_low]").replace('"1"', '"0"'))
    assert told(kb) == []
