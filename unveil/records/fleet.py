"""FleetPlan: one remediation for many hosts, each with a run of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetHost:
    """One host of a fleet plan.

    Attributes:
        run: id of its run, empty when none could be planned.
        reason: why none could be planned.
    """

    name: str
    run: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPlan:
    """What would be done where, and in which order.

    Attributes:
        id: ``f`` and 12 hex digits.
        inventory: absolute path of the Ansible inventory, or a list of hosts that ends with a comma.
        hosts: in the order in which they are taken; the first batch is the canary.
        serial: sizes of the batches; the last one repeats.
        given: variables as a person gave them.
        verify: absolute path of a playbook that only looks; empty for none.
        hash: over all plans of all hosts; what is confirmed and applied.
    """

    id: str
    remediation: str
    revision: str
    inventory: str
    pattern: str
    hosts: tuple[FleetHost, ...]
    serial: tuple[str, ...]
    given: Mapping[str, str]
    verify: str
    created_s: float
    hash: str
