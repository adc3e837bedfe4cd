"""What a running watcher can be asked, and told. The names are the methods of the control socket.

Questions about the past are answered by ``History``; here are the present and the actions. Every answer is plain JSON.
Who acts is what the kernel says of the peer (``uid:0 pid:4711``) and goes into the journal.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from unveil.engine.closer_look import CloserLook, parse
from unveil.engine.gpu_orders import GpuOrders
from unveil.engine.history import ask
from unveil.errors import BadInputError, RefusedError
from unveil.matching.filters import held_back
from unveil.records.codec import encode
from unveil.records.mark import Mark, MarkKind
from unveil.records.match import EpisodeState
from unveil.records.silence import Silence
from unveil.remediation.planner import plan as draw_plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.engine.watched import Watched
    from unveil.records.match import Episode
    from unveil.records.remediation import Remediation
    from unveil.records.run import Run

MAX_SILENCE_S = 30 * 86400
MAX_MARK = 2000


class Commands:
    """Questions and orders for one watch."""

    def __init__(self, watch: Watched) -> None:
        self._watch = watch
        gpus = GpuOrders(watch)
        self._questions: dict[str, Callable[..., Any]] = {
            **watch.history.methods,
            **CloserLook(watch).questions,
            **gpus.questions,
            "ping": self._ping,
            "silences": self._silences,
            "knowledge": self._knowledge,
            "explain": self._explain,
            "features": self._features,
            "facts": self._facts,
        }
        self._orders: dict[str, Callable[..., Any]] = {
            "plan": self._plan,
            "dry_run": self._dry_run,
            "approve": self._approve,
            "apply": self._apply,
            "cancel": self._cancel,
            "rollback": self._roll_back,
            "silence": self._silence,
            "end_silence": self._end_silence,
            "mark": self._mark,
            "reload": self._reload,
            **gpus.orders,
        }

    def handle(self, method: str, params: dict[str, Any], actor: str) -> Any:
        """Answer a question or carry out an order of *actor*.

        Raises:
            UnveilError: it cannot be; the cause and the cure travel back to who asked.
        """
        if method in self._questions:
            return ask(self._questions[method], method, params)
        if method in self._orders:
            if "actor" in params:
                raise BadInputError("who acts is what the kernel says, not a parameter")
            return ask(self._orders[method], method, {**params, "actor": actor})
        known = ", ".join(sorted({*self._questions, *self._orders}))
        raise BadInputError(f"no such method: {method[:40]!r}", hint=f"one of {known}")

    # Questions

    def _ping(self) -> str:
        return "pong"

    def _silences(self) -> list[Any]:
        silences: list[Any] = self._watch.history.silences(at_s=self._watch.clock())
        return silences

    def _knowledge(self) -> Any:
        knowledge = self._watch.knowledge.current
        told = {
            "state": self._watch.knowledge.state,
            "root": knowledge.root,
            "fingerprints": [
                {
                    "name": each.name, "title": each.title, "status": each.status, "level": each.level,
                    "group_by": each.group_by, "subsystem": each.subsystem, "description": each.description,
                    "condition": each.condition, "remediations": each.remediations, "path": each.path,
                    "falsepositives": each.falsepositives, "references": each.references,
                }
                for each in knowledge.fingerprints
            ],
            "remediations": [
                {
                    "name": each.name, "title": each.title, "status": each.status, "mode": each.mode,
                    "impact": each.impact, "description": each.description, "risk_notes": each.risk_notes,
                    "path": each.path,
                }
                for each in knowledge.remediations
            ],
        }  # fmt: skip
        return encode(told)

    def _explain(self, *, fingerprint: str, entity: str | None = None) -> list[Any]:
        """Return the newest window held against a fingerprint, for one entity or for all that it could be about."""
        watch = self._watch
        found = watch.knowledge.current.fingerprint(fingerprint)
        if found is None:
            names = ", ".join(each.name for each in watch.knowledge.current.fingerprints)
            raise BadInputError(f"no episode and no fingerprint {fingerprint[:80]!r}", hint=f"fingerprints: {names}")
        matcher = watch.pipeline.matcher
        entities = [parse(entity)] if entity else matcher.entities(fingerprint)
        matches = [match for each in entities if (match := matcher.explain(fingerprint, each)) is not None]
        if not matches:
            kind = found.group_by
            raise RefusedError(
                f"{fingerprint} cannot be explained: no window yet, or no {kind} here", hint="see `unveil doctor`"
            )
        return [encode(match) for match in matches]

    def _features(self, *, entity: str | None = None) -> list[Any]:
        """Return the newest value of every feature of an entity (all when None), and what was expected."""
        wanted = parse(entity) if entity else None
        latest = self._watch.pipeline.latest
        if latest is None:
            return []
        reference = latest.judgement.reference
        rows = []
        for feature, value in zip(latest.vector.layout.ids, latest.vector.values.tolist(), strict=True):
            if wanted is None or feature.entity == wanted:
                expected = reference.expected(feature)
                rows.append(
                    {
                        "name": feature.name,
                        "entity": str(feature.entity),
                        "value": encode(value),
                        "expected": None if expected is None else encode(expected.centre),
                        "sigma": None if expected is None else encode(expected.sigma),
                    }
                )
        return rows

    def _facts(self) -> list[Any]:
        return [encode(fact) for fact in self._watch.facts.facts]

    # Orders

    def _plan(self, *, episode: str, actor: str, remediation: str | None = None) -> Any:
        """Plan the fix of an episode; the host is only read."""
        watch = self._watch
        found = watch.history.find_episode(episode)
        if found.state is EpisodeState.CLEARED:
            raise RefusedError(f"{found.id} has cleared: there is nothing to fix", hint="`unveil episodes --open`")
        chosen = self._choose(found, remediation)
        blocking = held_back(found, watch.knowledge.current.filters, watch.clock(), host=watch.host)
        if blocking is not None:
            raise RefusedError(
                f"the site's filter {blocking.name} holds remediation back: {blocking.reason}",
                hint=f"it expires {blocking.expires}; its owner is {blocking.owner}",
            )
        return encode(self.propose(found, chosen, actor=actor))

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

    def _choose(self, episode: Episode, name: str | None) -> Remediation:
        fixes = self._watch.knowledge.current.fixes(episode.fingerprint)
        names = ", ".join(each.name for each in fixes)
        if not fixes:
            raise RefusedError(f"{episode.fingerprint} has no remediation: it is for a person to judge")
        chosen = next((each for each in fixes if name in (None, each.name)), None)
        if chosen is None:
            raise BadInputError(f"{name!r} does not remediate {episode.fingerprint}", hint=f"one of {names}")
        return chosen

    def _dry_run(self, *, id: str, actor: str) -> Any:  # noqa: A002, ARG002  # the protocol's word; looking needs no name
        run = self._watch.history.find_run(id)
        self._watch.runs.dry_run(run)
        return encode(run)

    def _approve(self, *, id: str, hash: str, actor: str) -> Any:  # noqa: A002
        return encode(self._watch.runs.approve(self._watch.history.find_run(id), plan_hash=hash, actor=actor))

    def _apply(self, *, id: str, hash: str, actor: str) -> Any:  # noqa: A002
        return encode(self._watch.runs.apply(self._watch.history.find_run(id), plan_hash=hash, actor=actor))

    def _cancel(self, *, id: str, actor: str) -> Any:  # noqa: A002
        return encode(self._watch.runs.cancel(self._watch.history.find_run(id), actor=actor))

    def _roll_back(self, *, id: str, actor: str) -> Any:  # noqa: A002
        return encode(self._watch.runs.roll_back(self._watch.history.find_run(id), actor=actor))

    def _silence(self, *, fingerprint: str, seconds: float, reason: str, actor: str, entity: str = "*") -> Any:
        if not reason.strip():
            raise BadInputError("a silence needs a reason", hint="the next person on call reads it")
        if not 0 < seconds <= MAX_SILENCE_S:
            raise BadInputError(f"a silence lasts between a second and 30 days, not {seconds:g} s")
        now_s = self._watch.clock()
        made = Silence(
            id=f"s{secrets.token_hex(4)}", fingerprint=fingerprint, entity=entity, until_s=now_s + seconds,
            reason=reason, actor=actor, created_s=now_s,
        )  # fmt: skip
        self._watch.journal.put_silence(made)
        return encode(made)

    def _end_silence(self, *, id: str, actor: str) -> Any:  # noqa: A002
        now_s = self._watch.clock()
        for silence in self._watch.queries.silences(at_s=now_s):
            if silence.id == id:
                ended = replace(silence, until_s=now_s, reason=f"{silence.reason} (ended by {actor})")
                self._watch.journal.put_silence(ended)
                return encode(ended)
        raise BadInputError(f"no silence {id!r} is in force", hint="`unveil silence` lists them")

    def _mark(self, *, episode: str, kind: str, actor: str, text: str = "") -> Any:
        """Keep what a person says of an episode; it changes nothing of what is done about it."""
        if kind not in set(MarkKind):
            raise BadInputError(f"{kind[:40]!a} is no mark", hint=f"one of {', '.join(MarkKind)}")
        if not text.strip() and kind != MarkKind.ACKNOWLEDGED:
            raise BadInputError(f"{kind} needs a text", hint="the next person on call reads it")
        if len(text) > MAX_MARK:
            raise BadInputError(f"a mark has at most {MAX_MARK} characters, not {len(text)}")
        found = self._watch.history.find_episode(episode)
        made = Mark(
            episode=found.id, fingerprint=found.fingerprint, kind=MarkKind(kind), text=text.strip(), actor=actor,
            at_s=self._watch.clock(),
        )  # fmt: skip
        self._watch.journal.append_mark(made)
        return encode(made)

    def _reload(self, *, actor: str) -> Any:  # noqa: ARG002  # anyone who may talk may ask to look again
        self._watch.knowledge.rescan()
        return encode(self._watch.knowledge.state)
