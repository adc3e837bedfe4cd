from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from unveil.errors import RefusedError, UnreadableError
from unveil.execution import snapshot
from unveil.execution.settings import Settings
from unveil.execution.snapshot import Snapshot
from unveil.records.run import SettingChange

if TYPE_CHECKING:
    from pathlib import Path

RATIO, BYTES = "sysctl:vm.dirty_ratio", "sysctl:vm.dirty_bytes"


@pytest.fixture
def plan(kit: Any, tmp_path: Path) -> Any:
    from dataclasses import replace

    drawn = kit.plan(tmp_path / "apply.yml", settings={RATIO: ("20", "30")})
    coupled = SettingChange(address=BYTES, before="0", after=None, coupled=True)
    return replace(drawn, changes=(*drawn.changes, coupled))


def test_a_snapshot_comes_back_from_the_disk_and_is_nobody_elses(tmp_path: Path) -> None:
    taken = Snapshot(run="r1", plan_hash="h", at_s=1.0, saved={RATIO: "20"}, written={RATIO: "30"})
    path = snapshot.save(tmp_path, taken)
    assert snapshot.load(tmp_path) == taken
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["snapshot.json"], "no half-written file stays"


def test_one_that_is_damaged_or_absent_is_told(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError):
        snapshot.load(tmp_path)
    for text in ("", "[]", '{"run": 1}', '{"run": "r1", "saved"'):
        (tmp_path / "snapshot.json").write_text(text)
        with pytest.raises(UnreadableError):
            snapshot.load(tmp_path)


def test_it_holds_the_coupled_ones_and_refuses_what_cannot_be_put_back(tree: Path, plan: Any) -> None:
    host = Settings(tree)
    assert snapshot.take(plan, host.peek) == {RATIO: "20", BYTES: "0"}
    (tree / "proc/sys/vm/dirty_bytes").unlink()
    assert snapshot.take(plan, host.peek) == {RATIO: "20"}
    (tree / "proc/sys/vm/dirty_ratio").unlink()
    with pytest.raises(RefusedError, match="could not be put back"):
        snapshot.take(plan, host.peek)


@pytest.mark.parametrize(
    ("now", "ours", "missed", "changed"),
    [
        ("30", {RATIO: "30", BYTES: "0"}, (), (RATIO,)),
        ("20", {RATIO: "20", BYTES: "0"}, (RATIO,), ()),  # killed before it wrote
        ("25", {BYTES: "0"}, (RATIO,), (RATIO,)),  # someone else's
    ],
)
def test_after_apply_it_is_known_what_is_ours(
    tree: Path, plan: Any, now: str, ours: dict[str, str], missed: tuple[str, ...], changed: tuple[str, ...]
) -> None:
    host = Settings(tree)
    saved = snapshot.take(plan, host.peek)
    host.write(RATIO, now)
    assert snapshot.written(plan, saved, host.peek) == ours
    assert snapshot.missed(plan, host.peek) == missed
    assert snapshot.changed(saved, host.peek) == changed
