"""Metric and Channel: a quantity that a source gives, and that quantity for one instance."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from unveil.records.subsystem import Subsystem


class Kind(StrEnum):
    """How values of a metric behave over time."""

    COUNTER = "counter"  # only grows, until it wraps or its device is re-created
    GAUGE = "gauge"  # any value at any time


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A quantity of the catalogue.

    Attributes:
        name: ``subsystem.metric``, lower case, e.g. ``cpu.user``.
        unit: unit of the raw value, e.g. ``USER_HZ``, ``bytes``, ``us``, ``W``, ``1`` for a plain number.
        labels: names of the labels of its channels, each an ``EntityKind`` or a qualifier such as ``vector``.
        meaning: one line for a person.
    """

    name: str
    subsystem: Subsystem
    unit: str
    kind: Kind
    labels: tuple[str, ...] = ()
    source: str = ""
    meaning: str = ""


def declare(name: str, kind: Kind, unit: str, meaning: str, *, source: str, labels: tuple[str, ...] = ()) -> Metric:
    """Return a metric; its subsystem is the first part of its name."""
    subsystem = Subsystem(name.partition(".")[0])
    return Metric(name=name, subsystem=subsystem, unit=unit, kind=kind, labels=labels, source=source, meaning=meaning)


@dataclass(frozen=True, slots=True, order=True)
class Channel:
    """A metric of one instance, e.g. ``cpu.user{cpu=3}``."""

    metric: str
    labels: tuple[tuple[str, str], ...] = ()

    def label(self, name: str) -> str | None:
        """Return the value of one label, or None when the channel has no such label."""
        for key, value in self.labels:
            if key == name:
                return value
        return None

    def __str__(self) -> str:
        if not self.labels:
            return self.metric
        return f"{self.metric}{{{','.join(f'{key}={value}' for key, value in self.labels)}}}"
