"""What was edited in an installed pack is told, because the next installation undoes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.knowledge.archive import archive_of, gather
from unveil.knowledge.installing import install
from unveil.knowledge.linting import lint

if TYPE_CHECKING:
    from pathlib import Path

POWER = "fingerprints/gpu/power_limit_low.yml"


def test_an_edit_beside_the_source_is_told_and_the_sites_own_is_not(kb: Path, tmp_path: Path) -> None:
    target = tmp_path / "installed"
    install(archive_of(gather(kb), name="site", version="7", unveil="1"), target)
    assert lint(target) == ()
    values = target / "inventory/values.yml"
    values.write_text(values.read_text().replace("quota_share: 1", "quota_share: 2"))
    assert lint(target) == ()
    (target / POWER).write_text((target / POWER).read_text().replace("level: low", "level: high"))
    (target / "playbooks/raise_quota/notes.txt").write_text("mine")
    (target / "fingerprints/gpu/power_limit_low.test.yml").unlink()
    assert [str(each) for each in lint(target) if each.check == "K701"] == [
        f"{target}/{POWER}:1:1: warning K701: not as in the pack site 7 (the next installation replaces it)",
        f"{target}/kb.json:1:1: warning K701: fingerprints/gpu/power_limit_low.test.yml of pack site 7 is gone",
        (
            f"{target}/playbooks/raise_quota/notes.txt:1:1: warning K701: not in the pack site 7 "
            "(the next installation replaces it)"
        ),
    ]


def test_another_kb_json_says_nothing(kb: Path) -> None:
    (kb / "kb.json").write_text('{"name": "something else"}')
    assert lint(kb) == ()
