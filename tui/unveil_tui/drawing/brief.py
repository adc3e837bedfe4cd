"""What a person on call must know first: what is wrong, since when, where, why, what would help, what was done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.records.match import Answer, EpisodeState
from unveil.records.plain_text import plain, quantity, span
from unveil.records.run import RunState
from unveil_tui.drawing import words

if TYPE_CHECKING:
    from unveil.records.match import Episode
    from unveil.records.run import Run
    from unveil_tui.seen import Seen

STRANGE = 3  # anomalous windows on end that nothing explains, before it is said: one in a thousand is so by chance
MOST_FACTS = 2
LEVELS = ("informational", "low", "medium", "high", "critical")
_IN_HAND = {
    RunState.PLANNED: "nothing was changed yet, Enter twice leads to it",
    RunState.APPROVED: "nothing was changed yet, Enter twice leads to it",
    RunState.APPLYING: "x cancels",
    RunState.VERIFYING: "x cancels, u undoes",
    RunState.ROLLING_BACK: "the values from before are put back",
    RunState.KEPT: "u undoes",
}


def brief(seen: Seen, *, may_plan: bool = True) -> list[str]:
    """Return the worst open episode in three lines, or that nothing known explains the newest windows; else nothing.

    The worst is the one of the highest level among those that fire; of several the oldest.

    Args:
        may_plan: the key that plans a fix does so here.
    """
    opened = [each for each in seen.episodes if each.state is not EpisodeState.CLEARED]
    worst = min(opened, key=lambda each: (each.state is not EpisodeState.FIRING, -_level(each, seen)), default=None)
    return (
        _unexplained(seen)
        if worst is None
        else [_what(worst, seen), f"why   {_why(worst, seen)}", _do(worst, seen, may_plan=may_plan)]
    )


def _level(episode: Episode, seen: Seen) -> int:
    level = seen.about[episode.fingerprint].level if episode.fingerprint in seen.about else ""
    return LEVELS.index(level) if level in LEVELS else -1


def _what(worst: Episode, seen: Seen) -> str:
    more = sum(1 for each in seen.episodes if each.state is not EpisodeState.CLEARED) - 1
    began_s = worst.started_s if worst.fired_s is None else worst.fired_s
    said = ["silenced"] if seen.silenced(worst) is not None else []
    said += [words.SAID[kind] for kind in seen.said_of(worst.id) if kind in words.SAID]
    return (
        f"{worst.state.upper()} for {span(max(0.0, seen.now_s - began_s))}  {plain(worst.fingerprint)} on "
        f"{words.entity(worst.entity)} since {words.moment(worst.started_s, seen.now_s)}"
        + (f"; {', '.join(said)}" if said else "")
        + (f"; {more} more open" if more else "")
    )


def _why(worst: Episode, seen: Seen) -> str:
    title = plain(seen.about[worst.fingerprint].title, 200) if worst.fingerprint in seen.about else ""
    facts = [
        f"{each.subject.removeprefix('fact ')} is {quantity(each.value)}"
        for each in worst.last.clauses
        if each.subject.startswith("fact ") and each.answer is Answer.MATCH and each.value is not None
    ][:MOST_FACTS]
    return "; ".join(part for part in (plain(", ".join(facts), 200), title) if part) or "Enter on it explains"


def _do(worst: Episode, seen: Seen, *, may_plan: bool) -> str:
    known = seen.about.get(worst.fingerprint)
    runs = [each for each in seen.runs if each.plan.fingerprint == worst.fingerprint]
    of_this = next((each for each in runs if each.plan.episode == worst.id and each.state in _IN_HAND), None)
    if of_this is not None:
        return f"run   {_ended(of_this, seen)}; {_IN_HAND[of_this.state]}"
    fixes = ", ".join(plain(each) for each in known.fixes) if known else ""
    helps = "no fix is known: a person has to judge" if known else "Enter on it explains"
    if fixes:
        helps = f"r plans {fixes}" if may_plan else f"a known fix is {fixes}"
    here = next((each for each in runs if each.plan.entity == worst.entity), None)
    last = here or (runs[0] if runs else None)
    where = "" if last is None or here is not None else f" on {words.entity(last.plan.entity)}"
    return f"do    {helps}; last time: {'nothing was done' if last is None else _ended(last, seen) + where}"


def _ended(run: Run, seen: Seen) -> str:
    at = words.moment(run.steps[-1].at_s, seen.now_s)
    return f"{plain(run.plan.remediation)} {str(run.state).replace('_', ' ')} at {at}"


def _unexplained(seen: Seen) -> list[str]:
    count = 0
    for window in reversed(seen.windows):
        if words.mark(window) != "!":
            break
        count += 1
    if count < STRANGE:
        return []
    first, newest = seen.windows[-count], seen.windows[-1]
    shares = sorted(newest.attribution.subsystems.items(), key=lambda each: -each[1])
    top = newest.attribution.features[0] if newest.attribution.features else None
    most = f"mostly {shares[0][0]} ({shares[0][1]:.0%})" if shares and shares[0][1] > 0 else ""
    factor = "" if top is None else f"{top.sigma:+.0f}σ {plain(top.feature)}"
    since = words.moment(first.wall_s, seen.now_s)
    return [
        f"ANOMALOUS  since {since}, {words.count(count, 'window')}; nothing known matches",
        "why   " + (", ".join(part for part in (most, factor) if part) or "Enter on a window explains"),
    ]
