"""What a large knowledge base costs: lint, load, reload, and a window against all of it, beside other rule engines.

Run it with ``python -m unveil.benchmarks.knowledge [--files 10000] [--rules 10000] [--quiet 1] [--peer PYTHON]``. It
writes a made-up knowledge base into a scratch folder. PYTHON is one that has drools_jpy (ansible-rulebook's engine,
with a JDK) or durable_rules installed, in an environment of its own: neither is a dependency. What is not there is not
run.

CPU time of processes where a process is meant, of this thread where a window is, so that a busy machine does not show;
beside it, for a lint, what a clock says. A reload is timed from the save to the moment when the watch loop holds the
new generation, less the wait for quiet (0.25 s of a watcher, a debounce). It is timed while somebody edits, when the
loader is awake, and after a quiet time, when it has given back what it does not need and says what it still holds for
itself. A watcher's loader does so after 60 s, here after ``--quiet``: how long it sleeps then changes nothing, unless
the host is short of memory and swaps. ``--quiet 60`` really waits. A loader that was lost has a row of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from unveil.knowledge.load_child import LoadChild
from unveil.knowledge.reload import Reloader
from unveil.matching.clauses import compare
from unveil.matching.matcher import Matcher
from unveil.records.entity import HOST, EntityKind
from unveil.records.fact import FactTable
from unveil.records.feature import FeatureId, FeatureLayout, FeatureVector
from unveil.records.fingerprint import FeatureClause, Fingerprint
from unveil.records.subsystem import Subsystem

if TYPE_CHECKING:
    from collections.abc import Callable

FEATURES = 100  # what durable_rules takes in one message
ROUNDS = 60
EDITS = 5
QUIET_TIMES = 3
QUIET_S = 0.02  # what is waited for quiet counts for nobody

Rule = list[tuple[str, str, float]]

_FINGERPRINT = """\
apiVersion: unveil/v1
kind: Fingerprint
name: {name}
id: {id}
title: Made-up fingerprint number {number} of many
status: test
level: low
description: Nothing of this is true, it only has to be read, judged and compared.
owner: benchmark
date: "2026-11-29"
group_by: host
signature:
  clauses:
    throttled: {{feature: cpu.psi_some.rate, gte: {a}}}
    idle: {{feature: cpu.idle.rate, gte: {b}}}
    slow: {{feature: storage.psi_full.rate, gte: {c}}}
    usual: {{feature: memory.psi_some.rate, deviates: up, by_sigma: 3, optional: true}}
    limited: {{fact: memory.swappiness, lt: {d}}}
  condition: throttled and idle and (slow or usual) and limited
  for: 5s
falsepositives: [Everything that is made up.]
"""
_CASES = """\
apiVersion: unveil/v1
kind: FingerprintTest
fingerprint: {name}
cases:
  - name: it is there
    expect: match
    at: 5s
    features: {{cpu.psi_some.rate: 1, cpu.idle.rate: 1, storage.psi_full.rate: 1}}
    facts: {{memory.swappiness: 0}}
  - name: it is not
    expect: no_match
    at: 5s
    features: {{cpu.psi_some.rate: 0, cpu.idle.rate: 1, storage.psi_full.rate: 1}}
    facts: {{memory.swappiness: 0}}
