"""The table of collectors side by side."""

from __future__ import annotations

import pytest

from unveil.benchmarks.peers import PEERS, Cost, main, report


def test_each_collector_has_a_name_of_its_own_and_a_pace() -> None:
    assert len({peer.name for peer in PEERS}) == len(PEERS)
    assert all(peer.period_s > 0 for peer in PEERS)
    assert PEERS[0].path() is not None


def test_the_table_tells_cost_for_values_and_what_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    costs = [
        Cost(name="one", period_s=0.1, share=0.004, rss_mb=40, metrics=400, values=4000.0),
        Cost(name="two", period_s=10, share=0.01, rss_mb=9, metrics=None, values=None),
    ]
    assert costs[0].us_for_thousand == pytest.approx(1000)
    assert costs[1].us_for_thousand is None
    assert report(costs, ["atop: not installed (atop)"]) == 0
    said = capsys.readouterr().out
    for word in ("0.400", "1000", "atop: not installed"):
        assert word in said


@pytest.mark.longest
@pytest.mark.slow
def test_the_watcher_is_measured_beside_what_is_installed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seconds", "2", "--no-gpu"]) == 0
    said = capsys.readouterr().out
    assert "unveil watch" in said
    assert "psutil loop" in said
