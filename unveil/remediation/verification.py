"""Did a fix help? Judged on fresh windows by what the host does, not by what the playbook said.

Fed by `push`, one window at a time; pure, so it judges live, in replay and in tests alike. The answers: *kept* (the
settings hold, the fingerprint cleared, the named features improved, nothing named got worse), *failed* (which rolls
back where the plan asks for it), *changed by someone else*, and *inconclusive*, which is an answer of its own: what
could not be measured is neither success nor failure, and is left for a person.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unveil.records.averages import mean
from unveil.records.entity import HOST, parse_entity
from unveil.records.remediation import NOTHING
from unveil.records.run import RunState
from unveil.remediation.lifecycle import Cause, wants_rollback
from unveil.remediation.setting import equal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unveil.records.entity import Entity
    from unveil.records.feature import FeatureVector
    from unveil.records.remediation import Improvement
    from unveil.records.run import Plan

SETTLE_S = 3.0  # length of a window: those that end sooner still hold samples from before the fix
MOST_STEP_S = (
    60.0  # windows come every second; after a longer step, or one backwards, the clock was set or nobody looked
)
WORSE_WINDOWS = 3  # so many windows on end that something must be worse before the fix is taken back early


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One named feature before and after.

    Attributes:
        before, after: None where absent. *after* is the mean over the last windows.
        change: (after - before) / \\|before\\|; where before is 0 the plain difference, in the feature's own unit.
        holds: it improved as much as demanded, or did not worsen more than tolerated; None when unknown.
        optional: what is unknown does not count.
    """

    feature: str
    demand: str
    before: float | None
    after: float | None
    change: float | None
    holds: bool | None
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The step that follows from verification (`lifecycle.advance` takes it), and what was measured."""

    state: RunState
    cause: Cause
    detail: str
    measured: tuple[Measured, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a verification is: for who watches it.

    Attributes:
        left_s: until an answer is given in any case.
        held_s, hold_s: for how long the settings have read as they were written, and have to.
        clear_s, stay_clear_s: for how long the fingerprint has been clear, and has to; None while it is not.
        measured: the named features as they stand.
    """

    left_s: float
    held_s: float
    hold_s: float
    clear_s: float | None
    stay_clear_s: float
    measured: tuple[Measured, ...]


