"""A fix is judged by the pace of the work, where the host's counters tell one, and by all else where they do not.

The watcher is whole: samples of a made-up host become windows, an episode, a plan with its baseline, a playbook that
Ansible plays on a scratch host, and windows again that verify it. Only the samples and the clock are made up.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from unveil.records.metric import Channel
from unveil.records.run import RunState
from unveil.records.sample import Layout, SampleBlock, Tier
from unveil.remediation.lifecycle import TERMINAL

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.ansible]
ME = f"uid:{os.geteuid()} pid:1"
RATE = "cpu.progress_rate.last"
CRITERION = f"{{feature: {RATE}, direction: up, effect: 0.01, optional: true, after: 80s}}"
NO_SLOWER = f"{{feature: {RATE}, direction: down, effect: 0.05, optional: true, after: 80s}}"
RATIO_FILE = "proc/sys/vm/dirty_ratio"
SENT = Layout((Channel("network.tx_bytes", (("nic", "eth0"),)),))
DIRTY = Layout((Channel("memory.dirty"),))
STEP_S = 1.3


@dataclass
class Host:
    """What a second of a made-up host reads like: a job that sends a burst in each of its steps, or none."""

    watcher: Any
    now: list[float]
    step_s: float | None = STEP_S
    dirty: float = 5e8
    seconds: int = 0
    sent: float = 0.0
    phase: float = 0.0
    chance: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))

    def second(self) -> None:
        """Let a second pass that is seen."""
        times = self.seconds * 10**9 + np.arange(1, 11, dtype=np.int64) * 10**8
        amounts = [self._tick() for _ in range(10)]
        counted = self.sent + np.cumsum(amounts)
        self.sent, self.seconds = float(counted[-1]), self.seconds + 1
        self.now[0] += 1.0
        self._judge(
            SampleBlock(tier=Tier.FAST, layout=SENT, times_ns=times, values=counted[:, None]),
            SampleBlock(tier=Tier.MEDIUM, layout=DIRTY, times_ns=times[-1:], values=np.array([[self.dirty]])),
        )

    def wait(self) -> None:
        """Let a little real time pass in which nothing is seen: a playbook is at work."""
        time.sleep(0.05)
        self._judge()

    def _judge(self, *blocks: SampleBlock) -> None:
        self.watcher.observation.collect = lambda _now_ns: blocks
        self.watcher._second(self.seconds * 10**9)

    def _tick(self) -> float:
        if self.step_s is None:
            return float(self.chance.exponential(1e6))
        self.phase = (self.phase + 0.1 / self.step_s) % 1.0
        return 4e6 if self.phase < 0.3 else 1e4


@pytest.fixture
def verified(watch: Callable[..., Any], kb: Path, scratch: Path) -> Callable[..., tuple[Any, dict[str, Any]]]:
    """Fix the dirt of a host, which clears it, and change its pace with it; return the run and what was measured."""

    def run(criterion: str, *, step_s: float | None, then_s: float | None) -> tuple[Any, dict[str, Any]]:
        file = kb / "playbooks/some_fix/remediation.yml"
        begun = "  improve:\n    - {feature: memory.dirty.mean, direction: down, effect: 0.05}\n"
        assert file.read_text().endswith(begun)
        text = file.read_text().replace("within: 60s", "within: 2m")
        kind = "improve" if criterion is CRITERION else "must_not_worsen"
        more = f"    - {criterion}\n" if kind == "improve" else f"  {kind}:\n    - {criterion}\n"
        file.write_text(text + more)
        now = [1_700_000_000.0]
        watcher = watch(clock=lambda: now[0])
        host = Host(watcher, now, step_s=step_s)
        for _ in range(110):
            host.second()
        ask = watcher._commands.handle
        (episode,) = watcher.pipeline.episodes.open
        planned = ask("plan", {"episode": episode.id}, ME)
        named = {"id": planned["id"], "hash": planned["plan"]["hash"]}
        ask("approve", named, ME)
        ask("apply", named, ME)
        end = time.monotonic() + 100
        while watcher.queries.run(planned["id"]).state is RunState.APPLYING and time.monotonic() < end:
            host.wait()
        assert (scratch / RATIO_FILE).read_text() == "30\n"
        host.dirty, host.step_s = 0.0, then_s
        for _ in range(130):
            host.second()
            if (found := watcher.queries.run(planned["id"])).state in TERMINAL:
                break
        told = [event for _, _, event in watcher.queries.run_events(planned["id"]) if event["event"] == "measured"]
        return found, next(each for each in told if each["feature"].startswith(RATE))

    return run


def lasted_s(run: Any) -> float:
    """Return for how long the run was verified."""
    began = next(step for step in run.steps if step.state is RunState.VERIFYING)
    return float(run.steps[-1].at_s - began.at_s)


def test_a_faster_pace_is_waited_for_and_counts(verified: Any, scratch: Path) -> None:
    run, measured = verified(CRITERION, step_s=STEP_S, then_s=STEP_S / 1.25)
    assert run.state is RunState.KEPT, run.steps[-1]
    assert lasted_s(run) >= 80
    assert measured["before"] == pytest.approx(1 / STEP_S, rel=0.02)
    assert measured["after"] == pytest.approx(1.25 / STEP_S, rel=0.02)
    assert measured["holds"] is True
    assert (scratch / RATIO_FILE).read_text() == "30\n"


def test_a_pace_that_stayed_what_it_was_takes_the_fix_back(verified: Any, scratch: Path) -> None:
    run, measured = verified(CRITERION, step_s=STEP_S, then_s=STEP_S)
    assert [str(step.state) for step in run.steps[-2:]] == ["rolling_back", "rolled_back"]
    assert run.steps[-2].cause == "verification failed"
    assert f"the effect is missing: {RATE}" in run.steps[-2].detail
    assert measured["holds"] is False
    assert (scratch / RATIO_FILE).read_text() == "20\n"


def test_work_without_a_pace_is_judged_by_all_else_and_at_once(verified: Any) -> None:
    run, measured = verified(CRITERION, step_s=None, then_s=None)
    assert run.state is RunState.KEPT
    assert lasted_s(run) < 20
    assert (measured["before"], measured["holds"]) == (None, None)


def test_work_that_lost_its_pace_is_waited_for_until_the_time_is_over(verified: Any) -> None:
    run, measured = verified(CRITERION, step_s=STEP_S, then_s=None)
    assert run.state is RunState.KEPT
    assert lasted_s(run) >= 120
    assert measured["before"] == pytest.approx(1 / STEP_S, rel=0.02)
    assert (measured["after"], measured["holds"]) == (None, None)


def test_a_slower_pace_takes_a_fix_back_that_had_promised_none(verified: Any, scratch: Path) -> None:
    run, measured = verified(NO_SLOWER, step_s=STEP_S, then_s=1.25 * STEP_S)
    assert run.state is RunState.ROLLED_BACK
    assert run.steps[-2].cause == "something got worse"
    assert RATE in run.steps[-2].detail
    assert 80 <= lasted_s(run) < 100
    assert measured["change"] == pytest.approx(-0.2, abs=0.02)
    assert (scratch / RATIO_FILE).read_text() == "20\n"
