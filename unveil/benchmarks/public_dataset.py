"""All detectors on a public, labelled data set: LDMS counters of a node on which HPAS injects anomalies.

    python -m unveil.benchmarks.public_dataset FOLDER [--peers]

FOLDER holds the ExaMiniMD half of github.com/clayfiler/HPC_Anomaly_Data_Generation (MIT): ``examinimd.parquet`` (run,
t_s, then LDMS's meminfo, vmstat and procstat at one sample a second) and ``labels.json`` (for each run what was
injected, from when to when). It is not shipped.

Neither the samples nor the features are ours, so this is no test of the watcher but of its detectors: each window of
ten seconds is a plain row (mean rate of what is counted, mean level of what is not, and how far the cores are apart),
and no feature is known to tell the load. Of every four runs the first is the past, of which the healthy windows are
learned, and the third is scored; a run without an injection is always past. Thirty seconds after an injection are not
judged.
"""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unveil.cli import draw
from unveil.cli.eval import combinations_of, every_rule
from unveil.cli.eval_tables import comparison_tables
from unveil.detection.catalogue import DETECTORS
from unveil.detection.detector_input import DetectorInput, Trait, select
from unveil.detection.ensemble import Ensemble
from unveil.detection.rule import DEFAULT_RULE
from unveil.engine.comparing import strengths, timed, train
from unveil.engine.peers import peers
from unveil.knowledge.comparison import Compared, ComparedWindow, standings
from unveil.knowledge.labels import Interval
from unveil.records.feature import FeatureId, FeatureLayout, FeatureVector
from unveil.records.subsystem import Subsystem
from unveil.records.verdict import State

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from unveil.detection.detector import DetectorKind

_WINDOW_S = 10
_SETTLE_S = 30
_CORE = re.compile(r"procstat\.per_core_(\w+?)\d+")
_GAUGE = re.compile(r"meminfo\.|procstat\.procs_|vmstat\.nr_(?!dirtied|written|vmscan|throttled|foll)")


def main() -> None:
    """Learn, judge, print a table."""
    parser = argparse.ArgumentParser(description="all detectors on the public LDMS and HPAS data set")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--peers", action="store_true", help="other people's detectors, too")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--settle", type=int, default=_SETTLE_S, help="seconds after an injection that are not judged")
    arguments = parser.parse_args()
    others, absent = peers() if arguments.peers else ((), {})
    for name, reason in absent.items():
        print(f"{name} is left out: {reason}")
    kinds, costs = timed((*DETECTORS, *others))
    runs = _read(arguments.folder)
    past = [run for number, run in enumerate(runs) if number % 4 == 0 or not run["anomalies"]]
    scored = [run for number, run in enumerate(runs) if number % 4 == 2 and run["anomalies"]]
    learnt = _learn(past, kinds, seed=arguments.seed)
    with draw.progress("judging runs", total=len(scored), quiet=False) as advance:
        judged = []
        for number, run in enumerate(scored, 1):
            judged.append(_judge(run, learnt, kinds))
            advance(number)
    taken = {name: cost.nanoseconds / cost.windows / 1e3 for name, cost in costs.items() if cost.windows}
    judged = [
        replace(each, cost_us=taken, intervals=_intervals(run, each.seconds, arguments.settle))
        for each, run in zip(judged, scored, strict=True)
    ]
    known = tuple(kind.name for kind in DETECTORS)
    chosen = combinations_of(DEFAULT_RULE, every_rule(known), known, tuple(kind.name for kind in others))
    print(f"{len(past)} runs of past, {len(scored)} scored, {len(learnt[0].ids)} features, windows of {_WINDOW_S} s")
    for title, columns, rows in comparison_tables(
        standings(judged, chosen, (0.005, 0.01, 0.02), ours=DEFAULT_RULE), ours=DEFAULT_RULE
    ):
        draw.table(columns, rows, title=title)


def _read(folder: Path) -> list[dict[str, Any]]:
    """Return each run with its rows, windows of plain features."""
    from pyarrow import parquet

    table = parquet.read_table(folder / "examinimd.parquet")
    names = [name for name in table.column_names if name not in ("run", "t_s")]
    of_run = np.array(table.column("run").to_pylist())
    values = np.column_stack([table.column(name).to_numpy(zero_copy_only=False).astype(np.float64) for name in names])
    runs: list[dict[str, Any]] = json.loads((folder / "labels.json").read_text())["runs"]
    runs = [run for run in runs if (of_run == run["run"]).any()]
    for run in runs:
        run["names"], run["rows"] = _windows(names, values[of_run == run["run"]])
    return runs


