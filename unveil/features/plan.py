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
from unveil.features.roster import SPAN
from unveil.features.statistics import STATISTICS
from unveil.records.entity import HOST, Entity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from unveil.features.roster import Roster
    from unveil.records.sample import SampleBlock

    Index = NDArray[np.intp]
    Floats = NDArray[np.float64]

Key = TypeVar("Key")
Entities = tuple[Entity, ...]

ABSENT = 0  # the register that holds NaN
ONE = 1
ZERO = 2
_HOSTS = (HOST,)


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
        self._reads: dict[Stat, dict[int, int]] = {}  # code of a place → register
        self._instances: dict[tuple[int, ...], int] = {}
        self._quantities: dict[tuple[int, ...], int] = {}
        self._ratios: dict[tuple[int, int, float], int] = {}
        self._across: dict[tuple[Across, tuple[int, ...]], int] = {}
        # By identity, which is cheaper than to compare terms; kept with both, so that no other gets their identity.
        self._terms: dict[tuple[int, int], tuple[list[int], Term, Entities]] = {}
        self._values: list[tuple[int, float]] = [(ONE, 1.0), (ZERO, 0.0)]

    def register(self, formula: Formula, entity: Entity) -> int:
        """Return the register that will hold the value of a formula for an entity."""
        return self.registers(formula, (entity,))[0]

    def registers(self, formula: Formula, entities: Entities) -> list[int]:
        """Return the registers that will hold the values of a formula for entities of one kind."""
        if formula.across is None:
            return self._ratio(formula, entities)
        everyone = self._ratio(formula, self._roster.counted(formula.each))
        known = tuple(register for register in everyone if register != ABSENT)
        few = not known or (formula.across is Across.IMBALANCE and len(known) < 2)
        return [ABSENT if few else self._get(self._across, (formula.across, known))] * len(entities)

    def draw(self, output: Sequence[int], ceiling: Sequence[float]) -> Plan:
        """Return the plan whose features stand in the given registers and do not exceed the given values."""
        blank = np.full(self._size, np.nan)
        for register, value in self._values:
            blank[register] = value
        ratios = np.array(list(self._ratios), dtype=np.float64).reshape(-1, 3)
        spread = {group: out for (across, group), out in self._across.items() if across is Across.IMBALANCE}
        widest = max(map(len, spread), default=1)
        return Plan(
            blank=blank,
            reads=tuple(sorted(self._drawn_reads(), key=lambda read: (read.block, read.stat))),
            instances=_groups(self._instances),
            quantities=_groups(self._quantities),
            ratios=Ratios(
                above=ratios[:, 0].astype(np.intp),
                below=ratios[:, 1].astype(np.intp),
                scale=ratios[:, 2].copy(),
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

    def _drawn_reads(self) -> Iterator[Read]:
        for stat, registers in self._reads.items():
            codes, out = _index(registers), _index(registers.values())
            order = np.argsort(codes)
            blocks, columns = np.divmod(codes[order], SPAN)
            for block in sorted(set(blocks.tolist())):  # not numpy.unique, which brings numpy's masked arrays along
                here = slice(*np.searchsorted(blocks, [block, block + 1]))
                yield Read(block, stat, columns[here], out[order][here])

    def _ratio(self, formula: Formula, entities: Entities) -> list[int]:
        above = self._sum(formula.numerator, entities)
        scale = formula.scale
        if not formula.denominator and scale == 1.0:
            return above
        below = self._sum(formula.denominator, entities) if formula.denominator else [ONE] * len(entities)
        return [
            ABSENT if ABSENT in (over, under) else self._get(self._ratios, (over, under, scale))
            for over, under in zip(above, below, strict=True)
        ]

    def _sum(self, terms: tuple[Term, ...], entities: Entities) -> list[int]:
        parts = [self._term(term, entities) for term in terms]
        if len(parts) == 1:
            return parts[0]
        return [
            ABSENT if ABSENT in registers else self._get(self._quantities, registers)
            for registers in zip(*parts, strict=True)
        ]

    def _term(self, term: Term, entities: Entities) -> list[int]:
        if entities and entities is not _HOSTS and term.whole_for(entities[0].kind):  # many ask for the same total
            return self._term(term, _HOSTS) * len(entities)
        known = self._terms.get((id(term), id(entities)))
        if known is None:
            known = self._terms[id(term), id(entities)] = self._new_term(term, entities), term, entities
        return known[0]

    def _new_term(self, term: Term, entities: Entities) -> list[int]:
        if not isinstance(term, Channels):
            return [self._constant(term.fact, entity) for entity in entities]
        reads = self._reads.setdefault(term.stat, {})
        if term.pick is not None:
            return [self._instance(reads, self._roster.codes(term, entity)) for entity in entities]
        groups = self._roster.groups(term, entities[0].kind) if entities else {}
        return [self._instance(reads, groups.get(entity.key)) for entity in entities]

    def _instance(self, reads: dict[int, int], codes: list[int] | None) -> int:
        """Return the register of a sum over instances."""
        if codes is None:
            return ABSENT
        if len(codes) == 1:  # mostly
            return reads.get(codes[0]) or self._get(reads, codes[0])
        registers = tuple([reads.get(code) or self._get(reads, code) for code in codes])
        return self._get(self._instances, registers) if registers else ZERO

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
