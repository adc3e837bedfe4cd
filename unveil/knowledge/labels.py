"""What is known beside a recording: what was so when (labels), and what a backtest has to find (expectations)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from unveil.errors import BadInputError, UnreadableError
from unveil.knowledge.parse import duration_s
from unveil.knowledge.schema_check import check_schema
from unveil.knowledge.yaml_positions import read_yaml
from unveil.records.problem import Gravity

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from unveil.knowledge.yaml_positions import Document

HEALTHY = "healthy"
ENDINGS = (".labels.yml", ".labels.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A stretch of a recording, in seconds after it began; *to_s* may be infinite.

    Attributes:
        labels: fingerprints that shall fire, or a fault that none of them answers; none when the host was healthy.
        subsystem: where the fault is; empty where that is not said.
    """

    from_s: float
    to_s: float
    labels: frozenset[str]
    subsystem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What has to be found; None where nothing is said.

    Attributes:
        recording: shell-style pattern over names of recordings; empty for all together.
    """

    fingerprint: str
    recording: str = ""
    at_least: int | None = None
    at_most: int | None = None
    first_within_s: float | None = None


def labels_beside(recording: Path) -> Path | None:
    """Return the labels file of a recording: ``NAME.labels.yml`` (or .json) beside ``NAME.parquet``."""
    named = (recording.with_name(f"{recording.stem}{ending}") for ending in ENDINGS)
    return next((path for path in named if path.is_file()), None)


def read_labels(path: Path, fingerprints: Collection[str]) -> tuple[Interval, ...]:
    """Return the intervals of a labels file, by time.

    Args:
        fingerprints: names that a label may be.

    Raises:
        BadInputError: it is not one, with file:line:column; or a label names nothing, an interval ends before it
            begins, or time is said to be healthy and faulty at once.
    """
    document = _read(path, "RecordingLabels")
    intervals: list[Interval] = []
    for index, each in enumerate(document.data["intervals"]):
        at = ("intervals", index)
        label = each.get("label", [])
        names = frozenset([label] if isinstance(label, str) else label)
        for name in sorted(names - {HEALTHY} - set(fingerprints)):
            raise _wrong(document, (*at, "label"), f"the knowledge base has no fingerprint {name!r}")
        if HEALTHY in names and len(names) > 1:
            raise _wrong(document, (*at, "label"), "healthy and faulty at once")
        if HEALTHY in names and "fault" in each:
            raise _wrong(document, (*at, "fault"), "healthy and faulty at once")
        from_s, to_s = float(each["from"]), float(each.get("to", "inf"))
        if to_s <= from_s:
            raise _wrong(document, (*at, "from"), f"the interval ends at {to_s:g} s, before it begins")
        this = Interval(
            from_s=from_s, to_s=to_s, labels=names - {HEALTHY} or _nameless(each), subsystem=each.get("subsystem", "")
        )
        for other in intervals:
            if bool(other.labels) is not bool(this.labels) and other.from_s < to_s and from_s < other.to_s:
                raise _wrong(document, at, f"healthy and faulty at once with the interval from {other.from_s:g} s")
        intervals.append(this)
    return tuple(sorted(intervals, key=lambda each: each.from_s))


def read_workload(path: Path) -> str:
    """Return what ran, as a labels file says; empty where it does not say.

    Raises:
        BadInputError: it is no labels file.
    """
    return str(_read(path, "RecordingLabels").data.get("workload", ""))


def _nameless(interval: dict[str, Any]) -> frozenset[str]:
    """Return the fault of an interval in which no fingerprint has to fire."""
    return frozenset([interval["fault"]] if "fault" in interval else ())


def read_expectations(path: Path, fingerprints: Collection[str]) -> tuple[Expectation, ...]:
    """Return the expectations of a file.

    Raises:
        BadInputError: it is not one, or names a fingerprint that there is not; with file:line:column.
    """
    document = _read(path, "BacktestExpectations")
    expectations = []
    for index, each in enumerate(document.data["expectations"]):
        if each["fingerprint"] not in fingerprints:
            what = f"the knowledge base has no fingerprint {each['fingerprint']!r}"
            raise _wrong(document, ("expectations", index, "fingerprint"), what)
        expectations.append(
            Expectation(
                fingerprint=each["fingerprint"],
                recording=each.get("recording", ""),
                at_least=each.get("exactly", each.get("at_least")),
                at_most=each.get("exactly", each.get("at_most")),
                first_within_s=duration_s(each["first_within"]) if "first_within" in each else None,
            )
        )
    return tuple(expectations)


def _read(path: Path, kind: str) -> Document:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UnreadableError(f"{path}: {error.strerror}") from error
    document = read_yaml(str(path), content)
    problems = document.problems if document.data is None else (*document.problems, *check_schema(document, (kind,)))
    first = next((problem for problem in problems if problem.gravity is Gravity.ERROR), None)
    if first is not None:
        raise BadInputError(f"{first}", hint="its form is in schemas/, see docs/AUTHORING.md")
    return document


def _wrong(document: Document, path: tuple[Any, ...], what: str) -> BadInputError:
    line, column = document.at(path)
    return BadInputError(f"{document.file}:{line}:{column}: {what}")
