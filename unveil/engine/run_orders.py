"""What a running watcher can be told about runs: plan, look through, approve, apply, cancel, roll back, let go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unveil.engine.people import refuse_approval
from unveil.errors import BadInputError, RefusedError
from unveil.matching.filters import held_back
from unveil.records.codec import encode
from unveil.records.match import EpisodeState
from unveil.records.reset import Reset, ResetKind
from unveil.records.run import RunState
from unveil.remediation.planner import plan as draw_plan
from unveil.remediation.roles import approvers
from unveil.remediation.setting import parse_address

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.engine.watched import Watched
    from unveil.records.match import Episode
    from unveil.records.remediation import Remediation
    from unveil.records.run import Run

MAX_REASON = 500


class RunOrders:
    """Questions and orders about the runs of one watch."""

    def __init__(self, watch: Watched) -> None:
        self._watch = watch
        self.questions: dict[str, Callable[..., Any]] = {"run": self._run, "approvers": self._approvers}
        self.orders: dict[str, Callable[..., Any]] = {
            "plan": self._plan,
            "dry_run": self._dry_run,
            "approve": self._approve,
            "apply": self._apply,
            "cancel": self._cancel,
            "rollback": self._roll_back,
            "reset_breaker": self._reset_breaker,
            "release": self._release,
        }

    def propose(self, episode: Episode, remediation: Remediation, *, actor: str) -> Run:
        """Draw a plan from the present and journal it as a run that waits."""
        watch = self._watch
        grounds = watch.grounds(episode)
        drawn = draw_plan(
            remediation,
            episode,
            facts=grounds.facts,
            site=watch.knowledge.current.site,
            read=grounds.read,
            baseline=grounds.baseline,
            now_s=watch.clock(),
            ceiling=watch.mode(remediation),
        )
        return watch.runs.propose(drawn, actor=actor)

    def _find(self, identity: str) -> Run:
        return self._watch.runs.newest(self._watch.history.find_run(identity))

    def _run(self, *, id: str, after_event: int = 0) -> Any:  # noqa: A002  # the protocol's word
        """Return one run as it stands, also where a full disk keeps that out of the journal."""
        told = self._watch.history.run(id=id, after_event=after_event)
        told["run"] = encode(self._find(id))
        return told

    def _approvers(self, *, id: str) -> str:  # noqa: A002
        """Return who may approve a run, in words; empty where the site has no roles."""
        return approvers(self._find(id).plan.impact, self._watch.knowledge.current.profiles)

    def _plan(self, *, episode: str, actor: str, remediation: str | None = None) -> Any:
        """Plan the fix of an episode; the host is only read."""
        watch = self._watch
        found = watch.history.find_episode(episode)
        if found.state is EpisodeState.CLEARED:
            raise RefusedError(f"{found.id} has cleared: there is nothing to fix", hint="`unveil episodes --open`")
        chosen = self._choose(found, remediation)
        blocking = held_back(found, watch.pipeline.exceptions, watch.clock(), host=watch.host)
        if blocking is not None:
            raise RefusedError(
                f"the site's filter {blocking.name} holds remediation back: {blocking.reason}",
                hint=f"it expires {blocking.expires}; its owner is {blocking.owner}",
            )
        watch.runs.expect(watch.mode(chosen))  # to be looked through, or applied
        return encode(self.propose(found, chosen, actor=actor))

    def _choose(self, episode: Episode, name: str | None) -> Remediation:
        fixes = self._watch.knowledge.current.fixes(episode.fingerprint)
        names = ", ".join(each.name for each in fixes)
        if not fixes:
            raise RefusedError(
                f"{episode.fingerprint} has no remediation: it is for a person to judge",
                hint=f"`unveil episodes --ticket {episode.id}` writes what to hand on",
            )
        chosen = next((each for each in fixes if name in (None, each.name)), None)
        if chosen is None:
            raise BadInputError(f"{name!r} does not remediate {episode.fingerprint}", hint=f"one of {names}")
        return chosen

    def _dry_run(self, *, id: str, actor: str) -> Any:  # noqa: A002, ARG002  # looking needs no name
        run = self._find(id)
        self._watch.runs.dry_run(run)
        return encode(run)

    def _approve(self, *, id: str, hash: str, actor: str) -> Any:  # noqa: A002
        watch = self._watch
        run = self._find(id)
        refuse_approval(run.id, run.plan.impact, actor, watch.knowledge.current.profiles)
        approved = watch.runs.approve(run, plan_hash=hash, actor=actor)
        if (remediation := watch.knowledge.current.remediation(approved.plan.remediation)) is not None:
            watch.runs.expect(watch.mode(remediation))
        return encode(approved)

    def _apply(self, *, id: str, hash: str, actor: str) -> Any:  # noqa: A002
        return encode(self._watch.runs.apply(self._find(id), plan_hash=hash, actor=actor))

    def _cancel(self, *, id: str, actor: str) -> Any:  # noqa: A002
        return encode(self._watch.runs.cancel(self._find(id), actor=actor))

    def _roll_back(self, *, id: str, actor: str) -> Any:  # noqa: A002
        return encode(self._watch.runs.roll_back(self._find(id), actor=actor))

    def _reset_breaker(self, *, reason: str, actor: str, keep_waiting: bool = False) -> Any:
        """Close the breaker; what automation had proposed meanwhile is dropped, unless it is to be kept."""
        made = self._let_go(ResetKind.BREAKER, "", reason, actor)
        waiting = self._watch.queries.runs(limit=200, states=(RunState.PLANNED, RunState.APPROVED))
        backlog = [run for run in waiting if {run.steps[0].actor, run.steps[-1].actor} == {"watcher"}]
        dropped = [] if keep_waiting else [self._watch.runs.cancel(run, actor=actor).id for run in backlog]
        return {"reset": encode(made), "dropped": dropped}

    def _release(self, *, setting: str, reason: str, actor: str) -> Any:
        """Let go of a setting that someone changed by hand: automation may write it again."""
        return encode(self._let_go(ResetKind.HOLD, str(parse_address(setting)), reason, actor))

    def _let_go(self, kind: ResetKind, subject: str, reason: str, actor: str) -> Reset:
        if not reason.strip():
            raise BadInputError("it needs a reason", hint="the next person on call reads it")
        if len(reason) > MAX_REASON:
            raise BadInputError(f"a reason has at most {MAX_REASON} characters")
        made = Reset(kind=kind, at_s=self._watch.clock(), actor=actor, reason=reason, subject=subject)
        self._watch.journal.put_reset(made)
        return made
