"""Remediation: a declared fix. What `schemas/remediation.schema.json` admits, parsed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unveil.records.fact import FactValue


class Mode(StrEnum):
    """How far automation may go; an upper bound that a profile can only lower. Ordered as written."""

    OBSERVE = "observe"  # never planned
    MANUAL = "manual"  # planned and applied by a person
    APPROVE = "approve"  # planned by itself, applied after a person approved
    AUTO = "auto"  # applied by itself, within limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A typed value for the playbook.

    Attributes:
        type: string, integer, number, boolean, list (of strings).
        origin: ``match.KEY`` (a binding), ``fact.NAME`` (of the episode's entity, else of the host),
            ``setting.NAME`` (address of the managed setting behind that fact), ``site.NAME``;
            empty when only *default* applies.
        pattern: regular expression that the whole text (each element of a list) must match; required for strings
            that reach a path or a command.
        untrusted: text that a tenant can choose; shown only, never used in a path, command or template.
    """

    name: str
    type: str
    origin: str = ""
    default: FactValue | None = None
    pattern: str = ""
    minimum: float | None = None
    maximum: float | None = None
    max_length: int = 4096
    untrusted: bool = False
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedSetting:
    """A managed setting and the value it shall have, both templates over variables (Jinja2's sandbox).

    Attributes:
        address: ``file:/sys/…``, ``sysctl:vm.dirty_bytes``, ``irq:{{ irq }}/smp_affinity_list``,
            ``cgroup:{{ cgroup }}/cpu.max``, ``nvml:{{ gpu }}/power_limit``.
        value: the wanted value; None when the playbook may change it but no value can be told beforehand.
        for_each: name of a list variable: one setting per element, bound to ``item``, its number (from 0) to
            ``index``.
        coupled: addresses that the kernel changes along with this one; saved and restored, too.
    """

    address: str
    value: str | None
    for_each: str = ""
    coupled: tuple[str, ...] = ()


NOTHING = 1e-9
"""A value before that is no larger is nothing: a change from it is told in the feature's own unit, not as a share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Improvement:
    """A feature that must improve, or must not worsen, after a run.

    Attributes:
        direction: ``up`` or ``down``: which way is better (improve), or worse (must_not_worsen).
        effect: the least change that counts (improve), or the most that is tolerated (must_not_worsen), as a share
            of the value before (0.05 is five per cent).
        optional: counts only where it was measured before; then it is waited for, and what is still absent in the end
            does not count either.
        after_s: time after the fix from which on values count, for what looks back further than a window.
    """

    feature: str
    direction: str
    effect: float
    optional: bool = False
    after_s: float = 0.0

    def demand(self, *, improve: bool, before: float | None = None) -> str:
        """Return in words how far the feature has to move, or may: ``up by at least 20 %``.

        Args:
            improve: it has to; else it may, in its bad direction.
            before: its value before, where that is known: nothing has no share, so the number itself is meant then.
        """
        amount = f"{self.effect:g}" if before is not None and abs(before) <= NOTHING else f"{100 * self.effect:g} %"
        return f"{self.direction} by {'at least' if improve else 'at most'} {amount}"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationRule:
    """What must be seen on fresh windows after a run, in seconds."""

    within_s: float
    settings_hold_s: float
    clear_s: float
    improve: tuple[Improvement, ...] = ()
    must_not_worsen: tuple[Improvement, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How often a remediation may act."""

    cooldown_s: float
    max_attempts: int
    attempts_within_s: float
    max_hosts: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Remediation:
    """A fix: variables in, managed settings out, a playbook between, and how to judge and undo it."""

    name: str
    id: str
    title: str
    status: str
    description: str
    remediates: tuple[str, ...]
    playbook: str  # path of apply.yml
    timeout_s: float
    variables: tuple[Variable, ...]
    settings: tuple[WantedSetting, ...]
    mode: Mode
    impact: str
    reversible: bool
    interrupts_workload: bool
    requires_reboot: bool
    preconditions: tuple[str, ...]
    limits: Limits
    verification: VerificationRule
    rollback_triggers: tuple[str, ...]
    rollback_available_s: float
    approval_expires_s: float = 1800.0
    owner: str = ""
    risk_notes: str = ""
    author: str = ""
    date: str = ""
    tags: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    revision: str = ""
    path: str = ""