def _windows(names: list[str], samples: NDArray[np.float64]) -> tuple[list[str], NDArray[np.float64]]:
    whole = (len(samples) - 1) // _WINDOW_S
    gauge = np.array([bool(_GAUGE.match(name)) for name in names])
    edges = samples[: whole * _WINDOW_S + 1 : _WINDOW_S]
    rates = np.diff(edges, axis=0) / _WINDOW_S
    levels = samples[: whole * _WINDOW_S].reshape(whole, _WINDOW_S, -1).mean(axis=1)
    rows = np.where(gauge, levels, rates)
    cores: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        if found := _CORE.fullmatch(name):
            cores.setdefault(found[1], []).append(place)
    single = [place for place, name in enumerate(names) if not _CORE.fullmatch(name)]
    apart = [rows[:, places].std(axis=1) for places in cores.values()]
    told = [names[place] for place in single] + [f"procstat.{state}_apart" for state in cores]
    return told, np.column_stack([rows[:, single], *apart])


def _learn(past: list[dict[str, Any]], kinds: tuple[DetectorKind, ...], *, seed: int) -> tuple[FeatureLayout, Ensemble]:
    layout = FeatureLayout(tuple(FeatureId(_named(name)) for name in past[0]["names"]))
    ensemble = Ensemble(_scope, kinds=kinds)
    for run in past:
        for at_s, row in _timed_rows(run):
            if not any(a["start_s"] - _WINDOW_S < at_s < a["end_s"] + _SETTLE_S for a in run["anomalies"]):
                ensemble.judge(FeatureVector(window=0, wall_s=0.0, layout=layout, values=row))
                ensemble.learn()
    train(ensemble, kinds, seed=seed)
    return layout, ensemble


def _judge(run: dict[str, Any], learnt: tuple[FeatureLayout, Ensemble], kinds: tuple[DetectorKind, ...]) -> Compared:
    layout, past = learnt
    ensemble = Ensemble(_scope, kinds=kinds)
    ensemble.restore(past.state())
    if past.model is not None:
        ensemble.adopt(past.model)
    windows = []
    for at_s, row in _timed_rows(run):
        judgement = ensemble.judge(FeatureVector(window=int(at_s), wall_s=at_s, layout=layout, values=row))
        judged = judgement.verdict.state is not State.UNKNOWN
        windows.append(
            ComparedWindow(start_s=at_s, end_s=at_s + _WINDOW_S, judged=judged, strengths=strengths(judgement))
        )
    seconds = windows[-1].end_s
    return Compared(
        recording=run["run"], workload="", seconds=seconds, windows=tuple(windows), intervals=(),
        right={}, cost_us={},
    )  # fmt: skip


def _timed_rows(run: dict[str, Any]) -> list[tuple[float, NDArray[np.float64]]]:
    return [(float(number * _WINDOW_S), row) for number, row in enumerate(run["rows"])]


def _intervals(run: dict[str, Any], seconds: float, settle_s: int) -> tuple[Interval, ...]:
    """Return the injections, and the healthy time before, between and after them."""
    faulty = [
        Interval(from_s=float(a["start_s"]), to_s=float(a["end_s"]), labels=frozenset({a["kind"]}))
        for a in run["anomalies"]
    ]
    healthy, from_s = [], 0.0
    for each in sorted(faulty, key=lambda each: each.from_s):
        if each.from_s > from_s:
            healthy.append(Interval(from_s=from_s, to_s=each.from_s, labels=frozenset()))
        from_s = max(from_s, each.to_s + settle_s)
    if from_s < seconds:
        healthy.append(Interval(from_s=from_s, to_s=seconds, labels=frozenset()))
    return (*faulty, *healthy)


def _named(name: str) -> str:
    subsystem = "cpu" if name.startswith("procstat.") else "memory"
    return f"{subsystem}.{re.sub(r'[^a-z0-9_]+', '_', name.lower())}.mean"


def _scope(layout: FeatureLayout) -> DetectorInput:
    return select(layout, lambda feature: Trait(subsystem=Subsystem(feature.name.partition(".")[0]), log=True))


if __name__ == "__main__":
    main()