"""


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="python -m unveil.benchmarks.knowledge")
    parser.add_argument("--files", type=int, default=10_000, help="files of the large knowledge base")
    parser.add_argument("--rules", type=int, default=10_000, help="fingerprints that a window is held against")
    parser.add_argument("--quiet", type=float, default=1.0, help="seconds until a loader that nobody asks rests")
    parser.add_argument("--peer", metavar="PYTHON", help="a Python with drools_jpy or durable_rules")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="unveil-benchmark-") as scratch:
        small, large = Path(scratch, "small"), Path(scratch, "large")
        write_knowledge(small, 200)
        write_knowledge(large, asked.files // 2)
        _row("what", "measured", "asked for")
        os.environ["XDG_CACHE_HOME"] = str(Path(scratch, "cache"))
        for title, limit in (("lint of 200 fingerprints and their cases, cold", 1.5), ("the same again, cached", 0.1)):
            cpu_s, wall_s = lint_s(small, rounds=1 if limit > 1 else 7)
            _row(title, f"{cpu_s:.3f} CPU-s, {wall_s:.3f} s", f"{limit:g} s")
        for title, folder, limit_s, limit_mb in (
            ("one edit in 200 fingerprints and their cases", small, 0.05, 25),
            (f"one edit in {asked.files:,} files", large, 2.0, 150),
        ):
            _reloads(title, folder, limit_s, limit_mb, quiet_s=asked.quiet)
    _windows(asked.rules, asked.peer)


def write_knowledge(root: Path, fingerprints: int) -> None:
    """Write a knowledge base of so many fingerprints, each with its cases; no two ask for the same."""
    random = Random(7)  # noqa: S311  # a made-up knowledge base
    (root / "playbooks").mkdir(parents=True)
    for number in range(fingerprints):
        subsystem = list(Subsystem)[number % len(Subsystem)]
        name = f"made_up_{number:05}"
        folder = root / "fingerprints" / subsystem
        folder.mkdir(parents=True, exist_ok=True)
        a, b, c = (round(random.uniform(0.1, 0.9), 6) for _ in range(3))
        told = {"name": name, "number": number, "a": a, "b": b, "c": c, "d": 1 + number % 99}
        id_ = uuid.UUID(int=random.getrandbits(128), version=4)
        (folder / f"{name}.yml").write_text(_FINGERPRINT.format(id=id_, **told))
        (folder / f"{name}.test.yml").write_text(_CASES.format(**told))


def lint_s(root: Path, *, rounds: int) -> tuple[float, float]:
    """Return CPU and wall time of an ``unveil kb lint`` as a person starts it, Python's own start included: medians."""
    command = [sys.executable, "-m", "unveil", "kb", "lint", "--kb", str(root)]
    cpus, walls = [], []
    for _ in range(rounds):
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        walls.append(time.perf_counter() - begin)
        cpus.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(cpus), statistics.median(walls)


def _reloads(title: str, folder: Path, limit_s: float, limit_mb: int, *, quiet_s: float) -> None:
    """Print how long a reload takes beside a loop that ticks, how late its ticks were, and what the loader holds."""
    child = LoadChild(rest_s=quiet_s)
    reloader = Reloader(folder, quiet_s=QUIET_S, cap_s=1.0, child=child)
    begin = time.perf_counter()
    loaded = reloader.start(0.0)
    assert loaded.knowledge is not None, loaded.errors[:1]
    first_s = time.perf_counter() - begin
    path = next(folder.glob("fingerprints/*/made_up_00003.yml"))
    late: list[float] = []

    def edit() -> float:
        _edit(path)
        took_s, latest_s = _followed(reloader)
        late.append(latest_s)
        return took_s - QUIET_S

    try:
        warm = [edit() for _ in range(EDITS)]
        held, rested = [], []
        for _ in range(QUIET_TIMES):
            held.append(_rest(child, 60 + 2 * quiet_s))
            rested.append(edit())
        child.close()
        anew_s = edit()
    finally:
        reloader.close()
        child.close()
    _row(title, f"{1000 * statistics.median(warm):.0f} ms", f"{1000 * limit_s:.0f} ms")
    told = f"{1000 * statistics.median(rested):.0f} ms, most {1000 * max(rested):.0f} ms"
    _row(f"  the first after {quiet_s:g} s of quiet", told, f"{1000 * limit_s:.0f} ms")
    _row("  what the loader holds for itself in the quiet", f"{max(held) / 1e6:.0f} MB", f"{limit_mb} MB")
    _row("  one edit when the loader was lost a moment ago", f"{anew_s:.2f} s", "-")
    told = f"{first_s:.2f} s / {1000 * max(late):.0f} ms"
    _row("  first load / latest tick of the watch loop meanwhile", told, "100 ms")


def _rest(child: LoadChild, most_s: float) -> int:
    """Wait until the loader rests, as it does in a watcher after a minute; return the bytes that only it holds then."""
    until_s = time.monotonic() + most_s
    while (held := child.resting_bytes()) is None:
        if time.monotonic() > until_s:
            raise SystemExit("the loader does not rest")
        time.sleep(0.05)
    return held


def _edit(path: Path) -> None:
    text = path.read_text()
    old, new = ("level: low", "level: high") if "level: low" in text else ("level: high", "level: low")
    part = path.with_name(f".{path.name}.swp")
    part.write_text(text.replace(old, new))
    part.rename(path)  # as editors save: nobody sees half of it


