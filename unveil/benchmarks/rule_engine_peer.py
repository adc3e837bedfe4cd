"""Other rule engines on the same rules and the same event: run by another Python, which has them installed.

Stands alone, so that nothing of unveil need be there: ``PYTHON rule_engine_peer.py < job.json``. The job is ``{"rules":
[[[name, operator, number], …], …], "event": {name: number}, "rounds": n}``; each rule holds when all of its comparisons
do. Printed is one JSON object a line: ``{"engine", "rules", "define_s", "median_ms"}``, or ``{"engine", "failed"}``.

* ansible-rulebook's engine: `drools_jpy` (Apache-2.0), its JSON rules and ``assertEvent``, without sources or actions.
* `durable_rules` (MIT).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_DROOLS = {
    "gt": "GreaterThanExpression", "gte": "GreaterThanOrEqualToExpression", "lt": "LessThanExpression",
    "lte": "LessThanOrEqualToExpression",
}  # fmt: skip

Rule = list[tuple[str, str, float]]


def drools(rules: list[Rule], event: dict[str, float]) -> Callable[[], None]:
    """Return what hands an event to drools_jpy."""
    from drools.rule import Rule as Callback  # type: ignore[import-not-found]  # of the other Python
    from drools.ruleset import Ruleset  # type: ignore[import-not-found]

    def condition(rule: Rule) -> dict[str, Any]:
        parts: list[dict[str, Any]] = [
            {_DROOLS[operator]: {"lhs": {"Event": name}, "rhs": {"Float": number}}} for name, operator, number in rule
        ]
        whole = parts[0]
        for part in parts[1:]:
            whole = {"AndExpression": {"lhs": whole, "rhs": part}}
        return {"AllCondition": [whole]}

    written = {
        "name": "windows", "hosts": ["all"], "sources": [],
        "rules": [
            {"Rule": {"name": f"r{number}", "condition": condition(rule), "actions": [], "enabled": True}}
            for number, rule in enumerate(rules)
        ],
    }  # fmt: skip
    engine = Ruleset(name="windows", serialized_ruleset=json.dumps(written))
    for number in range(len(rules)):
        engine.add_rule(Callback(f"r{number}", lambda _: None))
    text = json.dumps(event)
    return lambda: engine.assert_event(text)


def durable(rules: list[Rule], event: dict[str, float]) -> Callable[[], None]:
    """Return what hands an event to durable_rules."""
    from durable.engine import Host, MessageNotHandledException  # type: ignore[import-not-found]

    def run(_: Any) -> None:
        """Take note of nothing."""

    written = {
        f"r{number}": {
            "all": [{"m": {"$and": [{f"${operator}": {name: value}} for name, operator, value in rule]}}], "run": run,
        }
        for number, rule in enumerate(rules)
    }  # fmt: skip
    host = Host({"windows": written})
    numbers = iter(range(10**9))

    def post() -> None:
        with contextlib.suppress(MessageNotHandledException):  # no rule holds
            host.post("windows", {**event, "id": next(numbers), "sid": "0"})

    return post


def main() -> None:
    """Measure both."""
    job = json.load(sys.stdin)
    if java := shutil.which("java"):
        os.environ.setdefault("JAVA_HOME", str(Path(java).resolve().parents[1]))
    for name, make in (("drools_jpy", drools), ("durable_rules", durable)):
        try:
            begin = time.perf_counter()
            post = make(job["rules"], job["event"])
            defined = time.perf_counter() - begin
            costs = []
            for _ in range(job["rounds"]):
                begin = time.perf_counter()
                post()
                costs.append(time.perf_counter() - begin)
            median_s = statistics.median(costs[len(costs) // 5 :])
            told: dict[str, Any] = {"define_s": defined, "median_ms": 1000 * median_s}
        except Exception as error:  # noqa: BLE001  # whatever an engine that is not there, or cannot, raises
            told = {"failed": f"{type(error).__name__}: {error}"}
        print(json.dumps({"engine": name, "rules": len(job["rules"]), **told}), flush=True)


if __name__ == "__main__":
    main()
