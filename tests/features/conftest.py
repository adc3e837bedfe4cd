"""Windows written down as people would: channels as text, samples as lists."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest

from unveil.features.catalogue import FEATURES
from unveil.features.extract import Extractor
from unveil.records.entity import parse_entity
from unveil.records.fact import Fact, FactTable
from unveil.records.metric import Channel
from unveil.records.sample import Layout, SampleBlock, Tier
from unveil.records.window import Window

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from unveil.records.fact import FactValue
    from unveil.records.feature import FeatureVector

NONE = float("nan")


def channel_of(text: str) -> Channel:
    found = re.fullmatch(r"([^{]+)(?:\{(.*)\})?", text)
    assert found
    labels = (part.split("=", 1) for part in (found[2] or "").split(",") if part)
    return Channel(found[1], tuple((key, value) for key, value in labels))


def block_of(samples: Mapping[str, Sequence[float | None]], step_s: float, start_s: float = 0.0) -> SampleBlock:
    columns = [[NONE if each is None else float(each) for each in column] for column in samples.values()]
    values = np.array(columns).T
    times = ((start_s + step_s * np.arange(len(values))) * 1e9).round().astype(np.int64)
    return SampleBlock(tier=Tier.MEDIUM, layout=Layout(tuple(map(channel_of, samples))), times_ns=times, values=values)


def window_of(*blocks: SampleBlock, index: int = 0) -> Window:
    start = min((int(block.times_ns[0]) for block in blocks), default=0)
    return Window(index=index, start_ns=start, end_ns=start + 3_000_000_000, wall_s=0.0, blocks=blocks)


def facts_of(facts: Mapping[str, FactValue]) -> FactTable:
    """Keys are ``name`` or ``name[kind:key]``."""
    table = []
    for text, value in facts.items():
        name, _, entity = text.partition("[")
        table.append(Fact(name=name, entity=parse_entity(entity[:-1] or "host"), value=value))
    return FactTable(tuple(table))


@pytest.fixture
def block() -> Callable[..., SampleBlock]:
    return block_of


@pytest.fixture
def window() -> Callable[..., Window]:
    return window_of


@pytest.fixture
def facts() -> Callable[..., FactTable]:
    return facts_of


@pytest.fixture
def extract() -> Callable[..., FeatureVector]:
    """Features of one second-by-second block, with facts."""

    def run(
        samples: Mapping[str, Sequence[float | None]], facts: Mapping[str, FactValue] | None = None, step_s: float = 1.0
    ) -> FeatureVector:
        blocks = (block_of(samples, step_s),) if samples else ()
        return Extractor(FEATURES).extract(window_of(*blocks), facts_of(facts or {}))

    return run
