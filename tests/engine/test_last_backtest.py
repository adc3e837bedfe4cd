"""What a backtest said is kept beside the journal and told of each fingerprint, whole or not at all."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from unveil.engine import last_backtest
from unveil.engine.history import History
from unveil.errors import UnreadableError
from unveil.knowledge.backtest import BacktestReport, Score
from unveil.store.journal import Journal

if TYPE_CHECKING:
    from pathlib import Path


def report(*names: str, found: int = 1) -> BacktestReport:
    scores = tuple(
        Score(
            fingerprint=name, intervals=2, found=found, first_s=(3.0,), fires=1, other_fires=0, false_fires=1,
            hit_rate=None, coverage=None, agreement=None, contamination=None, false_per_day=None, false_low=None,
            false_high=None,
        )
        for name in (*names, "any fingerprint")
    )  # fmt: skip
    return BacktestReport(
        recordings=("a", "b"), healthy_s=90.0, scores=scores, confusion={}, actions={}, missed=(), unexpected=()
    )


def test_a_fingerprint_keeps_its_figures_until_it_is_backtested_again(tmp_path: Path) -> None:
    assert last_backtest.read(tmp_path) == {}
    path = last_backtest.keep(tmp_path, report("one", "two"), {"one": "r1", "two": "r1"}, at_s=5.0)
    assert path is not None
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    last_backtest.keep(tmp_path, report("two", found=2), {"two": "r2"}, at_s=9.0)
    assert [each.name for each in tmp_path.iterdir()] == [last_backtest.NAME]
    Journal(tmp_path / "journal.db").close()
    told = History(tmp_path / "journal.db").call("backtests")
    assert {name: (each["revision"], each["found"], each["at_s"]) for name, each in told.items()} == {
        "one": ("r1", 1, 5.0), "two": ("r2", 2, 9.0),
    }  # fmt: skip


def test_where_no_watcher_keeps_its_state_nothing_is_kept(tmp_path: Path) -> None:
    assert last_backtest.keep(tmp_path / "none", report("one"), {"one": "r"}, at_s=1.0) is None
    assert not (tmp_path / "none").exists()


ENDLESS = (
    '{"one": {"revision": "r", "recordings": Infinity, "intervals": 1, "found": 1, "other_fires": 1, "false_fires": 1, '
    '"at_s": 1, "healthy_s": 1}}'
)


@pytest.mark.parametrize(
    "text",
    ["no JSON", "[1]", '{"one": 3}', '{"one": {"found": 1}}', '{"one": {"at_s": "x"}}', ENDLESS, "[" * 100_000],
    ids=["text", "list", "number", "part", "word", "endless", "deep"],
)
def test_a_file_that_is_none_of_ours_is_refused_and_replaced(tmp_path: Path, text: str) -> None:
    (tmp_path / last_backtest.NAME).write_text(text)
    with pytest.raises(UnreadableError, match="cannot be read"):
        last_backtest.read(tmp_path)
    last_backtest.keep(tmp_path, report("one"), {"one": "r"}, at_s=1.0)
    assert list(last_backtest.read(tmp_path)) == ["one"]
