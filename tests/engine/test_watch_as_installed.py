"""As installed, the watcher changes nothing of a host, however long something matches."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from unveil.records.match import EpisodeState

if TYPE_CHECKING:
    from collections.abc import Callable

START_S = 1_700_000_000.0


@pytest.mark.slow
@pytest.mark.root  # it reads this kernel's settings: nobody else may write them meanwhile
def test_an_hour_of_matches_leaves_every_setting_of_this_kernel_to_the_byte(
    watch: Callable[..., Any], seconds: list[Any], kb: Path
) -> None:
    shutil.copy(Path(__file__).parents[2] / "inventory/profiles.yml", kb / "inventory/profiles.yml")
    now = [START_S]
    watcher = watch(profile="site", host_root=Path("/"), clock=lambda: now[0])
    addresses = {*watcher.facts.settings, "sysctl:vm.dirty_ratio"}
    before = {address: watcher.settings.peek(address) for address in addresses}
    assert before["sysctl:vm.dirty_ratio"] is not None
    fired = set()
    for second in range(3600):
        lap, at = divmod(second, len(seconds))
        now[0] += 1.0
        shift_ns = lap * len(seconds) * 1_000_000_000
        blocks = tuple(replace(block, times_ns=block.times_ns + shift_ns) for block in seconds[at])
        watcher.observation.collect = lambda _now_ns, blocks=blocks: blocks
        watcher._second(second * 1_000_000_000)
        watcher._housekeeping.second(second * 1_000_000_000)
        fired |= {each.id for each in watcher.pipeline.episodes.open if each.state is EpisodeState.FIRING}
    assert fired, "there was something to be tempted by"
    assert watcher.queries.runs() == ()
    assert list(watcher.state_dir.runs.iterdir()) == [], "nothing was started, not even to stand by"
    after = {address: watcher.settings.peek(address) for address in addresses}
    gone = {address for address, content in after.items() if content is None and address.startswith("cgroup:")}
    assert {a: c for a, c in after.items() if a not in gone} == {a: c for a, c in before.items() if a not in gone}
