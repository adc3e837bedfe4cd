"""The snapshot of managed settings: taken right before apply, on the disk before anything is changed.

The journal holds the same values; this file lies beside the run's other files, so that a host whose journal is lost can
still be put back by hand.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unveil.errors import RefusedError, UnreadableError
from unveil.records.codec import decode, encode
from unveil.remediation.setting import equal
from unveil.remediation.setting_kinds import observed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from unveil.records.run import Plan

NAME = "snapshot.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What managed settings read before apply, and, once it is over, right after it."""

    run: str
    plan_hash: str
    at_s: float
    saved: Mapping[str, str]
    written: Mapping[str, str] = field(default_factory=dict)


def take(plan: Plan, read: Callable[[str], str | None]) -> dict[str, str]:
    """Return address → content of every setting of a plan that can be read, the coupled ones included.

    Raises:
        RefusedError: one that is to be changed cannot be read: it could not be put back.
    """
    saved = {}
    for change in plan.changes:
        now = read(change.address)
        if now is not None:
            saved[change.address] = now
        elif not (change.coupled or observed(change.address)):
            raise RefusedError(
                f"{change.address} cannot be read, so it could not be put back", hint="nothing was changed"
            )
    return saved


def written(plan: Plan, saved: Mapping[str, str], read: Callable[[str], str | None]) -> dict[str, str]:
    """Return address → content of what is ours right after apply, also after one that was killed half way.

    A setting whose wanted value is known is ours only when it reads that value: what stands there otherwise, and is
    not what was saved, someone else wrote in the meantime, and a rollback leaves it alone. Coupled ones count as ours,
    because the kernel moved them with their partner. A state that is only looked at is nobody's.
    """
    ours = {}
    for change in plan.changes:
        if observed(change.address):
            continue
        now = read(change.address)
        before = saved.get(change.address)
        if now is None or before is None:
            continue
        foreign = change.after is not None and not equal(change.address, now, change.after)
        if not foreign or equal(change.address, now, before):
            ours[change.address] = now
    return ours


def missed(plan: Plan, read: Callable[[str], str | None]) -> tuple[str, ...]:
    """Return the addresses that do not read as the plan wants: after a playbook that says it succeeded, it did not."""
    return tuple(
        change.address
        for change in plan.changes
        if change.after is not None
        and ((now := read(change.address)) is None or not equal(change.address, now, change.after))
    )


def changed(saved: Mapping[str, str], read: Callable[[str], str | None]) -> tuple[str, ...]:
    """Return the addresses that no longer read as saved."""
    contents = {address: read(address) for address in saved if not observed(address)}
    return tuple(address for address, now in contents.items() if now is None or not equal(address, now, saved[address]))


def save(directory: Path, snapshot: Snapshot) -> Path:
    """Write a snapshot durably, readable by nobody else, and return its path. An older one is replaced whole or not."""
    return write_durably(directory / NAME, encode(snapshot))


def load(directory: Path) -> Snapshot:
    """Return the snapshot of a run.

    Raises:
        UnreadableError: there is none, or it is damaged.
    """
    try:
        return decode(Snapshot, json.loads((directory / NAME).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise UnreadableError(f"{directory / NAME} cannot be used: {error}") from error


def write_durably(path: Path, value: Any) -> Path:
    """Write a JSON file that is there whole or not at all, mode 0600, and survives a crash of the machine."""
    write_whole(path, value, durable=True)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return path


def write_whole(path: Path, value: Any, *, durable: bool = False) -> None:
    """Write a JSON file that is there whole or not at all, mode 0600; not *durable* it survives our death, no more."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(value, file, ensure_ascii=True, allow_nan=False)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
