"""Many hosts, in batches: a remediation that no match filled in gets its values from a person and the site.

Pure. Each host has a plan and a run of its own, with the lifecycle of any other; what is said here is the order, and
when to stop: at the first host that does not end well, so that what is wrong stays as small as its batch.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from unveil.errors import BadInputError, RefusedError
from unveil.records.entity import HOST
from unveil.records.fact import FactTable
from unveil.records.match import Answer, Episode, EpisodeState, Match
from unveil.records.run import RunState
from unveil.remediation.planner import plan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from unveil.records.fact import FactValue
    from unveil.records.remediation import Remediation
    from unveil.records.run import Plan, Run

DEFAULT_SERIAL = ("1", "10%", "50%")
WELL = frozenset({RunState.KEPT, RunState.NO_CHANGE})  # a host that ended so lets the next batch begin
_SIZE = re.compile(r"([1-9][0-9]{0,5})(%?)")


def given_values(remediation: Remediation, given: Mapping[str, str]) -> Remediation:
    """Return a remediation whose variables take what a person gave, before what else they would be taken from.

    Raises:
        BadInputError: a name that it does not have.
        RefusedError: a variable would come from a match, a fact or a setting of the host, and nobody gave it.
    """
    names = {variable.name for variable in remediation.variables}
    if unknown := sorted(set(given) - names):
        raise BadInputError(
            f"{remediation.name} has no variable {unknown[0]!r}", hint=f"it has {', '.join(sorted(names)) or 'none'}"
        )
    missing = [
        variable.name
        for variable in remediation.variables
        if variable.name not in given
        and variable.origin.partition(".")[0] in ("match", "fact", "setting")
        and variable.default is None
        and not variable.untrusted
    ]
    if missing:
        raise RefusedError(
            f"{remediation.name} takes {', '.join(missing)} from a match on the host itself",
            hint=f"give it: {' '.join(f'--set {name}=…' for name in missing)}",
        )
    variables = tuple(
        replace(
            variable,
            origin=variable.origin if variable.origin.startswith("site.") and variable.name not in given else "",
            default=_value(variable.type, given[variable.name]) if variable.name in given else variable.default,
        )
        for variable in remediation.variables
    )
    return replace(remediation, variables=variables)


def _value(kind: str, text: str) -> FactValue:
    return tuple(text.split(",")) if kind == "list" else text


def plan_for(
    remediation: Remediation,
    host: str,
    *,
    site: Mapping[str, FactValue],
    read: Callable[[str], str | None],
    now_s: float,
) -> Plan:
    """Return the plan for one host; *remediation* has been through `given_values`. Raises as `planner.plan`."""
    match = Match(
        window=0, wall_s=now_s, fingerprint=(remediation.remediates or ("",))[0], entity=HOST, answer=Answer.MATCH,
        clauses=(), bindings={"host": ""},
    )  # fmt: skip
    episode = Episode(
        id=f"fleet:{host}", fingerprint=match.fingerprint, revision="", entity=HOST, state=EpisodeState.FIRING,
        started_s=now_s, fired_s=now_s, last_s=now_s, cleared_s=None, windows=0, last=match,
    )  # fmt: skip
    return plan(
        remediation, episode, facts=FactTable(), site=site, read=read, baseline=lambda _name, _entity: None,
        now_s=now_s,
    )  # fmt: skip


def addresses_of(remediation: Remediation, *, site: Mapping[str, FactValue]) -> tuple[str, ...]:
    """Return every address that a plan of it would name, whatever the host."""
    asked: dict[str, None] = {}

    def read(address: str) -> str:
        asked[address] = None
        return ""

    plan_for(remediation, "", site=site, read=read, now_s=0.0)
    return tuple(asked)


def batches(hosts: Sequence[str], serial: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return hosts in batches: sizes as numbers or per cent of all hosts (at least one), the last one repeated.

    Raises:
        BadInputError: a size that is neither.
    """
    sizes = []
    for text in serial or DEFAULT_SERIAL:
        found = _SIZE.fullmatch(text.strip())
        if found is None or (found[2] and int(found[1]) > 100):
            raise BadInputError(f"{text!r} is no size of a batch", hint="numbers or per cent: --serial 1,10%,50%")
        sizes.append(max(1, len(hosts) * int(found[1]) // 100) if found[2] else int(found[1]))
    made, left, number = [], list(hosts), 0
    while left:
        size = sizes[min(number, len(sizes) - 1)]
        made.append(tuple(left[:size]))
        left, number = left[size:], number + 1
    return tuple(made)


def stops(runs: Sequence[Run]) -> tuple[Run, ...]:
    """Return the runs of a batch that keep the next one from beginning."""
    return tuple(run for run in runs if run.state not in WELL)
