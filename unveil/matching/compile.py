"""Fingerprints of one kind of entity → arrays: evaluating all of them is a dozen numpy calls, whatever their number.

Three ideas make it one pass.

* Everything a clause can ask becomes a *row* of numbers, one column per entity, NaN where it is absent: a feature in
  its own unit, a ratio, a slope, the distance from what is expected, a subsystem's share, a fact already compared
  (1 yes, -1 no).
* Every clause becomes a *leaf* ``row >= threshold``. The negated rows stand below the rows, so ``<=`` is ``>=`` of the
  negated one; a strict bound is the next representable number; ``not`` is pushed down to the leaves (De Morgan for
  ``K of N``: its opposite is ``N-K+1 of N`` of the opposites); ``eq`` is two leaves.
* Every ``and``, ``or`` and ``K of`` becomes a *gate*; gates of one depth and shape are evaluated together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from unveil.errors import BadInputError
from unveil.matching.condition import NO, UNKNOWN, YES, ClauseName, Not, Quantity, at_least, parse_condition
from unveil.records.fingerprint import FactClause, ShareClause

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from unveil.matching.condition import Node
    from unveil.records.entity import EntityKind
    from unveil.records.fact import FactValue
    from unveil.records.fingerprint import Clause, FeatureClause, Fingerprint
    from unveil.records.subsystem import Subsystem


@dataclass(frozen=True, slots=True)
class FeatureRow:
    """A feature in its own unit."""

    feature: str
    kind: EntityKind


@dataclass(frozen=True, slots=True)
class RatioRow:
    """A feature divided by another one, of the same entity or of the host."""

    feature: str
    kind: EntityKind
    per: str
    per_kind: EntityKind


@dataclass(frozen=True, slots=True)
class SlopeRow:
    """How fast a feature rises, per second."""

    feature: str
    kind: EntityKind
    over_s: float


@dataclass(frozen=True, slots=True)
class DeviationRow:
    """A feature's distance from what the reference expects: in sigmas, or as a part of it."""

    feature: str
    kind: EntityKind
    unit: str


@dataclass(frozen=True, slots=True)
class PeerRow:
    """The distance of a feature, or of a ratio, from that of the entity's peers."""

    feature: str
    kind: EntityKind
    per: str
    per_kind: EntityKind
    unit: str


@dataclass(frozen=True, slots=True)
class ShareRow:
    """A subsystem's share in the attribution."""

    subsystem: Subsystem


@dataclass(frozen=True, slots=True)
class FactRow:
    """A fact, compared: 1 as asked, -1 otherwise.

    Attributes:
        boolean: whether the operand is one; as a key, True equals 1.0, as an operand it does not.
    """

    fact: str
    kind: EntityKind
    operator: str
    operand: FactValue
    boolean: bool


Row = FeatureRow | RatioRow | SlopeRow | DeviationRow | PeerRow | ShareRow | FactRow


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Gates:
    """Gates of one depth, one number of operands and one quantity.

    Attributes:
        count: how many operands must hold.
        operands: shape (operands, gates): positions among the answers.
        start, stop: where the answers of these gates stand.
    """

    count: int
    operands: NDArray[np.intp]
    start: int
    stop: int


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Answered:
    """What a program said of a window: -1 no, 0 unknown, 1 yes.

    Attributes:
        leaves: shape (leaves, entities).
        fingerprints: shape (fingerprints, entities).
    """

    leaves: NDArray[np.int8]
    fingerprints: NDArray[np.int8]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Program:
    """All fingerprints of one kind of entity.

    Attributes:
        features, ratios, slopes, deviations, peers, shares, facts: the rows, in this order.
        leaf_row: shape (leaves,): position in the rows followed by the negated rows.
        leaf_threshold: shape (leaves, 1), finite or infinite, never NaN.
        leaf_absent: shape (leaves, 1): answer plus one where the row is NaN.
        roots: shape (fingerprints,): position of each fingerprint's answer.
        size: number of leaves and gates.
    """

    kind: EntityKind
    fingerprints: tuple[Fingerprint, ...]
    features: tuple[FeatureRow, ...]
    ratios: tuple[RatioRow, ...]
    slopes: tuple[SlopeRow, ...]
    deviations: tuple[DeviationRow, ...]
    peers: tuple[PeerRow, ...]
    shares: tuple[ShareRow, ...]
    facts: tuple[FactRow, ...]
    leaf_row: NDArray[np.intp]
    leaf_threshold: NDArray[np.float64]
    leaf_absent: NDArray[np.int8]
    gates: tuple[Gates, ...]
    roots: NDArray[np.intp]
    size: int

    @property
    def rows(self) -> int:
        """Return the number of rows, the negated ones not counted."""
        return self.start_of_facts + len(self.facts)

    @property
    def start_of_facts(self) -> int:
        """Return the position of the first row that is a fact."""
        measured = len(self.features) + len(self.ratios) + len(self.slopes)
        return measured + len(self.deviations) + len(self.peers) + len(self.shares)

    def run(self, rows: NDArray[np.float64], before: Answered | None = None) -> Answered:
        """Return the answers.

        Args:
            rows: shape (2 x rows, entities): the rows and the negated rows, NaN where absent.
            before: those of an earlier window on the same entities, which stand if no clause has another answer.
        """
        asked = rows.take(self.leaf_row, axis=0)
        leaves = np.empty(asked.shape, dtype=np.int8)
        np.greater_equal(asked, self.leaf_threshold, out=leaves.view(np.bool_))
        leaves += leaves
        leaves -= 1
        absent = np.isnan(asked)
        if absent.any():
            leaves += absent.view(np.int8) * self.leaf_absent
        if before is not None and np.array_equal(before.leaves, leaves):
            return before
        answers = np.empty((self.size, rows.shape[1]), dtype=np.int8)
        answers[: len(leaves)] = leaves
        for gates in self.gates:
            answers[gates.start : gates.stop] = at_least(gates.count, answers.take(gates.operands, axis=0))
        return Answered(leaves=leaves, fingerprints=answers.take(self.roots, axis=0))


