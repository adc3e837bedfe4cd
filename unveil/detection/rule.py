"""Rule: how the votes of the detectors become one answer. ``zscore|mahalanobis`` or ``2of3``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unveil.errors import BadInputError
from unveil.records.verdict import State

if TYPE_CHECKING:
    from collections.abc import Iterable

    from unveil.records.verdict import Vote

DEFAULT_RULE = "shift"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """At least *needed* of *members* vote anomalous."""

    text: str
    members: tuple[str, ...]
    needed: int

    def decide(self, votes: Iterable[Vote]) -> State:
        """Return the answer of the votes that are there; unknown where those that are missing could turn it.

        Of ``a|b`` with b not fitted yet, a alone decides: a detector that cannot vote yet is no reason to stay blind.
        With k-of-n rules too few voters leave it unknown.
        """
        cast = [vote.anomalous for vote in votes if vote.detector in self.members]
        if sum(cast) >= self.needed:
            return State.ANOMALOUS
        return State.NORMAL if len(cast) >= self.needed else State.UNKNOWN

    def rate(self, wanted: float) -> float:
        """Return the false-alarm rate to allow each member so that the rule as a whole stays within *wanted*.

        With n members at rate r, at least k of them alarm together no more often than ``n r / k``, whatever their
        dependence (Markov's bound; for an OR that of Bonferroni).
        """
        return wanted * self.needed / len(self.members)


def parse_rule(text: str, known: tuple[str, ...]) -> Rule:
    """Return the rule that a text writes.

    Args:
        text: names joined by ``|`` (any of them), or ``KofN`` over the first N known detectors.
        known: names of all detectors; the paper's three come first.

    Raises:
        BadInputError: an unknown detector, or numbers that do not fit.
    """
    hint = f"write names joined by '|' ({'|'.join(known)}) or a number of them, e.g. 2of{len(known)}"
    counted = re.fullmatch(r"([0-9]{1,3})of([0-9]{1,3})", text.strip())
    if counted:
        needed, total = int(counted[1]), int(counted[2])
        if not 1 <= needed <= total <= len(known):
            raise BadInputError(f"rule {text!r} counts {needed} of {total}, there are {len(known)}", hint=hint)
        return Rule(text=f"{needed}of{total}", members=known[:total], needed=needed)
    names = tuple(dict.fromkeys(name.strip() for name in text.split("|")))
    unknown = [name for name in names if name not in known]
    if unknown:
        raise BadInputError(f"rule {text!r} names no detector: {unknown[0]!r}", hint=hint)
    return Rule(text="|".join(names), members=names, needed=1)
