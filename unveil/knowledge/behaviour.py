"""What a change of the knowledge base does on recordings: which windows match, what fires, what would be done.

Both sides watched the same recordings with the same seed, so what differs is of the change. A window is told by when it
began; an action is the same when fingerprint, entity, fix, outcome and settings are.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unveil.knowledge.backtest import labels_of
from unveil.knowledge.change import Change, Effect
from unveil.knowledge.labels import HEALTHY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from unveil.knowledge.backtest import Action, Trace

RUNS = "runs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """One fingerprint on one recording, where the two sides differ.

    Attributes:
        gained, lost: windows that match after and not before, and the reverse: seconds at which they begin.
        fires_before, fires_after: how often it fired; false_before and false_after of these in healthy time.
        beside: other fingerprints that match in the gained windows, too.
        actions_gained, actions_lost: what would be done, or no longer, in words.
        runs: whether something gained would run by itself.
    """

    recording: str
    fingerprint: str
    gained: tuple[float, ...]
    lost: tuple[float, ...]
    fires_before: int
    fires_after: int
    false_before: int
    false_after: int
    beside: tuple[str, ...]
    actions_gained: tuple[str, ...]
    actions_lost: tuple[str, ...]
    runs: bool

    @property
    def effect(self) -> Effect:
        """Return which way it goes: more matches is looser; what is done by itself, or fires wrongly, is a risk."""
        if self.runs or self.false_after > self.false_before:
            return Effect.RISK
        more = bool(self.gained) or self.fires_after > self.fires_before
        less = bool(self.lost) or self.fires_after < self.fires_before
        return Effect.CHANGED if more is less else Effect.LOOSENED if more else Effect.TIGHTENED

    @property
    def change(self) -> Change:
        """Return it in words, as one of the differences that a reviewer reads."""
        said = [f"fires {self.fires_before} → {self.fires_after}"]
        if self.false_before or self.false_after:
            said.append(f"of these in healthy time {self.false_before} → {self.false_after}")
        for word, windows in (("more", self.gained), ("fewer", self.lost)):
            if windows:
                said.append(f"{len(windows)} windows {word} match, e.g. at {windows[0]:.0f} s")
        if self.beside:
            said.append(f"there also: {', '.join(self.beside)}")
        said += [f"would now be done: {each}" for each in self.actions_gained]
        said += [f"would no longer be done: {each}" for each in self.actions_lost]
        what = f"{self.recording}: {'; '.join(said)}"
        return Change(kind="behaviour", name=self.fingerprint, effect=self.effect, what=what)


def differing(before: Sequence[Trace], after: Sequence[Trace]) -> Iterator[Behaviour]:
    """Yield each fingerprint and recording whose behaviour differs, recording by recording.

    Args:
        before, after: of the same recordings in the same order.
    """
    for old, new in zip(before, after, strict=True):
        names = {name for trace in (old, new) for window in trace.windows for name in window.matched}
        names |= {fire.fingerprint for trace in (old, new) for fire in trace.fires}  # and so all that act
        for name in sorted(names):
            found = _behaviour(name, old, new)
            if _differs(found):
                yield found


def _differs(found: Behaviour) -> bool:
    moved = found.gained or found.lost or found.actions_gained or found.actions_lost
    return bool(moved) or found.fires_before != found.fires_after


def _behaviour(name: str, old: Trace, new: Trace) -> Behaviour:
    was, now = ({each.start_s for each in trace.windows if name in each.matched} for trace in (old, new))
    gained = sorted(now - was)
    beside = {other for each in new.windows if each.start_s in now - was for other in each.matched} - {name}
    done_before, done_after = _actions(name, old), _actions(name, new)
    more = done_after - done_before
    return Behaviour(
        recording=new.recording,
        fingerprint=name,
        gained=tuple(gained),
        lost=tuple(sorted(was - now)),
        fires_before=_fires(name, old),
        fires_after=_fires(name, new),
        false_before=_fires(name, old, healthy=True),
        false_after=_fires(name, new, healthy=True),
        beside=tuple(sorted(beside)),
        actions_gained=tuple(sorted(more.elements())),
        actions_lost=tuple(sorted((done_before - done_after).elements())),
        runs=any(each.outcome == RUNS and _words(each) in more for each in new.actions),
    )


def _fires(name: str, trace: Trace, *, healthy: bool = False) -> int:
    own = [each for each in trace.fires if each.fingerprint == name]
    return sum(labels_of(trace, each) == {HEALTHY} for each in own) if healthy else len(own)


def _actions(name: str, trace: Trace) -> Counter[str]:
    return Counter(_words(each) for each in trace.actions if each.fingerprint == name and each.remediation)


def _words(action: Action) -> str:
    changes = f" ({'; '.join(action.changes)})" if action.changes else ""
    return f"{action.remediation} on {action.entity}, {action.outcome}{changes}"
