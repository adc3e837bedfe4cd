"""The six subsystems that every metric, feature and fingerprint belongs to."""

from __future__ import annotations

from enum import StrEnum


class Subsystem(StrEnum):
    """A part of the host, as the paper divides it."""

    CPU = "cpu"
    GPU = "gpu"
    MEMORY = "memory"
    INTERCONNECT = "interconnect"
    NETWORK = "network"
    STORAGE = "storage"