def _followed(reloader: Reloader) -> tuple[float, float]:
    """Return the time until the next generation, and the latest tick of a loop that polls meanwhile."""
    begin = time.perf_counter()
    latest_s, due = 0.0, begin
    while (outcome := reloader.poll(0.0)) is None:
        due += 0.002
        time.sleep(max(0.0, due - time.perf_counter()))
        latest_s = max(latest_s, time.perf_counter() - due)
        due = max(due, time.perf_counter())
        if due - begin > 60:
            raise SystemExit("no generation came within a minute")
    assert outcome.knowledge is not None, outcome.problems[:1]
    return time.perf_counter() - begin, latest_s


def _windows(count: int, peer: str | None) -> None:
    """Print what one window costs with so many rules, and with a tenth of them, for each engine."""
    print()
    _row("one window (median)", *(f"{each:,} rules" for each in (count // 10, count)))
    rules = make_rules(count)
    event = {f"f{number}": value for number, value in enumerate(np.random.default_rng(3).random(FEATURES).tolist())}
    sizes = (rules[: count // 10], rules)
    _row("unveil", *(f"{_ours(each, event):.3f} ms" for each in sizes))
    _row("a plain loop in Python", *(f"{_plain(each, event):.3f} ms" for each in sizes))
    told = [_peers(peer, each, event) for each in sizes]
    for name in ("drools_jpy", "durable_rules"):
        _row(name, *(each.get(name, "not run") for each in told))


def make_rules(count: int) -> list[Rule]:
    """Return rules of five comparisons; the first holds seldom, as on a real host."""
    random = Random(11)  # noqa: S311  # a made-up knowledge base
    operators = ("gt", "gte", "lt", "lte")

    def one(operator: str, bound: float) -> tuple[str, str, float]:
        return f"f{random.randrange(FEATURES)}", operator, bound

    return [
        [one("gt", 1 - 1e-5), *(one(random.choice(operators), random.random()) for _ in range(4))] for _ in range(count)
    ]


def _ours(rules: list[Rule], event: dict[str, float]) -> float:
    fingerprints = [
        Fingerprint(
            name=f"r{number}", id=str(number), title="", status="test", level="low", description="",
            group_by=EntityKind.HOST, condition="all of c*", hold_s=5.0, keep_firing_s=15.0,
            subsystem=Subsystem.MEMORY,
            clauses=tuple(
                FeatureClause(name=f"c{at}", feature=name, entity=None, operator=operator, threshold=bound)
                for at, (name, operator, bound) in enumerate(rule)
            ),
        )
        for number, rule in enumerate(rules)
    ]  # fmt: skip
    layout = FeatureLayout(tuple(FeatureId(name, HOST) for name in event))
    vector = FeatureVector(window=0, wall_s=0.0, layout=layout, values=np.array(list(event.values())))
    matcher, facts = Matcher(fingerprints), FactTable()
    return _median_ms(lambda: matcher.evaluate(vector, facts))


def _plain(rules: list[Rule], event: dict[str, float]) -> float:
    return _median_ms(lambda: [all(compare(event[name], how, bound) for name, how, bound in rule) for rule in rules])


def _median_ms(work: Callable[[], Any]) -> float:
    costs = []
    for _ in range(ROUNDS):
        begin = time.thread_time()
        work()
        costs.append(time.thread_time() - begin)
    return 1000 * statistics.median(costs[ROUNDS // 5 :])


def _peers(python: str | None, rules: list[Rule], event: dict[str, float]) -> dict[str, str]:
    """Return what each of the other engines needed, in words."""
    if python is None:
        return {}
    job = json.dumps({"rules": rules, "event": event, "rounds": ROUNDS})
    script = Path(__file__).with_name("rule_engine_peer.py")
    try:
        ended = subprocess.run(
            [python, str(script)], input=job, capture_output=True, text=True, timeout=600, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return dict.fromkeys(("drools_jpy", "durable_rules"), f"not run: {error}"[:60])
    told = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    return {
        each["engine"]: f"not run: {each['failed']}"[:60]
        if "failed" in each
        else f"{each['median_ms']:.3f} ms (defined in {each['define_s']:.1f} s)"
        for each in told
    }


def _row(what: str, *told: str) -> None:
    print(f"{what:56}" + "".join(f"{each:>32}" for each in told), flush=True)


if __name__ == "__main__":
    main()
