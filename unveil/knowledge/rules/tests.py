"""Checks of one test file that has the right form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unveil.knowledge.checks import finding
from unveil.knowledge.recorded_cases import WITHOUT
from unveil.knowledge.series import SeriesError, parse_series
from unveil.records.entity import is_entity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from unveil.knowledge.yaml_positions import Document
    from unveil.records.problem import Problem


def check_tests(document: Document, relative: str) -> Iterator[Problem]:
    """Yield what is wrong with a test file that the schema admits: its place, its series, its entities."""
    stem = relative.rpartition("/")[2].removesuffix(".test.yml")
    name = document.data["fingerprint"]
    if name != stem:
        yield finding("K103", document, ("fingerprint",), f"fingerprint {name!r} differs from the file's {stem!r}")
    for index, case in enumerate(document.data["cases"]):
        yield from _check_recorded(document, index, case)
        for feature, series in case.get("features", {}).items():
            path = ("cases", index, "features", feature)
            try:
                parse_series(str(series))
            except SeriesError as error:
                yield finding("K702", document, path, str(error), "e.g. 0.4x10, 0+10x20, _x3")
        for key in ("features", "facts", "reference"):
            for named in case.get(key, {}):
                if "[" in named and not is_entity(named.partition("[")[2].removesuffix("]")):
                    what = f"{named!r} names no entity"
                    yield finding("K005", document, ("cases", index, key, named), what, "e.g. [host], [nic:eth0]",
                                  on_key=True)  # fmt: skip
        if "entity" in case and not is_entity(case["entity"]):
            what = f"{case['entity']!r} is no entity"
            yield finding("K005", document, ("cases", index, "entity"), what, "e.g. cgroup:/pod1, gpu:GPU-1")


def _check_recorded(document: Document, index: int, case: Mapping[str, Any]) -> Iterator[Problem]:
    if "recording" not in case:
        return
    told = case["recording"]
    if told["to"] <= told["from"]:
        what = f"the stretch ends at {told['to']:g} s, before it begins"
        yield finding("K706", document, ("cases", index, "recording", "to"), what)
    for key in WITHOUT:
        if key in case:
            what = f"{key} with a recording: it holds what was so"
            yield finding("K706", document, ("cases", index, key), what, on_key=True)
