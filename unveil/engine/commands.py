"""What a running watcher can be asked, and told. The names are the methods of the control socket.

Questions about the past are answered by ``History``; here are the present and the actions. Every answer is plain JSON.
Who acts is what the kernel says of the peer (``uid:0 pid:4711``) and goes into the journal.
"""

from __future__ import annotations

import os
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from unveil.engine.closer_look import MAX_MEMBERS, CloserLook, parse
from unveil.engine.gpu_orders import GpuOrders
from unveil.engine.history import ask
from unveil.engine.people import refuse_order
from unveil.engine.run_orders import RunOrders
from unveil.errors import BadInputError, RefusedError, did_you_mean
from unveil.records.codec import encode
from unveil.records.mark import Mark, MarkKind
from unveil.records.match import Answer
from unveil.records.silence import Silence

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.engine.watched import Watched
    from unveil.records.correlation import Correlation
    from unveil.records.entity import Entity

MAX_SILENCE_S = 30 * 86400
MAX_MARK = 2000
NO_WINDOW = "there is no window yet"
NO_WINDOW_HINT = "the first comes three seconds after the start"


class Commands:
    """Questions and orders for one watch."""

    def __init__(self, watch: Watched) -> None:
        self._watch = watch
        gpus = GpuOrders(watch)
        self.runs = RunOrders(watch)
        self._questions: dict[str, Callable[..., Any]] = {
            **watch.history.methods,
            **CloserLook(watch).questions,
            **gpus.questions,
            **self.runs.questions,
            "ping": self._ping,
            "silences": self._silences,
            "knowledge": self._knowledge,
            "explain": self._explain,
            "features": self._features,
            "facts": self._facts,
        }
        self._orders: dict[str, Callable[..., Any]] = {
            "silence": self._silence,
            "end_silence": self._end_silence,
            "mark": self._mark,
            "reload": self._reload,
            **gpus.orders,
            **self.runs.orders,
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
            refuse_order(method, actor, self._watch.knowledge.current.profiles)
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
                    "fields": each.fields,
                    "falsepositives": each.falsepositives, "references": each.references, "revision": each.revision,
                }
                for each in knowledge.fingerprints
            ],
            "correlations": [
                {
                    "name": each.name, "title": each.title, "status": each.status, "level": each.level,
                    "group_by": each.group_by, "description": each.description, "type": each.type,
                    "fingerprints": each.fingerprints, "timespan_s": each.timespan_s, "count_of": each.count_of,
                    "at_least": each.at_least, "effect": each.effect, "path": each.path,
                    "falsepositives": each.falsepositives, "references": each.references,
                }
                for each in knowledge.correlations
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
        current = watch.knowledge.current
        found = current.fingerprint(fingerprint)
        together = next((each for each in watch.pipeline.correlator.correlations if each.name == fingerprint), None)
        if together is not None:
            return self._explain_together(together, parse(entity) if entity else None)
        if found is None:
            hint = did_you_mean(
                fingerprint[:80],
                [*(each.name for each in current.fingerprints), *(each.name for each in current.correlations)],
                otherwise="`unveil episodes` lists episodes, `unveil kb scorecard --no-mutants` fingerprints",
            )
            raise BadInputError(f"no episode and no fingerprint {fingerprint[:80]!r}", hint=hint)
        matcher = watch.pipeline.matcher
        entities = [parse(entity)] if entity else matcher.entities(fingerprint)
        matches = [match for each in entities if (match := matcher.explain(fingerprint, each)) is not None]
        if not matches:
            if watch.pipeline.latest is None:
                raise RefusedError(NO_WINDOW, hint=NO_WINDOW_HINT)
            if not matcher.entities(fingerprint):
                raise RefusedError(f"this host shows no {found.group_by}", hint="`unveil doctor` says why")
            hint = f"it is asked of each {found.group_by}: without --entity all are shown"
            raise BadInputError(f"{fingerprint} was not asked of {entity}", hint=hint)
        return [encode(match) for match in matches]

    def _explain_together(self, correlation: Correlation, entity: Entity | None) -> list[Any]:
        """Return how a correlation stands now, and as ``of`` what counts for it: ``MAX_MEMBERS`` of each."""
        pipeline = self._watch.pipeline
        if pipeline.latest is None:
            raise RefusedError(NO_WINDOW, hint=NO_WINDOW_HINT)
        name, kind = correlation.name, correlation.group_by
        if entity is not None and entity.kind is not kind:
            hint = f"it is asked of each {kind}: without --entity all are shown"
            raise BadInputError(f"{name} was not asked of {entity}", hint=hint)
        window = pipeline.latest.window
        matches = pipeline.correlator.explain(name, window.wall_s, window=window.index, entity=entity)
        told = sorted(matches, key=lambda match: match.answer is not Answer.MATCH)[:MAX_MEMBERS]
        return [
            {**encode(match), "of": encode(pipeline.correlator.members(name, match.entity)[:MAX_MEMBERS])}
            for match in told
        ]

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

    def _silence(self, *, fingerprint: str, seconds: float, reason: str, actor: str, entity: str = "*") -> Any:
        if not reason.strip():
            raise BadInputError("a silence needs a reason", hint="the next person on call reads it")
        if not 0 < seconds <= MAX_SILENCE_S:
            raise BadInputError(f"a silence lasts between a second and 30 days, not {seconds:g} s")
        current = self._watch.knowledge.current
        known = [*(each.name for each in current.fingerprints), *(each.name for each in current.correlations)]
        if fingerprint != "*" and not any(fnmatchcase(name, fingerprint) for name in known):  # it would hold nothing
            raise BadInputError(
                f"no fingerprint in use is named like {fingerprint[:80]!r}",
                hint=did_you_mean(fingerprint[:80], known, otherwise="`unveil kb scorecard --no-mutants` names all"),
            )
        now_s = self._watch.clock()
        made = Silence(
            id=f"s{os.urandom(4).hex()}", fingerprint=fingerprint, entity=entity, until_s=now_s + seconds,
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