class Verifier:
    """Judges one run.

    Args:
        plan: what was applied; its rule says what must be seen, its baseline what was there before.
        started_s: wall clock when the playbook ended.
        written: address → content right after apply, of each managed setting (`Run.written`).
        baseline: fresher measurements than the plan's, taken right before apply.
    """

    def __init__(
        self,
        plan: Plan,
        started_s: float,
        *,
        written: Mapping[str, str],
        baseline: Mapping[str, float] | None = None,
    ) -> None:
        self._plan = plan
        self._rule = plan.verification
        self.started_s = started_s
        # What is coupled may move by itself (adaptive moderation does): only what was asked for must hold.
        along = {change.address for change in plan.changes if change.coupled}
        self._written = {address: content for address, content in written.items() if address not in along}
        self._baseline = dict(plan.baseline if baseline is None else baseline)
        self._looked_s = started_s
        self._held_since: float | None = None
        self._clear_since: float | None = None
        self._matching: bool | None = None
        self._worse = 0
        features = (*self._rule.improve, *self._rule.must_not_worsen)
        # The mean over the last windows, as many as the fingerprint must stay clear for, at least three.
        length = max(WORSE_WINDOWS, round(self._rule.clear_s))
        self._values: dict[str, deque[float]] = {each.feature: deque(maxlen=length) for each in features}
        self._after_s = {each.feature: each.after_s for each in sorted(features, key=lambda each: each.after_s)}

    def push(
        self,
        vector: FeatureVector | None,
        matching: bool | None,
        settings: Mapping[str, str | None],
        wall_s: float,
    ) -> Outcome | None:
        """Take one window, and answer once there is an answer.

        Args:
            vector: None when no window came (call it all the same once a second: the time runs out).
            matching: does the fingerprint match the episode's entity in this window; None is unknown.
            settings: address → what each written setting reads now, None where it cannot be read.
            wall_s: wall clock at the end of the window.

        Returns:
            None while it is too early to say.
        """
        if not -1.0 <= wall_s - self._looked_s <= MOST_STEP_S:
            self._begin_anew(wall_s)
        self._looked_s = wall_s
        if (foreign := self._foreign(settings)) is not None:
            return Outcome(
                state=RunState.REVERTED_BY_OTHER, cause=Cause.CHANGED_BY_OTHER, detail=foreign, measured=self.measured()
            )
        readable = all(settings.get(address) is not None for address in self._written)
        self._held_since = (self.started_s if self._held_since is None else self._held_since) if readable else wall_s
        settled = wall_s - self.started_s >= SETTLE_S
        if vector is not None and settled:
            self._take(vector, wall_s - self.started_s)
            self._matching = matching
            if matching is False:
                self._clear_since = wall_s if self._clear_since is None else self._clear_since
            else:
                self._clear_since = None  # unknown is not clear
        return self._answer(wall_s, readable)

    def _begin_anew(self, wall_s: float) -> None:
        """Forget what was seen before the clock was set: else an answer would wait for as long as it was set back."""
        self.started_s = wall_s
        self._held_since = self._clear_since = self._matching = None
        self._worse = 0
        for values in self._values.values():
            values.clear()

    def measured(self) -> tuple[Measured, ...]:
        """Return each named feature as it stands now."""
        return (
            *(self._measure(each, "improve") for each in self._rule.improve),
            *(self._measure(each, "must not worsen") for each in self._rule.must_not_worsen),
        )

    def progress(self) -> Progress:
        """Return how far it is, as of the last look."""
        now_s = self._looked_s
        return Progress(
            left_s=max(0.0, self._rule.within_s - (now_s - self.started_s)),
            held_s=0.0 if self._held_since is None else now_s - self._held_since,
            hold_s=self._rule.settings_hold_s,
            clear_s=None if self._clear_since is None else now_s - self._clear_since,
            stay_clear_s=self._rule.clear_s,
            measured=self.measured(),
        )

    def _foreign(self, settings: Mapping[str, str | None]) -> str | None:
        for address, ours in self._written.items():
            now = settings.get(address)
            if now is not None and not equal(address, now, ours):
                return f"{address} reads {now.strip()[:200]!a}, we wrote {ours.strip()[:200]!a}"
        return None

    def _take(self, vector: FeatureVector, since_s: float) -> None:
        for name, values in self._values.items():
            value = vector.get(name, self._place(name)) if since_s >= self._after_s[name] else None
            if value is None:
                values.clear()
            else:
                values.append(value)
        worse = [
            each
            for each in self._rule.must_not_worsen
            if self._measure(each, "must not worsen", newest=True).holds is False
        ]
        self._worse = self._worse + 1 if worse else 0

    def _place(self, name: str) -> Entity:
        """Return the entity whose feature the baseline holds; the same one is compared."""
        for key in self._baseline:
            feature, _, entity = key.partition("[")
            if feature == name:
                return parse_entity(entity[:-1]) if entity else HOST
        return HOST

    def _before(self, name: str) -> float | None:
        return next((value for key, value in self._baseline.items() if key.partition("[")[0] == name), None)

    def _measure(self, each: Improvement, demand: str, *, newest: bool = False) -> Measured:
        values = self._values[each.feature]
        before = self._before(each.feature)
        after = None if not values else values[-1] if newest else mean(values)
        change = holds = None
        if before is not None and after is not None:
            change = (after - before) / (abs(before) if abs(before) > NOTHING else 1.0)
            towards = change if each.direction == "up" else -change
            holds = towards >= each.effect if demand == "improve" else towards <= each.effect
        text = f"{demand}: {each.demand(improve=demand == 'improve', before=before)}"
        return Measured(
            feature=each.feature, demand=text, before=before, after=after, change=change, holds=holds,
            optional=each.optional,
        )  # fmt: skip

    def _answer(self, wall_s: float, readable: bool) -> Outcome | None:
        measured = self.measured()
        if self._worse >= WORSE_WINDOWS:
            names = ", ".join(each.feature for each in measured if each.holds is False and "worsen" in each.demand)
            return self._failed(Cause.WORSENED, f"worse for {self._worse} windows: {names}", measured)
        held = readable and self._held_since is not None and wall_s - self._held_since >= self._rule.settings_hold_s
        clear = self._clear_since is not None and wall_s - self._clear_since >= self._rule.clear_s
        over = wall_s - self.started_s >= self._rule.within_s
        if held and clear and all(_enough(each, over=over) for each in measured):
            return Outcome(
                state=RunState.KEPT,
                cause=Cause.VERIFIED,
                detail=f"verified {wall_s - self.started_s:.0f} s after apply",
                measured=measured,
            )
        return self._late(held, clear, measured) if over else None

    def _late(self, held: bool, clear: bool, measured: tuple[Measured, ...]) -> Outcome:
        """Return the answer when the time is up: what is certain first, and only then what is unknown."""
        if self._matching:
            return self._failed(
                Cause.NOT_VERIFIED, f"{self._plan.fingerprint} still matches {self._plan.entity}", measured
            )
        if clear and (missed := [f"{each.feature} ({each.demand})" for each in measured if each.holds is False]):
            return self._failed(Cause.NOT_VERIFIED, f"the effect is missing: {', '.join(missed)}", measured)
        unknown = [f"{each.feature} is absent" for each in measured if each.holds is None and not each.optional]
        if not held:
            unknown.append("the settings could not be read long enough")
        if self._matching is None:
            unknown.append(f"whether {self._plan.fingerprint} still matches is unknown")
        elif not clear:
            unknown.append(f"{self._plan.fingerprint} cleared too late to be sure")
        return Outcome(state=RunState.INCONCLUSIVE, cause=Cause.NO_ANSWER, detail="; ".join(unknown), measured=measured)

    def _failed(self, cause: Cause, detail: str, measured: tuple[Measured, ...]) -> Outcome:
        if wants_rollback(self._plan, cause):
            return Outcome(state=RunState.ROLLING_BACK, cause=cause, detail=detail, measured=measured)
        return Outcome(state=RunState.FAILED_DIRTY, cause=Cause.NO_ROLLBACK, detail=detail, measured=measured)


def _enough(measured: Measured, *, over: bool) -> bool:
    """Return whether a feature stands in the way of a fix's being kept no more; *over* is the time for it."""
    return measured.holds is True or (
        measured.optional and measured.holds is None and (over or measured.before is None)
    )  # fmt: skip
