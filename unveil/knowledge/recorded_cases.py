"""Cases of ``kb test`` that name a recording: what has to be so, and what a watch over the recording says of it.

A case is about the windows that lie in its stretch entirely. It *matches* when an episode fires in one of them, is *no
match* when none does although the question was answered, and *unknown* when no window of the stretch has an answer.
Who watches is not known here: recordings are the host's to read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unveil.knowledge.made_up import CaseResult
from unveil.records.entity import HOST, Entity, EntityKind, parse_entity
from unveil.records.match import Answer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from unveil.knowledge.yaml_positions import Document
    from unveil.records.fingerprint import Fingerprint
    from unveil.records.match import ClauseResult

RECORDINGS = "recordings"
"""Folder of a knowledge base that its recordings lie in. No watcher reads it, and no pack holds it."""
DEMO = "demo"
"""The recording that is shipped."""
RECORDING_PATTERN = rf"^(?:{DEMO}|(?:[A-Za-z0-9_][A-Za-z0-9_.-]*/)*[A-Za-z0-9_][A-Za-z0-9_.-]*\.parquet)$"
WITHOUT = ("features", "facts", "settings", "site", "reference", "shares", "clauses", "plan")
"""What a case with a recording has no use for: the recording holds what was so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCase:
    """One case.

    Attributes:
        entity: whom it is about, None for whichever it is.
        recording: path, or ``demo``.
        place: file:line:column of the recording's name.
        from_s, to_s: seconds after the recording began.
    """

    fingerprint: Fingerprint
    name: str
    file: str
    line: int
    expected: str
    entity: Entity | None
    recording: str
    place: str
    from_s: float
    to_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What one window said to a case."""

    start_s: float
    end_s: float
    answer: Answer
    fires: bool
    clauses: tuple[ClauseResult, ...] = ()


def recorded_cases(fingerprint: Fingerprint, document: Document, root: Path) -> Iterator[RecordedCase]:
    """Yield the cases of a test file that name a recording.

    Args:
        root: of the knowledge base.
    """
    for index, case in enumerate(document.data["cases"]):
        if "recording" not in case:
            continue
        told: Mapping[str, Any] = case["recording"]
        line, column = document.at(("cases", index, "recording", "file"))
        name = told["file"]
        yield RecordedCase(
            fingerprint=fingerprint,
            name=case["name"],
            file=document.file,
            line=document.at(("cases", index))[0],
            expected=case["expect"],
            entity=_entity(fingerprint, case),
            recording=DEMO if name == DEMO else str(root / RECORDINGS / name),
            place=f"{document.file}:{line}:{column}",
            from_s=float(told["from"]),
            to_s=float(told["to"]),
        )


def _entity(fingerprint: Fingerprint, case: Mapping[str, Any]) -> Entity | None:
    if "entity" in case:
        return parse_entity(case["entity"])
    return HOST if fingerprint.group_by is EntityKind.HOST else None


def unwatched(case: RecordedCase, why: str) -> CaseResult:
    """Return the result of a case whose recording cannot be watched."""
    return _result(case, "nothing", (f"{case.place}: {why}",))


def judge(case: RecordedCase, moments: Sequence[Moment], *, ended_s: float) -> CaseResult:
    """Return the result of a case.

    Args:
        moments: what each window of the recording said to it, oldest first.
        ended_s: when the recording ended.
    """
    within = [each for each in moments if case.from_s <= each.start_s and each.end_s <= case.to_s]
    if not within:
        return unwatched(case, f"no window lies between {case.from_s:g} and {case.to_s:g} s; it ends at {ended_s:g} s")
    fired = next((each for each in within if each.fires), None)
    answered = next((each for each in within if each.answer is not Answer.UNKNOWN), None)
    got = Answer.MATCH if fired else Answer.NO_MATCH if answered else Answer.UNKNOWN
    failures: tuple[str, ...] = ()
    if got != case.expected:
        matched = sum(each.answer is Answer.MATCH for each in within)
        failures = (f"expected {case.expected}, got {got} ({matched} of {len(within)} windows match)",)
    return _result(case, str(got), failures, (fired or answered or within[-1]).clauses)


def _result(
    case: RecordedCase, got: str, failures: tuple[str, ...], clauses: tuple[ClauseResult, ...] = ()
) -> CaseResult:
    return CaseResult(
        fingerprint=case.fingerprint.name, name=case.name, file=case.file, line=case.line, expected=case.expected,
        got=got, failures=failures, clauses=clauses, recording=case.recording,
    )  # fmt: skip
