"""Plan: the whole catalogue as a dozen numpy calls over one array of registers.

Every number that is made on the way to a feature has a register: a constant, a statistic of a channel, a sum over
instances, a sum over quantities, a ratio, a value taken across entities. Each step reads registers and writes others:
``work[out] = f(work[…])``. Equal numbers share a register, so the total of the CPU states is summed once and not once
for each share. Planning costs milliseconds and happens when the host changes its shape; running costs a part of one.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from unveil.features.feature import Across, Channels, Formula, Stat, Term
from unveil.features.statistics import STATISTICS
from unveil.records.entity import HOST, Entity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from unveil.features.roster import Roster
    from unveil.records.sample import SampleBlock

    Index = NDArray[np.intp]
    Floats = NDArray[np.float64]

Key = TypeVar("Key")

ABSENT = 0  # the register that holds NaN
ONE = 1
ZERO = 2


@dataclass(frozen=True, slots=True)
class Read:
    """A statistic of some columns of a block."""

    block: int
    stat: Stat
    columns: Index
    out: Index


@dataclass(frozen=True, slots=True)
class Groups:
    """Registers in groups, one result each: *members* from starts[i] on belong to out[i]."""

    members: Index
    starts: Index
    out: Index


@dataclass(frozen=True, slots=True)
class Ratios:
    """work[out] = scale * work[above] / work[below]."""

    above: Index
    below: Index
    scale: Floats
    out: Index


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in the order in which they run; *output* gives the registers of the features.

    *ceiling* is one for shares: counters of one file are not read in one instant, so a part may exceed its whole by a
    hair.
    """

    blank: Floats
    reads: tuple[Read, ...]
    instances: Groups
    quantities: Groups
    ratios: Ratios
    across: dict[Across, Groups]
    spread: tuple[Index, Index]  # (groups, widest) padded with ABSENT, and out
    output: Index
    ceiling: Floats

    def run(self, blocks: Sequence[SampleBlock]) -> Floats:
        """Return the features, shape (features,), of blocks that have the layouts the plan was made for.

        Finite or NaN: whatever overflows on the way is absent.
        """
        work = self.blank.copy()
        with np.errstate(all="ignore"):
            self._read(work, blocks)
            self._sum(work)
            ratios = self.ratios
            above, below = work[ratios.above], work[ratios.below]
            values = np.divide(above, below, out=np.full(len(above), np.nan), where=below > 0)
            work[ratios.out] = values * ratios.scale
            self._across(work)
            values = np.minimum(work[self.output], self.ceiling)
            values[~np.isfinite(values)] = np.nan
        return values

    def _read(self, work: Floats, blocks: Sequence[SampleBlock]) -> None:
        groups = itertools.groupby(self.reads, key=lambda read: read.block)
        for index, reads in groups:
            block = blocks[index]
            seconds = (block.times_ns - block.times_ns[0]) * 1e-9
            present = np.isfinite(block.values)
            if present.all():
                for read in reads:
                    work[read.out] = STATISTICS[read.stat](seconds, block.values[:, read.columns], None)
                continue
            # Most columns are there always or never (what this host does not have); only the rest is dear.
            always = present.all(axis=0)
            sometimes = present.any(axis=0) & ~always
            for read in reads:
                if (chosen := always[read.columns]).any():
                    values = block.values[:, read.columns[chosen]]
                    work[read.out[chosen]] = STATISTICS[read.stat](seconds, values, None)
                if (chosen := sometimes[read.columns]).any():
                    known = present[:, read.columns[chosen]]
                    values = np.where(known, block.values[:, read.columns[chosen]], np.nan)
                    work[read.out[chosen]] = STATISTICS[read.stat](seconds, values, known)

    def _sum(self, work: Floats) -> None:
        if len(self.instances.out):
            work[self.instances.out] = _totals(work, self.instances)[0]
        if len(self.quantities.out):
            work[self.quantities.out] = np.add.reduceat(work[self.quantities.members], self.quantities.starts)

    def _across(self, work: Floats) -> None:
        for across, groups in self.across.items():
            if across is Across.AVERAGE:
                total, count = _totals(work, groups)
                work[groups.out] = total / count
            else:
                pick = np.fmin if across is Across.LOWEST else np.fmax
                work[groups.out] = pick.reduceat(work[groups.members], groups.starts)
        matrix, out = self.spread
        if len(out):
            ordered = np.sort(work[matrix], axis=1)  # NaN last
            count = (~np.isnan(ordered)).sum(axis=1)
            row = np.arange(len(out))
            median = (ordered[row, (count - 1) // 2] + ordered[row, count // 2]) / 2
            work[out] = np.where(count > 1, ordered[row, count - 1] - median, np.nan)


def _totals(work: Floats, groups: Groups) -> tuple[Floats, NDArray[np.int64]]:
    """Return the sums of what is present in each group, NaN where nothing is, and how many that are."""
    values = work[groups.members]
    absent = np.isnan(values)
    values[absent] = 0.0
    total = np.add.reduceat(values, groups.starts)
    count = np.add.reduceat((~absent).astype(np.int64), groups.starts)
    total[count == 0] = np.nan
    return total, count


class Planner:
    """Hands out registers for formulas, then draws the plan."""

    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self._size = 3
        self._constants: dict[tuple[str, Entity], int] = {}
        self._reads: dict[tuple[int, Stat, int], int] = {}
        self._instances: dict[tuple[int, ...], int] = {}
        self._quantities: dict[tuple[int, ...], int] = {}
        self._ratios: dict[tuple[int, int, float], int] = {}
        self._across: dict[tuple[Across, tuple[int, ...]], int] = {}
        self._terms: dict[tuple[Term, Entity], int] = {}
        self._values: list[tuple[int, float]] = [(ONE, 1.0), (ZERO, 0.0)]

    def register(self, formula: Formula, entity: Entity) -> int:
        """Return the register that will hold the value of a formula for an entity."""
        if formula.across is None:
            return self._value(formula, entity)
        everyone = (self._value(formula, each) for each in self._roster.counted(formula.each))
        known = tuple(register for register in everyone if register != ABSENT)
        if not known or (formula.across is Across.IMBALANCE and len(known) < 2):
            return ABSENT
        return self._get(self._across, (formula.across, known))

    def draw(self, output: Sequence[int], ceiling: Sequence[float]) -> Plan:
        """Return the plan whose features stand in the given registers and do not exceed the given values."""
        blank = np.full(self._size, np.nan)
        for register, value in self._values:
            blank[register] = value
        columns: dict[tuple[int, Stat], list[tuple[int, int]]] = {}
        for (block, stat, column), register in sorted(self._reads.items()):
            columns.setdefault((block, stat), []).append((column, register))
        spread = {group: out for (across, group), out in self._across.items() if across is Across.IMBALANCE}
        widest = max(map(len, spread), default=1)
        return Plan(
            blank=blank,
            reads=tuple(
                Read(block, stat, _index(column for column, _ in pairs), _index(out for _, out in pairs))
                for (block, stat), pairs in columns.items()
            ),
            instances=_groups(self._instances),
            quantities=_groups(self._quantities),
            ratios=Ratios(
                above=_index(above for above, _, _ in self._ratios),
                below=_index(below for _, below, _ in self._ratios),
                scale=np.array([scale for _, _, scale in self._ratios], dtype=np.float64),
                out=_index(self._ratios.values()),
            ),
            across={
                across: _groups(chosen)
                for across in (Across.LOWEST, Across.AVERAGE, Across.HIGHEST)
                if (chosen := {group: out for (each, group), out in self._across.items() if each is across})
            },
            spread=(
                np.array([[*group, *[ABSENT] * (widest - len(group))] for group in spread], dtype=np.intp),
                _index(spread.values()),
            ),
            output=_index(output),
            ceiling=np.array(ceiling, dtype=np.float64),
        )

    def _value(self, formula: Formula, entity: Entity) -> int:
        above = self._sum(formula.numerator, entity)
        below = self._sum(formula.denominator, entity) if formula.denominator else ONE
        if ABSENT in (above, below):
            return ABSENT
        if below == ONE and formula.scale == 1.0:
            return above
        return self._get(self._ratios, (above, below, formula.scale))

    def _sum(self, terms: tuple[Term, ...], entity: Entity) -> int:
        registers = tuple(self._term(term, entity) for term in terms)
        if ABSENT in registers:
            return ABSENT
        return registers[0] if len(registers) == 1 else self._get(self._quantities, registers)

    def _term(self, term: Term, entity: Entity) -> int:
        if term.whole_for(entity.kind):  # many entities ask for the same total
            entity = HOST
        register = self._terms.get((term, entity))
        if register is None:
            register = self._terms[term, entity] = self._new_term(term, entity)
        return register

    def _new_term(self, term: Term, entity: Entity) -> int:
        if not isinstance(term, Channels):
            return self._constant(term.fact, entity)
        places = self._roster.places(term, entity)
        if places is None:
            return ABSENT
        registers = tuple(self._get(self._reads, (block, term.stat, column)) for block, column in places)
        if len(registers) > 1:
            return self._get(self._instances, registers)
        return registers[0] if registers else ZERO

    def _constant(self, fact: str, entity: Entity) -> int:
        value = self._roster.facts.value(fact, entity)
        if not isinstance(value, float | int) or isinstance(value, bool) or not math.isfinite(value):
            return ABSENT
        known = len(self._constants)
        register = self._get(self._constants, (fact, entity))
        if len(self._constants) > known:
            self._values.append((register, float(value)))
        return register

    def _get(self, registers: dict[Key, int], key: Key) -> int:
        register = registers.get(key)
        if register is None:
            register = registers[key] = self._size
            self._size += 1
        return register


def _index(numbers: Iterable[int]) -> Index:
    return np.fromiter(numbers, dtype=np.intp)


def _groups(groups: dict[tuple[int, ...], int]) -> Groups:
    starts = np.cumsum([0, *map(len, groups)][:-1] if groups else [], dtype=np.intp)
    return Groups(_index(member for group in groups for member in group), starts, _index(groups.values()))
