"""ActiveSource: a source at work in one sampler: its open files, what they cost, how it is doing."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from unveil.errors import SourceAbsentError
from unveil.host.facts.sheet import why
from unveil.host.kept_file import ABSENT, UNSUPPORTED, KeptFile
from unveil.host.source import PACES, SourceHealth, SourceState
from unveil.records.averages import median

if TYPE_CHECKING:
    from unveil.host.source import Feed, Pace, Source, Surroundings

_REMEMBERED = 9  # readings whose cost is kept
_ENOUGH = 5  # readings before a cost is believed
_CORE_SHARE = 0.01  # of one core, that reading a source may take at its pace where it says nothing else
_EASE = 0.5  # of its budget, below which a source that was slowed down may come back
_PATIENCE = 6  # judgements on end for which it must be so cheap; doubled each time that coming back was a mistake
_MOST_PATIENCE = 360
_STOPPED_PATIENCE = 60  # judgements, after which a source that is not read any more is given another chance


class ActiveSource:
    """One source of one sampler.

    Attributes:
        pace: how often it is read now; the source's own pace or a slower one.
        files: its files, open or not.
        kept: how many of them stay open, or would.
        changes: of the cgroups, as of the last look.
        spent_ns: CPU time of the reading under way; ``settle`` closes the account.
        learnt_ns: CPU time of parsing texts that looked different, since ``judge``.
        parse_ns: its share of parsing one row.
    """

    def __init__(self, source: Source, surroundings: Surroundings) -> None:
        self.source = source
        self.pace: Pace = source.pace
        self.files: list[KeptFile] = []
        self.kept = 0
        self.changes = 0
        self.spent_ns = 0
        self.learnt_ns = 0
        self.parse_ns = 0.0
        self._surroundings = surroundings
        self._costs: deque[int] = deque(maxlen=_REMEMBERED)
        self._cost_before = 0.0  # at the pace it had before, told until one at this pace is known
        self._absent = ""  # why there is nothing to open
        self._failed = ""  # why looking for it failed
        self._slowed = ""  # why it is read less often, or not at all
        self._stopped = False
        self._patience = _PATIENCE
        self._calm = 0  # judgements on end that speak for a faster pace
        self._came_back = False

    def look(self, room: int) -> bool:
        """Look for files that came or went; open and learn new ones. True when there are other files than before.

        Args:
            room: files that may stay open.
        """
        if self._stopped:
            return False
        feeds = self._feeds()
        known = {(file.feed.path, file.feed.identity): file for file in self.files}
        wanted: dict[tuple[str, str], Feed] = {}
        for feed in feeds:
            room -= feed.kept
            if room >= 0 or not feed.kept:
                wanted[feed.path, feed.identity] = feed
        if room < 0:
            self._failed = f"{-room} of {len(feeds)} files left out: too many are open"
        if known.keys() == wanted.keys():
            return False
        for key, file in known.items():
            if key not in wanted:
                file.close()
        self.files = [known.get(key) or self._opened(feed) for key, feed in wanted.items()]
        self.kept = sum(feed.kept for feed in wanted.values())
        return True

    def reopen(self) -> None:
        """Open again what had to be closed."""
        for file in self.files:
            if file.retried:
                file.open()

    def settle(self) -> None:
        """Keep what the last reading of all files cost."""
        self._costs.append(self.spent_ns)
        self.spent_ns = 0

    def judge(self, budget_ns: int, learning_ns: int) -> bool:
        """Slow down when reading or learning is too dear, and come back when it no longer is.

        A source comes back one pace at a time, once it would have been cheap there for a while. If that was a mistake
        it waits twice as long the next time, so a cost about the budget makes no source go to and fro.

        Args:
            budget_ns: most CPU time that reading all files once (median) and parsing them may take; less where the
                pace is so fast that it would be more than one hundredth of a core.
            learning_ns: most CPU time for texts that look different since the last time this was asked.

        Returns:
            True when the pace changed, or the source stopped or may be tried again.
        """
        learnt, self.learnt_ns = self.learnt_ns, 0
        if self._stopped:
            return self._try_again()
        cost = median(self._costs) + self.parse_ns if len(self._costs) >= _ENOUGH else None
        if cost is not None and cost > allowed_ns(self.pace.period_s, budget_ns, self.source.core_share):
            far = cost > 10 * allowed_ns(self.pace.period_s, budget_ns)
            return self._slow_down(f"reading takes {cost / 1e6:.1f} ms", far=far)
        if learnt > learning_ns:
            return self._slow_down("its layout changes all the time", far=False)
        return cost is not None and self._ease(cost, learnt, budget_ns, learning_ns)

    def _slow_down(self, why_slowed: str, *, far: bool) -> bool:
        """Go over to the next slower pace; where there is none, stop if it is *far* too dear."""
        slower = PACES.index(self.pace) + 1
        if slower == len(PACES) and not far:
            self._calm = 0
            return False
        self._rest()
        if self._came_back:
            self._came_back = False
            self._patience = min(2 * self._patience, _MOST_PATIENCE)
        if slower < len(PACES):
            self.pace = PACES[slower]
            self._slowed = f"read every {self.pace.period_s:g} s only: {why_slowed}"
        else:
            self._stopped = True
            self._slowed = f"not read any more: {why_slowed}"
            self.close()
            self.files, self.kept = [], 0
        return True

    def _ease(self, cost: float, learnt: int, budget_ns: int, learning_ns: int) -> bool:
        """Go over to the next faster pace when it would have been cheap there for long enough."""
        if self.pace is self.source.pace:
            self._calm += 1
            if self._calm >= _MOST_PATIENCE:
                self._patience, self._came_back = _PATIENCE, False
            return False
        faster = PACES[PACES.index(self.pace) - 1]
        oftener = self.pace.period_s / faster.period_s
        allowed = allowed_ns(faster.period_s, budget_ns, self.source.core_share)
        cheap = cost <= _EASE * allowed and learnt * oftener <= _EASE * learning_ns
        self._calm = self._calm + 1 if cheap else 0
        if self._calm < self._patience:
            return False
        self._rest()
        self.pace = faster
        self._came_back = True
        back = faster is self.source.pace
        self._slowed = "" if back else f"read every {faster.period_s:g} s: it is cheaper than it was"
        return True

    def _try_again(self) -> bool:
        self._calm += 1
        if self._calm < max(self._patience, _STOPPED_PATIENCE):
            return False
        self._rest()
        self._stopped, self._came_back = False, True
        self._slowed = f"read every {self.pace.period_s:g} s again, on trial"
        return True

    def _rest(self) -> None:
        """Let another pace be judged by its own costs only."""
        self._cost_before = self._cost()
        self._costs.clear()
        self._calm = 0

    def _cost(self) -> float:
        return median(self._costs) if self._costs else self._cost_before

    def close(self) -> None:
        """Close all files."""
        for file in self.files:
            file.close()

    def health(self) -> SourceHealth:
        """Return how it is doing."""
        state, reason = self._state()
        return SourceHealth(
            name=self.source.name,
            tier=self.pace.tier,
            period_s=self.pace.period_s,
            files=sum(file.is_open for file in self.files),
            channels=sum(len(file.shape.readings) for file in self.files if file.is_open),
            read_us=self._cost() / 1e3,
            parse_us=self.parse_ns / 1e3,
            state=state,
            reason=reason,
        )

    def _state(self) -> tuple[SourceState, str]:
        if self._stopped:
            return SourceState.FAILED, self._slowed
        if not self.files:
            return (SourceState.FAILED, self._failed) if self._failed else (SourceState.ABSENT, self._absent)
        wrong = {file.feed.path: file.reason or file.shape.problem for file in self.files if not file.is_open}
        empty = {file.feed.path: file.shape.problem for file in self.files if file.is_open and file.shape.problem}
        first = next(iter(wrong.values()), "") or next((f"/{path}: {what}" for path, what in empty.items()), "")
        if len(wrong) + len(empty) == len(self.files):
            harmless = not empty and all(file.error in ABSENT | UNSUPPORTED for file in self.files)
            return SourceState.ABSENT if harmless else SourceState.FAILED, first
        partly = f"{len(wrong)} of {len(self.files)} files: {first}" if wrong else ""
        return SourceState.OK, "; ".join(filter(None, (self._slowed, self._failed, partly)))

    def _feeds(self) -> tuple[Feed, ...]:
        self._absent = self._failed = ""
        try:
            return self.source.feeds(self._surroundings)
        except SourceAbsentError as error:
            self._absent = error.what
        except OSError as error:
            self._failed = why(error, error.filename or self.source.name)
        return ()

    def _opened(self, feed: Feed) -> KeptFile:
        file = KeptFile(self._surroundings.root, feed)
        text = file.read()
        if text is not None:
            file.learn(file.cut(text))
        return file


def allowed_ns(period_s: float, budget_ns: int, core_share: float = _CORE_SHARE) -> int:
    """Return the CPU time that one reading of a source may take.

    Args:
        period_s: from one reading to the next.
        budget_ns: for one reading, however seldom: a longer one would delay the next tick.
        core_share: of one core, that it may take at this pace.
    """
    return min(budget_ns, int(core_share * period_s * 1e9))
