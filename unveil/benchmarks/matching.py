"""What matching costs: the compiled fingerprints beside a plain loop over them, in one run.

Run it with ``python -m unveil.benchmarks.matching [fingerprints]``. CPU time of this thread alone, so that a busy
machine does not show; the target is one millisecond for 10,000 fingerprints of five clauses.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from unveil.matching.clauses import compare
from unveil.matching.matcher import Matcher
from unveil.records.entity import HOST, Entity, EntityKind
from unveil.records.fact import Fact, FactTable
from unveil.records.feature import FeatureId, FeatureLayout, FeatureVector
from unveil.records.fingerprint import FactClause, FeatureClause, Fingerprint
from unveil.records.subsystem import Subsystem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from unveil.records.fingerprint import Clause

Result = TypeVar("Result")

_FEATURES = 300
_CLAUSES = 5
_ROUNDS = 200
_COUNTS: Mapping[EntityKind, int] = {EntityKind.HOST: 1, EntityKind.GPU: 8, EntityKind.NIC: 4, EntityKind.CGROUP: 40}
_OPERATORS = ("gte", "lt", "gt", "lte")
_CONDITIONS = (
    "c0 and c1 and c2 and c3 and c4",
    "c0 and c1 and (c2 or c3) and not c4",
    "c0 and c4 and 2 of c*",
)


class _Reference:
    """A reference that knows every feature: the dearest case."""

    def __init__(self, layout: FeatureLayout) -> None:
        self._known = {(feature.name, feature.entity): (0.5, 0.1) for feature in layout.ids}

    def lookup(self, name: str, entity: Entity) -> tuple[float, float] | None:
        """Return a centre and a spread."""
        return self._known.get((name, entity))


def main() -> None:
    """Measure and print a table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    rows = [
        _measure("host only", count, (EntityKind.HOST,)),
        _measure("host only, one in five relative", count, (EntityKind.HOST,), relative=True),
        _measure("host, GPUs, NICs, cgroups", count, tuple(_COUNTS)),
        _measure("as shipped: 100 on 53 entities", 100, tuple(_COUNTS)),
    ]
    print(f"{count} fingerprints of {_CLAUSES} clauses, {_FEATURES} features a kind; CPU time in ms")
    heads = ("answers", "median", "p99", "matches", "new shape", "compile", "plain loop")
    print(" " * 34 + "".join(f"{head:>11}" for head in heads))
    for row in rows:
        print(row)


def _measure(title: str, count: int, kinds: Sequence[EntityKind], *, relative: bool = False) -> str:
    rng = np.random.default_rng(7)
    fingerprints = tuple(_fingerprint(index, kinds[index % len(kinds)], rng, relative) for index in range(count))
    entities = {
        kind: [HOST] if kind is EntityKind.HOST else [Entity(kind, f"{kind}{index}") for index in range(_COUNTS[kind])]
        for kind in kinds
    }
    everything = [entity for members in entities.values() for entity in members]
    layout = FeatureLayout(
        tuple(FeatureId(f"memory.feature{index}.mean", entity) for entity in everything for index in range(_FEATURES))
    )
    facts = FactTable(tuple(Fact(name="memory.fact", entity=entity, value=1.0) for entity in everything))
    values = rng.random(len(layout.ids))
    vector = FeatureVector(window=0, wall_s=0.0, layout=layout, values=values)
    reference = _Reference(layout)
    matcher, compiled = _timed(lambda: Matcher(fingerprints))
    matches, first = _timed(lambda: matcher.evaluate(vector, facts, reference))
    costs = sorted(_timed(lambda: matcher.evaluate(vector, facts, reference))[1] for _ in range(_ROUNDS))
    answers = sum(_COUNTS[fingerprint.group_by] for fingerprint in fingerprints)
    _, plain = _timed(lambda: _plain_loop(fingerprints, entities, vector, facts))
    return (
        f"{title:34}{answers:11}{costs[_ROUNDS // 2]:11.3f}{costs[int(_ROUNDS * 0.99)]:11.3f}{len(matches):11}"
        f"{first:11.1f}{compiled:11.0f}{plain:11.1f}"
    )


def _fingerprint(index: int, kind: EntityKind, rng: np.random.Generator, relative: bool) -> Fingerprint:
    """Return a fingerprint whose first clause seldom holds: almost none matches, as on a real host."""
    rare = 1.0 - 1e-5
    clauses: list[Clause] = [_feature("c0", rng, "gt", rare)]
    clauses += [_feature(f"c{number}", rng, _OPERATORS[number % 4], float(rng.random())) for number in range(1, 4)]
    if relative:
        clauses.append(_feature("c4", rng, "up", 2.0))
    else:
        clauses.append(FactClause(name="c4", fact="memory.fact", entity=None, operator="eq", operand=1.0))
    return Fingerprint(
        name=f"fingerprint_{index}",
        id=str(index),
        title="",
        status="test",
        level="low",
        description="",
        group_by=kind,
        clauses=tuple(clauses),
        condition="all of c*" if relative else _CONDITIONS[index % len(_CONDITIONS)],
        hold_s=6.0,
        keep_firing_s=15.0,
        subsystem=Subsystem.MEMORY,
    )


def _feature(name: str, rng: np.random.Generator, operator: str, threshold: float) -> FeatureClause:
    feature = f"memory.feature{int(rng.integers(_FEATURES))}.mean"
    return FeatureClause(name=name, feature=feature, entity=None, operator=operator, threshold=threshold)


def _plain_loop(
    fingerprints: Sequence[Fingerprint],
    entities: Mapping[EntityKind, Sequence[Entity]],
    vector: FeatureVector,
    facts: FactTable,
) -> int:
    """Return how many clauses hold: the least that evaluating one clause after another can cost."""
    holding = 0
    for fingerprint in fingerprints:
        for entity in entities[fingerprint.group_by]:
            for clause in fingerprint.clauses:
                if isinstance(clause, FeatureClause):
                    value = vector.get(clause.feature, entity)
                    operator = "gte" if clause.operator == "up" else clause.operator
                    holding += value is not None and compare(value, operator, clause.threshold)
                elif isinstance(clause, FactClause):
                    holding += facts.value(clause.fact, entity) == clause.operand
    return holding


def _timed(work: Callable[[], Result]) -> tuple[Result, float]:
    begin = time.thread_time()
    result = work()
    return result, (time.thread_time() - begin) * 1e3


if __name__ == "__main__":
    main()
