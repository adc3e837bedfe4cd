"""Mend what has only one right answer, and nothing else of the file."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

import pytest

from unveil.knowledge.fixing import fix
from unveil.knowledge.linting import lint

if TYPE_CHECKING:
    from pathlib import Path

FINGERPRINT = "fingerprints/cpu/quota_throttling.yml"
PLAYBOOK = "playbooks/raise_quota/apply.yml"
REMEDIATION = "playbooks/raise_quota/remediation.yml"


def mended(kb: Path, file: str, old: str, new: str) -> tuple[list[str], list[str], list[str]]:
    """Return what was done, the lines that went and came, and what is still found."""
    path = kb / file
    text = path.read_bytes().decode()
    assert old in text
    path.write_bytes(text.replace(old, new, 1).encode())
    broken = path.read_bytes().decode()
    done = [f"{each.problem.check}: {each.what}" for each in fix(lint(kb, cached=False))]
    delta = difflib.ndiff(broken.split("\n"), path.read_bytes().decode().split("\n"))
    return done, [line for line in delta if line[0] in "+-"], [each.check for each in lint(kb, cached=False)]


@pytest.mark.parametrize(
    ("file", "old", "new", "done", "lines"),
    [
        (FINGERPRINT, 'date: "2026-11-29"', "date: 2026-11-29   # a day", ['K003: 2026-11-29 is written "2026-11-29"'],
         ["- date: 2026-11-29   # a day", '+ date: "2026-11-29"   # a day']),
        (FINGERPRINT, "gte: 0.3}", "gte: 0.3, optional: yes}", ["K003: yes is written true"],
         ["-     host_idle: {feature: cpu.idle.rate, gte: 0.3, optional: yes}",
          "+     host_idle: {feature: cpu.idle.rate, gte: 0.3, optional: true}"]),
        (FINGERPRINT, "owner: platform", "owner: on", ['K003: on is written "on"'], ["- owner: on", '+ owner: "on"']),
        (REMEDIATION, "reversible: true", "reversible: On", ["K003: On is written true"], []),
        (FINGERPRINT, "owner: platform", "owner: 12:30", ['K003: 12:30 is written "12:30"'], []),
        (PLAYBOOK, "  gather_facts: false\n", "", ["K601: gather_facts: false"], ["+   gather_facts: false"]),
        (PLAYBOOK, "gather_facts: false", "gather_facts: true  # why not", ["K601: gather_facts: false"],
         ["-   gather_facts: true  # why not", "+   gather_facts: false  # why not"]),
        (PLAYBOOK, "ansible.builtin.debug:", "debug:", ["K607: ansible.builtin.debug"],
         ["-       debug:", "+       ansible.builtin.debug:"]),
        (FINGERPRINT, "owner: platform", "owner: platform  # unveil-ignore: K110 nobody",
         ["K013: the ignore comment is gone"],
         ["- owner: platform  # unveil-ignore: K110 nobody", "+ owner: platform"]),
        (FINGERPRINT, "owner: platform", "# unveil-ignore: K110 nobody\nowner: platform",
         ["K013: the ignore comment is gone"], ["- # unveil-ignore: K110 nobody"]),
    ],
)  # fmt: skip
def test_a_finding_with_one_right_answer_is_mended_in_place(
    kb: Path, file: str, old: str, new: str, done: list[str], lines: list[str]
) -> None:
    told, changed, left = mended(kb, file, old, new)
    assert told == done
    assert not lines or [line for line in changed if line[0] != "?"] == lines
    assert left == []


@pytest.mark.parametrize(
    ("old", "new"),
    [("gte: 0.3}", "gte: 012}"), ("gte: 0.3}", "gte: 1_000}"), ("gte: 0.3}", "gte: .nan}"), ("gte: 0.3}", "get: 0.3}"),
     ("gte: 0.3}", "gte: 30}")],
)  # fmt: skip
def test_what_could_be_meant_otherwise_is_left_to_the_person(kb: Path, old: str, new: str) -> None:
    done, changed, left = mended(kb, FINGERPRINT, old, new)
    assert (done, changed) == ([], [])
    assert left


@pytest.mark.parametrize("id_", ["", "id: 1234-5\n", 'id: "7c0a8d0e-6b1f-1c58-9a54-2f0f5a1f3b11"  # version one\n'])
def test_a_missing_or_wrong_id_becomes_a_new_one(kb: Path, id_: str) -> None:
    line = next(line for line in (kb / FINGERPRINT).read_text().splitlines() if line.startswith("id: "))
    done, _, left = mended(kb, FINGERPRINT, f"{line}\n", id_)
    assert [each.partition(": ")[0] for each in done] == ["K101"]
    assert left == []
    assert ("# version one" in (kb / FINGERPRINT).read_text()) is ("version" in id_)


def test_several_in_one_file_are_mended_at_once_and_line_ends_and_rights_stay(kb: Path) -> None:
    path = kb / FINGERPRINT
    text = path.read_text().replace('"2026-11-29"', "2026-11-29").replace("gte: 0.3}", "gte: 0.3, optional: no}")
    path.write_bytes(text.replace("\n", "\r\n").encode())
    path.chmod(0o640)
    assert len(fix(lint(kb, cached=False))) == 2
    assert path.read_bytes().count(b"\r\n") == path.read_bytes().count(b"\n") == text.count("\n")
    assert path.stat().st_mode & 0o7777 == 0o640
    assert lint(kb, cached=False) == ()
    assert not list(path.parent.glob(".*")), "nothing is left beside it"


def test_a_link_stays_a_link(kb: Path) -> None:
    path = kb / FINGERPRINT
    path.rename(kb / "fingerprints/cpu/.real.yml")
    path.symlink_to(".real.yml")
    path.write_text(path.read_text().replace('"2026-11-29"', "2026-11-29"))
    assert len(fix(lint(kb, cached=False))) == 1
    assert path.is_symlink()
    assert '"2026-11-29"' in (kb / "fingerprints/cpu/.real.yml").read_text()
