"""What a step of a run stands on, as digests: the audit chain joins window, clauses, plan, approval and diff by them.

A step's digest covers its evidence, and the evidence covers what the journal keeps beside the steps. So neither a plan
nor a saved value can be altered afterwards without the chain saying at which step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.records.codec import encode
from unveil.records.run import RunState
from unveil.remediation.planner import digest, digest_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unveil.records.run import Plan, Step

_BEFORE = frozenset({RunState.PLANNED, RunState.APPROVED, RunState.EXPIRED, RunState.REFUSED})


def evidence(plan: Plan, state: RunState, *, saved: Mapping[str, str], written: Mapping[str, str]) -> str:
    """Return what a step into a state stands on."""
    stands = [f"plan={digest(plan)}"]
    if state is RunState.PLANNED:
        stands = [each for each in (plan.grounds, *stands) if each]
    elif state not in _BEFORE and saved:
        stands.append(f"saved={digest_of(encode(dict(saved)))}")
        if written:
            stands.append(f"written={digest_of(encode(dict(written)))}")
    return " ".join(stands)


def contradicted(step: Step, plan: Plan, *, saved: Mapping[str, str], written: Mapping[str, str]) -> bool:
    """Tell whether what is kept beside a step is not what it stood on.

    Args:
        saved, written: of the run as it is kept now; a step before they were known says nothing of them.
    """
    stood = dict(part.partition("=")[::2] for part in step.evidence.split() if "=" in part)
    now = {
        "plan": digest(plan),
        "saved": digest_of(encode(dict(saved))),
        "written": digest_of(encode(dict(written))),
    }
    return any(stood[name] != value for name, value in now.items() if name in stood)