def compile_program(kind: EntityKind, fingerprints: Sequence[Fingerprint]) -> Program:
    """Return the program of fingerprints that are all grouped by *kind*.

    Raises:
        ConditionError: a condition does not parse or does not fit its clauses.
        BadInputError: an operator that a clause cannot have, or a threshold that is no number.
    """
    builder = _Builder(kind)
    roots = [builder.add(fingerprint) for fingerprint in fingerprints]
    return builder.build(tuple(fingerprints), roots)


@dataclass(slots=True)
class _Builder:
    """Collects rows, leaves and gates, each only once however many fingerprints share it."""

    kind: EntityKind
    rows: dict[Row, int] = field(default_factory=dict)
    nodes: dict[tuple[object, ...], int] = field(default_factory=dict)
    depth: list[int] = field(default_factory=list)

    def add(self, fingerprint: Fingerprint) -> int:
        """Return the node that answers a fingerprint."""
        clauses = {clause.name: clause for clause in fingerprint.clauses}
        for clause in fingerprint.clauses:  # also those that the condition leaves out: they are checked and explained
            self._clause(clause, True)
        return self._lower(parse_condition(fingerprint.condition).bind(clauses).root, clauses, True)

    def _lower(self, node: Node, clauses: dict[str, Clause], positive: bool) -> int:
        if isinstance(node, ClauseName):
            return self._clause(clauses[node.name], positive)
        if isinstance(node, Not):
            return self._lower(node.operand, clauses, not positive)
        assert not isinstance(node, Quantity)  # bound
        operands = [self._lower(operand, clauses, positive) for operand in node.operands]
        return self._gate(node.count if positive else len(operands) - node.count + 1, operands)

    def _clause(self, clause: Clause, positive: bool) -> int:
        operator = clause.operator
        if isinstance(clause, FactClause):
            kind, operand = clause.entity or self.kind, clause.operand
            fact = FactRow(clause.fact, kind, operator, operand, isinstance(operand, bool))
            return self._leaf(fact, "gte" if positive else "lt", 0.0, _absent(clause, positive))
        row: Row
        threshold = clause.threshold
        if math.isnan(threshold):
            raise BadInputError(f"clause {clause.name!r} compares with no number")
        if isinstance(clause, ShareClause):
            row = ShareRow(clause.subsystem)
        else:
            row = _feature_row(clause, self.kind)
            if operator in ("up", "down"):
                operator, threshold = ("gte", threshold) if operator == "up" else ("lte", -threshold)
        operator = operator if positive else _OPPOSITE.get(operator, operator)
        absent = _absent(clause, positive)
        if operator == "eq":
            return self._gate(2, [self._leaf(row, side, threshold, absent) for side in ("gte", "lte")])
        if operator == "neq":
            return self._gate(1, [self._leaf(row, side, threshold, absent) for side in ("gt", "lt")])
        return self._leaf(row, operator, threshold, absent)

    def _leaf(self, row: Row, operator: str, threshold: float, absent: int) -> int:
        """Return the leaf of ``row operator threshold``, with the answer it gives where the row is absent."""
        if operator not in ("lt", "lte", "gt", "gte"):
            raise BadInputError(f"a clause cannot have the operator {operator!r}")
        negated = operator in ("lt", "lte")
        bound = -threshold if negated else threshold
        if operator in ("lt", "gt"):
            bound = math.nextafter(bound, math.inf)
        return self._node(("leaf", self.rows.setdefault(row, len(self.rows)), negated, bound, absent), 0)

    def _gate(self, count: int, operands: list[int]) -> int:
        if len(operands) == 1:
            return operands[0]
        depth = 1 + max(self.depth[operand] for operand in operands)
        return self._node(("gate", count, tuple(operands)), depth)

    def _node(self, key: tuple[object, ...], depth: int) -> int:
        found = self.nodes.setdefault(key, len(self.nodes))
        if found == len(self.depth):
            self.depth.append(depth)
        return found

    def build(self, fingerprints: tuple[Fingerprint, ...], roots: list[int]) -> Program:
        """Return the arrays."""
        ordered = {kind: [row for row in self.rows if isinstance(row, kind)] for kind in _ROW_ORDER}
        row_at = {row: index for index, row in enumerate(row for rows in ordered.values() for row in rows)}
        place = np.fromiter((row_at[row] for row in self.rows), np.intp, len(self.rows))
        leaves = [(node, key) for key, node in self.nodes.items() if key[0] == "leaf"]
        position = np.zeros(len(self.nodes), dtype=np.intp)
        position[[node for node, _ in leaves]] = np.arange(len(leaves))
        gates = self._gates(len(leaves), position)
        keys = np.array([key[1:] for _, key in leaves], dtype=np.float64).reshape(len(leaves), 4)
        return Program(
            kind=self.kind,
            fingerprints=fingerprints,
            features=tuple(row for row in row_at if isinstance(row, FeatureRow)),
            ratios=tuple(row for row in row_at if isinstance(row, RatioRow)),
            slopes=tuple(row for row in row_at if isinstance(row, SlopeRow)),
            deviations=tuple(row for row in row_at if isinstance(row, DeviationRow)),
            peers=tuple(row for row in row_at if isinstance(row, PeerRow)),
            shares=tuple(row for row in row_at if isinstance(row, ShareRow)),
            facts=tuple(row for row in row_at if isinstance(row, FactRow)),
            leaf_row=place[keys[:, 0].astype(np.intp)] + len(row_at) * keys[:, 1].astype(np.intp),
            leaf_threshold=np.ascontiguousarray(keys[:, 2:3]),
            leaf_absent=keys[:, 3:4].astype(np.int8) + np.int8(1),
            gates=gates,
            roots=position[roots],
            size=len(self.nodes),
        )

    def _gates(self, start: int, position: NDArray[np.intp]) -> tuple[Gates, ...]:
        """Return the gates by depth and shape, and note in *position* where their answers stand."""
        shapes: dict[tuple[int, int, int], list[tuple[int, tuple[int, ...]]]] = {}
        for key, node in self.nodes.items():
            if key[0] == "gate":
                _, count, operands = key
                assert isinstance(count, int)
                assert isinstance(operands, tuple)
                shapes.setdefault((self.depth[node], len(operands), count), []).append((node, operands))
        built = []
        for (_, _, count), members in sorted(shapes.items()):
            stop = start + len(members)
            position[[node for node, _ in members]] = np.arange(start, stop)
            operands_at = np.ascontiguousarray(position[np.array([operands for _, operands in members])].T)
            built.append(Gates(count=count, operands=operands_at, start=start, stop=stop))
            start = stop
        return tuple(built)


_ROW_ORDER = (FeatureRow, RatioRow, SlopeRow, DeviationRow, PeerRow, ShareRow, FactRow)

_OPPOSITE = {"lt": "gte", "lte": "gt", "gt": "lte", "gte": "lt", "eq": "neq", "neq": "eq"}


def _feature_row(clause: FeatureClause, group_by: EntityKind) -> Row:
    kind = clause.entity or group_by
    per_kind = clause.per_entity or kind
    if clause.operator in ("up", "down"):
        if clause.against == "peers":
            return PeerRow(clause.feature, kind, clause.per, per_kind, clause.unit)
        return DeviationRow(clause.feature, kind, clause.unit)
    if clause.slope_s:
        return SlopeRow(clause.feature, kind, clause.slope_s)
    return RatioRow(clause.feature, kind, clause.per, per_kind) if clause.per else FeatureRow(clause.feature, kind)


def _absent(clause: Clause, positive: bool) -> int:
    """Return what a clause, or its opposite, answers where the host gives nothing to compare."""
    if not clause.optional:
        return UNKNOWN
    return NO if positive else YES
