"""Ansible's events, cut down to what the journal and a person need.

Everything in an event may hold text that a tenant chose, or escape sequences of a terminal (trap T18): control
characters are replaced, texts are cut, and what is empty or missing is no error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unveil.execution.request import Difference, RunEvent

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_TEXT = 2000
MAX_DIFFERENCES = 512
MAX_ANSWERS = 64
_KEPT = frozenset(
    {"playbook_on_start", "playbook_on_task_start", "playbook_on_no_hosts_matched", "playbook_on_stats", "runner_on_ok"}
    | {"runner_on_failed", "runner_on_unreachable", "runner_on_skipped", "error", "warning"}
)


def printable(value: object, limit: int = MAX_TEXT) -> str:
    """Return a value as text that is safe on any screen: of control characters only newlines and tabs are kept."""
    text = value if isinstance(value, str) else str(value)
    cut = text[:limit]
    return "".join(
        character if character.isprintable() or character in "\n\t" else "\N{REPLACEMENT CHARACTER}"
        for character in cut
    )


def condense(raw: Mapping[str, Any]) -> RunEvent | None:
    """Return an event of ansible-runner in our shape, None for one that says nothing (output lines, empty events)."""
    kind = str(raw.get("event", ""))
    if kind not in _KEPT:
        return None
    data = _mapping(raw.get("event_data"))
    result = _mapping(data.get("res"))
    counter = raw.get("counter")
    return RunEvent(
        counter=counter if isinstance(counter, int) else 0,
        kind=kind,
        task=printable(data.get("task", ""), 200),
        host=printable(data.get("host", ""), 200),
        changed=result.get("changed") is True,
        failed=kind in ("runner_on_failed", "runner_on_unreachable", "error") and data.get("ignore_errors") is not True,
        message=printable(result.get("msg", "") or (raw.get("stdout", "") if kind == "error" else "")),
        differences=differences(result.get("diff")),
        answer=_answer(result),
        contents=_contents(result.get("settings")),
    )


def differences(value: object) -> tuple[Difference, ...]:
    """Return the differences in a module's ``diff``, which may be one or a list."""
    found = []
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, dict) and ("before" in each or "after" in each):
            before, after = printable(each.get("before", "")), printable(each.get("after", ""))
            name = printable(each.get("before_header", "") or each.get("after_header", ""), 400)
            if before != after:
                found.append(Difference(name=name, before=before.removesuffix("\n"), after=after.removesuffix("\n")))
    return tuple(found[:MAX_DIFFERENCES])


def _answer(result: Mapping[str, Any]) -> dict[str, str] | None:
    plain = {
        printable(name, 100): printable(value, 400)
        for name, value in result.items()
        if isinstance(value, str | int | float) and not str(name).startswith("_") and name not in ("msg", "changed")
    }
    return dict(list(plain.items())[:MAX_ANSWERS]) or None


def _contents(value: object) -> dict[str, str | None] | None:
    """Return what `unveil_setting` says that its settings read now."""
    rows = [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
    read = {
        str(row["address"])[:MAX_TEXT]: None if row.get("after") is None else str(row["after"])[: 2 * MAX_TEXT]
        for row in rows
        if "address" in row
    }
    return dict(list(read.items())[:MAX_DIFFERENCES]) or None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
