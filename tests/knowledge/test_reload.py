"""A real folder, a real watchdog: whole generations only, last known good kept, nothing missed and nothing repeated."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from unveil.knowledge.pack import read_pack
from unveil.knowledge.reload import CAP_S, QUIET_S, THOROUGH, Reloader, ReloadOutcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from unveil.knowledge.knowledge_base import KnowledgeBase
    from unveil.knowledge.load_child import LoadChild
    from unveil.knowledge.pack import Pack

POWER = "fingerprints/gpu/power_limit_low.yml"
WAIT_S = 60.0  # the machine may be busy; what is promised is a second


@pytest.fixture
def reloader(kb: Path, child: LoadChild) -> Iterator[Reloader]:
    reloader = Reloader(kb, child=child)
    assert reloader.start(100.0).knowledge is not None
    yield reloader
    reloader.close()


def outcome(reloader: Reloader, now_s: float = 200.0, *, within_s: float = WAIT_S) -> ReloadOutcome | None:
    """Poll as the watch loop does, until there is something."""
    until_s = time.monotonic() + within_s
    while time.monotonic() < until_s:
        if (found := reloader.poll(now_s)) is not None:
            return found
        time.sleep(0.02)
    return None


def usable(reloader: Reloader) -> KnowledgeBase:
    found = outcome(reloader)
    while found is not None and found.knowledge is None:
        found = outcome(reloader)
    assert found is not None
    assert found.knowledge is not None
    return found.knowledge


def told(reloader: Reloader, check: str) -> ReloadOutcome:
    """Wait for an outcome that names a check; before it a file may have been seen while it was written."""
    found = outcome(reloader)
    while found is not None and check not in {problem.check for problem in found.problems}:
        found = outcome(reloader)
    assert found is not None
    return found


def edit(kb: Path, old: str, new: str) -> None:
    text = (kb / POWER).read_text()
    assert old in text
    (kb / POWER).write_text(text.replace(old, new))


def threshold(base: KnowledgeBase) -> float:
    power = base.fingerprint("power_limit_low")
    assert power is not None
    return power.clauses[0].threshold  # type: ignore[union-attr]  # the first clause is about a feature


def test_an_edit_becomes_the_next_generation(kb: Path, reloader: Reloader) -> None:
    edit(kb, "gte: 0.6", "gte: 0.7")
    found = outcome(reloader)
    assert found is not None
    assert found.knowledge is not None
    assert (found.state.generation, found.state.stale_since_s, found.state.at_s) == (2, None, 200.0)
    assert threshold(found.knowledge) == 0.7
    assert reloader.state == found.state


def test_nothing_happens_when_nothing_changes(kb: Path, reloader: Reloader) -> None:
    (kb / POWER).read_text()  # reading is no change
    os.utime(kb / POWER)  # neither is a new date
    (kb / "fingerprints/gpu/.power_limit_low.yml.swp").write_text("x")
    assert outcome(reloader, within_s=1.5) is None


def test_an_error_keeps_the_old_generation_and_is_shown_until_it_is_mended(kb: Path, reloader: Reloader) -> None:
    edit(kb, "gte: 0.6", "gt: 0.6, lt: 0.8")
    found = outcome(reloader, 300.0)
    assert found is not None
    assert found.knowledge is None
    assert found.state.generation == 1
    assert found.state.stale_since_s == 300.0
    assert found.state.problems[0].startswith(f"{kb}/{POWER}:14:45: error K005: ")
    edit(kb, "gt: 0.6, lt: 0.8", "gte: '0.6'")  # another error: still stale since the first
    found = outcome(reloader, 400.0)
    assert found is not None
    assert found.state.stale_since_s == 300.0
    edit(kb, "gte: '0.6'", "gte: 0.65")
    found = outcome(reloader, 500.0)
    assert found is not None
    assert found.knowledge is not None
    assert threshold(found.knowledge) == 0.65
    assert (found.state.generation, found.state.stale_since_s, found.state.problems) == (2, None, ())


def test_undoing_a_broken_edit_ends_the_stale_state(kb: Path, reloader: Reloader) -> None:
    edit(kb, "level: low", "level: lo")
    found = outcome(reloader)
    assert found is not None
    assert found.state.stale_since_s is not None
    edit(kb, "level: lo\n", "level: low\n")
    assert usable(reloader).digest != ""
    assert reloader.state is not None
    assert reloader.state.stale_since_s is None


def test_an_atomic_save_is_seen(kb: Path, reloader: Reloader) -> None:
    beside = kb / "fingerprints/gpu/.power_limit_low.yml.new"
    beside.write_text((kb / POWER).read_text().replace("gte: 0.6", "gte: 0.71"))
    beside.rename(kb / POWER)
    assert threshold(usable(reloader)) == 0.71


def test_two_hundred_saves_in_two_seconds_end_in_the_last_one(kb: Path, reloader: Reloader) -> None:
    text = (kb / POWER).read_text()
    published, pauses, last_s = 0, 0, time.monotonic()
    began_s = last_s
    for index in range(200):
        (kb / POWER).write_text(text.replace("gte: 0.6", f"gte: 0.{index + 100}"))
        published += reloader.poll(200.0) is not None
        time.sleep(0.01)
        pauses += time.monotonic() - last_s > QUIET_S / 2  # of a machine that is busy: it may have looked quiet
        last_s = time.monotonic()
    most = 3 + pauses + (last_s - began_s) / CAP_S
    base = usable(reloader)
    while threshold(base) != 0.299:
        base = usable(reloader)
    assert published <= most  # the cap lets one through every two seconds, not one per save


def test_a_folder_that_arrives_file_by_file_is_published_once_whole(
    kb: Path, reloader: Reloader, tmp_path: Path
) -> None:
    new = tmp_path / "new"
    shutil.copytree(kb, new)
    for path in sorted(kb.rglob("*.yml")):
        path.unlink()
    power = new / POWER
    power.write_text(power.read_text().replace("gte: 0.6", "gte: 0.72"))
    for path in sorted(new.rglob("*.yml")):
        shutil.copy(path, kb / path.relative_to(new))
        time.sleep(0.03)
    base = usable(reloader)
    assert (threshold(base), len(base.fingerprints), len(base.remediations)) == (0.72, 2, 1)


def test_a_copy_that_stops_half_way_keeps_the_old_generation_and_says_what_is_missing(
    kb: Path, reloader: Reloader, tmp_path: Path
) -> None:
    shutil.copytree(kb, tmp_path / "whole")
    (kb / "playbooks/raise_quota/remediation.yml").unlink()
    edit(kb, "gte: 0.6", "gte: 0.9")  # what has arrived already is sound
    found = outcome(reloader)
    assert found is not None
    assert found.knowledge is None
    assert (found.state.generation, found.state.stale_since_s) == (1, 200.0)
    assert any("K405" in line and str(kb / "playbooks/raise_quota") in line for line in found.state.problems)
    assert any("K401" in line and "raise_quota" in line for line in found.state.problems)
    shutil.copy(tmp_path / "whole/playbooks/raise_quota/remediation.yml", kb / "playbooks/raise_quota")
    assert threshold(usable(reloader)) == 0.9


def test_a_folder_replaced_as_a_whole_is_followed(kb: Path, reloader: Reloader, tmp_path: Path) -> None:
    shutil.copytree(kb, tmp_path / "next")
    kb.rename(tmp_path / "previous")
    (tmp_path / "next").rename(kb)
    edit(kb, "gte: 0.6", "gte: 0.73")
    assert threshold(usable(reloader)) == 0.73
    edit(kb, "gte: 0.73", "gte: 0.74")  # the new folder is watched, not the old
    assert threshold(usable(reloader)) == 0.74


def test_a_deleted_folder_is_stale_and_a_new_one_taken_up(kb: Path, reloader: Reloader, tmp_path: Path) -> None:
    shutil.copytree(kb, tmp_path / "kept")
    shutil.rmtree(kb)
    found = outcome(reloader)
    assert found is not None
    assert found.knowledge is None
    assert (found.state.generation, found.state.stale_since_s) == (1, 200.0)
    assert found.state.problems[0].startswith(str(kb))
    shutil.copytree(tmp_path / "kept", kb)
    usable(reloader)
    edit(kb, "gte: 0.6", "gte: 0.75")
    assert threshold(usable(reloader)) == 0.75


def test_a_swapped_link_is_followed(kb: Path, tmp_path: Path, child: LoadChild) -> None:
    shutil.copytree(kb, tmp_path / "release-2")
    edit(tmp_path / "release-2", "gte: 0.6", "gte: 0.76")
    link = tmp_path / "current"
    link.symlink_to("kb")
    reloader = Reloader(link, child=child)
    try:
        first = reloader.start(100.0).knowledge
        assert first is not None
        (tmp_path / "swap").symlink_to("release-2")
        (tmp_path / "swap").rename(link)
        second = usable(reloader)
        assert threshold(second) == 0.76
        assert second.root == str((tmp_path / "release-2").resolve())
        assert first.remediations[0].playbook.startswith(str(kb.resolve()))  # what was approved stays what it was
        edit(tmp_path / "release-2", "gte: 0.76", "gte: 0.77")
        assert threshold(usable(reloader)) == 0.77
    finally:
        reloader.close()


def test_what_inotify_misses_the_rescan_finds(kb: Path, child: LoadChild) -> None:
    reloader = Reloader(kb, rescan_s=0.3, child=child)
    try:
        reloader.start(100.0)
        assert reloader._observer is not None
        reloader._observer.unschedule_all()
        edit(kb, "gte: 0.6", "gte: 0.78")
        assert threshold(usable(reloader)) == 0.78
    finally:
        reloader.close()


def test_a_rescan_reads_the_files_when_the_kernel_tells_of_a_change_and_else_now_and_then(
    kb: Path, child: LoadChild, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []

    def counted(root: Path) -> Pack:
        read.append(root)
        return read_pack(root)

    monkeypatch.setattr("unveil.knowledge.reload.read_pack", counted)
    monkeypatch.setattr("unveil.knowledge.pack._SETTLED_S", 0.0)
    reloader = Reloader(kb, child=child)

    def rescanned() -> tuple[str, int]:
        reloader._seen = reloader._content()
        return reloader._seen, len(read)

    first = rescanned()
    assert first == (read_pack(kb).digest, 1)
    assert rescanned() == first
    edit(kb, "gte: 0.6", "gte: 0.785")
    second = rescanned()
    assert second == (read_pack(kb).digest, 2)
    assert second[0] != first[0]
    for _ in range(THOROUGH):
        third = rescanned()
    assert third == (second[0], 3)


def test_a_person_who_asks_need_not_wait_for_quiet(kb: Path, reloader: Reloader) -> None:
    assert reloader._observer is not None
    reloader._observer.unschedule_all()
    edit(kb, "gte: 0.6", "gte: 0.79")
    reloader.rescan()
    assert threshold(usable(reloader)) == 0.79


def test_a_broken_folder_at_the_start_is_told_and_followed(kb: Path, caplog: pytest.LogCaptureFixture) -> None:
    edit(kb, "level: low", "level: lo")
    reloader = Reloader(kb)
    try:
        loaded = reloader.start(100.0)
        assert loaded.knowledge is None
        assert loaded.errors[0].check == "K005"
        assert reloader.state is not None
        assert (reloader.state.generation, reloader.state.stale_since_s) == (0, 100.0)
        edit(kb, "level: lo\n", "level: low\n")
        assert usable(reloader).generation == 1
    finally:
        reloader.close()
    assert not caplog.records, "an end in good order is no event"


def test_polling_costs_nothing_when_nothing_happened(reloader: Reloader) -> None:
    calls: list[object] = []
    assert reloader.poll(0.0) is None
    sys.setprofile(lambda _frame, event, called: calls.append(called) if event == "c_call" else None)
    try:
        for _ in range(100):
            reloader.poll(0.0)
    finally:
        sys.setprofile(None)
    assert len(calls) < 100 * 10, "no look at any file"
    assert reloader.poll(0.0) is None


def _bomb() -> str:
    lines = ["apiVersion: unveil/v1", "kind: Fingerprint", "a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    return "\n".join([*lines, *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9))])


TRAPS: dict[str, tuple[Callable[[str], str] | None, str]] = {
    "a broken save": (lambda text: text[:200] + "\n  - {", "K001"),
    "an alias bomb": (lambda text: _bomb(), "K007"),
    "fifty megabytes": (lambda text: "#" * 50_000_000, "K008"),
    "on as a key": (lambda text: text.replace("description:", "on: x\ndescription:"), "K003"),
    "no as a text": (lambda text: text.replace("status: experimental", "status: no"), "K003"),
    "no as a value": (lambda text: text.replace("gte: 0.6}", "gte: 0.6, optional: no}"), "K003"),
    "an octal number": (lambda text: text.replace("gte: 0.6", "gte: 012"), "K003"),
    "a number to base sixty": (lambda text: text.replace("gte: 0.6", "gte: 1:30"), "K003"),
    "a link to itself": (None, "K008"),
    "a duplicate key": (lambda text: text + "level: high\n", "K002"),
}


@pytest.mark.parametrize("trap", TRAPS)
def test_whatever_is_wrong_the_old_generation_stays_and_the_reason_is_told(
    kb: Path, reloader: Reloader, trap: str
) -> None:
    change, check = TRAPS[trap]
    before, good = reloader._current, (kb / POWER).read_text()
    if change is None:
        (kb / POWER).unlink()
        (kb / POWER).symlink_to((kb / POWER).name)
    else:
        (kb / POWER).write_text(change(good))
    found = told(reloader, check)
    assert found.knowledge is None
    assert found.state.generation == 1
    assert any(check in line and str(kb / POWER) in line for line in found.state.problems)
    assert reloader._current is before, "nothing else changes"
    assert found.state.digest == (before.digest if before else "")
    (kb / POWER).unlink()
    (kb / POWER).write_text(good)
    usable(reloader)
    assert reloader.state is not None
    assert reloader.state.stale_since_s is None


def test_a_link_out_of_the_folder_is_told_and_not_followed(kb: Path, reloader: Reloader, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.yml").write_text((kb / POWER).read_text().replace("gte: 0.6", "gte: 0.1"))
    (kb / POWER).unlink()
    (kb / POWER).symlink_to(tmp_path / "elsewhere.yml")
    found = outcome(reloader)
    assert found is not None
    assert found.knowledge is None
    assert (found.state.generation, found.state.stale_since_s) == (1, 200.0)
    assert any("K008" in line and str(kb / POWER) in line for line in found.state.problems)


def test_a_branch_that_is_checked_out_is_taken_up_once_and_whole(kb: Path, reloader: Reloader) -> None:
    def git(*words: str) -> None:
        settings = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        subprocess.run(["git", "-C", str(kb), *settings, *words], check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-q", "-m", "as it was")
    git("checkout", "-q", "-b", "tuned")
    edit(kb, "gte: 0.6", "gte: 0.8")
    git("commit", "-q", "-a", "-m", "tuned")
    assert threshold(usable(reloader)) == 0.8
    git("checkout", "-q", "main")
    assert threshold(usable(reloader)) == 0.6
    git("checkout", "-q", "tuned")
    assert threshold(usable(reloader)) == 0.8
