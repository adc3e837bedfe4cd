"""How true is the step time that is told? ``python -m unveil.benchmarks.progress RECORDING-OR-FOLDER …``

Replays recordings, or all that are in a folder, of the fault lab (``python -m unveil.lab``) or any other, and holds the
step time of each window against what the workload itself wrote down (``RECORDING.units``: a line a step): the median
time from one step to the next over the minute that the step time was taken from. Requests, batches and documents come
as they come: there, on a recording without units, and on made-up idle and irregular hosts, every step time told is a
wrong one.
"""

from __future__ import annotations

import argparse
import sys
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from unveil.cli import draw
from unveil.errors import UnveilError
from unveil.features.progress import SENT, Progress, Step
from unveil.host.replay import Replay
from unveil.lab.units import read_units
from unveil.records.metric import Channel
from unveil.records.sample import Layout, SampleBlock, Tier
from unveil.windows.slider import Slider

if TYPE_CHECKING:
    from collections.abc import Sequence

WITHIN = 0.03
WANTED = 0.95
STEPPING = ("train", "evaluate")  # phases of a workload that has steps
_LOOKED_AT_S = 60.0
_MADE_UP_S = 300


@dataclass(slots=True)
class Score:
    """What was told over the windows of one recording.

    Attributes:
        true_s: the workload's own step time, of the last window that had one.
    """

    name: str
    windows: int = 0
    told: int = 0
    right: int = 0
    true_s: float | None = None
    step: Step | None = None
    reason: str = ""

    def take(self, progress: Progress, true_s: float | None) -> None:
        """Count one window."""
        self.windows += 1
        self.true_s = true_s or self.true_s
        self.reason = progress.reason or self.reason
        if (step := progress.rhythm) is not None:
            self.step = step
            self.told += 1
            self.right += true_s is not None and abs(step.period_s / true_s - 1) <= WITHIN

    @property
    def holds(self) -> bool:
        """Return whether enough of what was told is right; nothing told is nothing wrong."""
        return self.right >= WANTED * self.told


def of_recording(path: Path) -> Score:
    """Return the score of one recording.

    Raises:
        UnreadableError: the path is no recording.
    """
    log = path.with_suffix(".units")
    ends = [unit.at_s for unit in read_units(log) if unit.phase in STEPPING] if log.exists() else []
    score, progress, slider = Score(path.stem), Progress(), Slider()
    for tick in Replay(path):
        for window in slider.push(tick.blocks, wall_s=tick.wall_s):
            progress.push(window)
            begin, end = bisect_left(ends, window.wall_s - _LOOKED_AT_S), bisect_right(ends, window.wall_s)
            gaps = [later - earlier for earlier, later in pairwise(ends[begin:end])]
            score.take(progress, median(gaps) if gaps else None)
    return score


def of_amounts(name: str, amounts: list[float]) -> Score:
    """Return the score of a made-up host that sends these bytes in each tick and has no step."""
    score, progress, slider = Score(name), Progress(), Slider()
    layout = Layout((Channel(SENT, (("nic", "eth0"),)),))
    counted = np.cumsum(amounts)
    for first in range(0, len(counted), 10):
        values = counted[first : first + 10, None]
        times = (first + np.arange(1, len(values) + 1)) * 100_000_000
        block = SampleBlock(tier=Tier.FAST, layout=layout, times_ns=times, values=values)
        for window in slider.push([block], wall_s=first / 10):
            progress.push(window)
            score.take(progress, None)
    return score


def made_up() -> tuple[Score, ...]:
    """Return the scores of hosts that are idle or irregular: nothing, heartbeats, noise, bursts, a wandering load."""
    dice = np.random.default_rng(7)
    ticks = 10 * _MADE_UP_S
    kinds = {
        "silent": np.zeros(ticks),
        "heartbeats": np.where(np.arange(ticks) % 10 == 0, 600.0, 0.0),
        "requests": dice.poisson(40, ticks) * 4096.0,
        "bursts": np.where(dice.random(ticks) < 0.05, 1e7, 0.0),
        "wandering": np.abs(np.cumsum(dice.standard_normal(ticks))) * 1e5,
        "heavy tails": dice.pareto(1.5, ticks) * 1e5,
    }
    return tuple(of_amounts(f"({name})", amounts.tolist()) for name, amounts in kinds.items())


def report(scores: Sequence[Score]) -> int:
    """Print the tables; return 0 when what was told is right, 1 otherwise."""
    draw.table(
        ("recording", "windows>", "told>", "within 3 %>", "true step>", "told step>", "by, or why none"),
        (
            (
                each.name,
                each.windows,
                f"{each.told / max(each.windows, 1):.0%}",
                f"{each.right / each.told:.1%}" if each.told else "-",
                "none" if each.true_s is None else f"{each.true_s:.3f} s",
                "none" if each.step is None else f"{each.step.period_s:.3f} s",
                each.step.source if each.step else each.reason,
            )
            for each in scores
        ),
    )
    stepping = [each for each in scores if each.true_s is not None]
    others = [each for each in scores if each.true_s is None]
    draw.table(
        ("of", "recordings>", "windows>", "a step time is told>", f"of these within {WITHIN:.0%}>", "wanted"),
        (
            _row("work in steps", stepping, f"{WANTED:.0%} of each recording"),
            _row("idle, and without rhythm", others, "none told"),
        ),
    )
    return 0 if all(each.holds for each in scores) else 1


def _row(name: str, scores: Sequence[Score], wanted: str) -> tuple[str, int, int, str, str, str]:
    windows, told, right = (sum(getattr(each, count) for each in scores) for count in ("windows", "told", "right"))
    share = f"{told} ({told / windows:.0%})" if windows else "-"
    return name, len(scores), windows, share, f"{right / told:.1%}" if told else "-", wanted


def recordings(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Return recordings as they are named, and those of folders by name."""
    return tuple(
        recording for path in paths for recording in (sorted(path.rglob("*.parquet")) if path.is_dir() else (path,))
    )


def main(argv: list[str] | None = None) -> int:
    """Measure from the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m unveil.benchmarks.progress",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("recordings", type=Path, nargs="*", help="or folders; with .units beside them where there are")
    asked = parser.parse_args(argv)
    try:
        scores = (*map(of_recording, recordings(asked.recordings)), *made_up())
    except UnveilError as error:
        print(f"unveil.benchmarks.progress: {error.what}", file=sys.stderr)
        return error.exit_code
    return report(scores)


if __name__ == "__main__":
    sys.exit(main())
