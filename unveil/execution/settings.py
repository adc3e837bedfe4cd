"""Managed settings: read, written with read-back, and put back by compare-and-swap. Native: no Ansible, no waiting.

A restore takes milliseconds where a playbook takes two seconds, and works when Ansible does not. It puts back the value
that was there before (never a default), only where the setting still reads what we wrote: whoever changed it since has
the last word.
"""

from __future__ import annotations

import errno
import os
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from unveil.errors import ConflictError, RefusedError, SourceAbsentError, SourceFailedError
from unveil.execution import device_settings, memory_state
from unveil.execution.places import Places
from unveil.remediation.setting import MAX_VALUE, Address, Scheme, choices, content, equal, parse_address
from unveil.remediation.setting_kinds import observed

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX_READ = 1 << 16
_ABSENT = frozenset({errno.ENOENT, errno.ENODEV, errno.ENOTDIR, errno.ENXIO, errno.EOPNOTSUPP})
_LOOKS_AFTER_S = (0.0, 0.001, 0.005, 0.02, 0.08)
_DEVICES = frozenset({Scheme.ETHTOOL, Scheme.SERVICE, Scheme.IRQBALANCE})


class Backend(Protocol):
    """Settings of a scheme that are no files, e.g. ``nvml``; the engine brings it, in a process of its own."""

    def read(self, key: str, item: str) -> str:
        """Return the content; raise SourceAbsentError or SourceFailedError."""
        ...

    def write(self, key: str, item: str, value: str) -> None:
        """Write a content; raise SourceAbsentError or SourceFailedError."""
        ...


class Outcome(StrEnum):
    """What became of one setting in a restore."""

    RESTORED = "restored"
    LEFT_ALONE = "left_alone"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """One setting after a restore.

    Attributes:
        reason: why it was left alone or failed; for a restored one how it came about, when not by our writing.
        foreign: left alone because someone else changed it.
    """

    address: str
    outcome: Outcome
    reason: str = ""
    foreign: bool = False


class Settings:
    """The settings of one host.

    Args:
        root: holds ``proc`` and ``sys``. Below another root than ``/`` the files may be plain ones (a test, a demo):
            then a choice is written as the kernel would show it, so that the tree behaves like a host.
        backends: scheme → backend, for schemes that are no files.
    """

    def __init__(self, root: str | os.PathLike[str] = "/", *, backends: Mapping[str, Backend] | None = None) -> None:
        self._places = Places(root)
        self._backends = dict(backends or {})

    def read(self, address: str) -> str:
        """Return the content of a setting as the kernel gives it, without the newline at its end.

        Raises:
            BadInputError: the text is no address.
            RefusedError: it leads out of where settings are.
            SourceAbsentError: this host has no such setting.
            SourceFailedError: it is there and cannot be read.
        """
        parsed = parse_address(address)
        if parsed.scheme is Scheme.NVML:
            return self._backend(parsed).read(parsed.key, parsed.item).strip()
        try:
            if parsed.scheme is Scheme.MEMORY:
                return self._state(parsed)
            if parsed.scheme in _DEVICES and self._places.live:
                return device_settings.read(parsed.scheme, parsed.key, parsed.item)
            return _read(self._places.path(parsed)).decode("utf-8", "surrogateescape").removesuffix("\n")
        except OSError as error:
            raise _failure(address, "read", error) from error

    def _state(self, address: Address) -> str:
        """Return how a cgroup's memory lies."""
        by_node = address.item == "nodes"
        file = Address(scheme=Scheme.CGROUP, key=address.key, item="memory.numa_stat" if by_node else "memory.stat")
        text = _read(self._places.path(file)).decode("utf-8", "replace")
        if (told := memory_state.nodes(text) if by_node else memory_state.huge_pages(text)) is None:
            raise SourceAbsentError(f"{address}: this kernel does not tell it")
        return told

    def peek(self, address: str) -> str | None:
        """Return the content, None where it cannot be read for whatever reason: what `planner.plan` takes."""
        try:
            return self.read(address)
        except (SourceAbsentError, SourceFailedError, RefusedError):
            return None

    def equal(self, address: str, one: str, other: str) -> bool:
        """Tell whether two contents mean the same."""
        return equal(address, one, other)

    def write(self, address: str, value: str) -> str:
        """Write a setting and return what it reads then.

        Raises:
            SourceAbsentError, SourceFailedError: it is not there, or the kernel does not take the value.
            ConflictError: it was taken, and something else is read back.
        """
        parsed = parse_address(address)
        if len(value) > MAX_VALUE or not value.replace("\t", " ").isprintable():  # the kernel shows tcp_rmem with tabs
            raise RefusedError(f"the value for {address} is too long, or holds characters that cannot be printed")
        if observed(address):
            raise RefusedError(f"{address} is a state that is looked at, and cannot be written")
        try:
            if parsed.scheme is Scheme.NVML:
                self._backend(parsed).write(parsed.key, parsed.item, value)
            elif parsed.scheme in _DEVICES and self._places.live:
                device_settings.write(parsed.scheme, parsed.key, parsed.item, value)
            else:
                self._write(self._places.path(parsed), value)
        except OSError as error:
            raise _failure(address, "written", error) from error
        now = self._settled(address, value)
        if not equal(address, now, value):
            raise ConflictError(f"{address} was written as {value!a} and reads {now[:200]!a}")
        return now

    def _settled(self, address: str, wanted: str) -> str:
        """Return what a setting reads after it was written.

        An interrupt that is on its way to another CPU may read as before until it has got there: for a tenth of a
        millisecond, or for some when it had been moved just before (seen on Linux 6.18 under traffic).
        """
        now = ""
        for pause_s in _LOOKS_AFTER_S:
            time.sleep(pause_s)
            if equal(address, now := self.read(address), wanted):
                break
        return now

    def _write(self, path: str, value: str) -> None:
        text = value
        if self._places.live:
            text = value or "\n"  # of nothing, the kernel is told nothing: `cpuset.mems` is emptied by a line
        else:
            before = _read(path)
            if 0 < len(before) == os.stat(path).st_size:  # noqa: PTH116  # a kernel file has no size, or a page's
                text = _as_the_kernel_shows(before.decode("utf-8", "surrogateescape"), value)
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            os.write(descriptor, text.encode("utf-8", "surrogateescape"))
        finally:
            os.close(descriptor)

    def _backend(self, address: Address) -> Backend:
        if (backend := self._backends.get(address.scheme)) is None:
            raise SourceAbsentError(f"{address}: nothing here serves {address.scheme} settings")
        return backend

    def restore(self, saved: Mapping[str, str], written: Mapping[str, str]) -> tuple[Restored, ...]:
        """Put back what we changed, and only that.

        Args:
            saved: address → content before apply.
            written: address → content right after apply. A setting is ours only while it reads this; one that is not
                in it is never ours.

        Returns:
            One answer per saved address, in their order. Nothing is raised: one bad setting must not keep the others.
        """
        done: dict[str, Restored] = {}
        ours: list[str] = []
        for address, before in saved.items():  # judged before anything is written: coupled settings move together
            if (answer := self._judge(address, before, written.get(address))) is None:
                ours.append(address)
            else:
                done[address] = answer
        # Of a coupled pair (dirty_bytes, dirty_ratio) the kernel takes no 0: the one with a value is written, and the
        # other follows. So zeros come last, and what was refused is tried again for as long as something moves.
        ours.sort(key=lambda address: content(saved[address]) in ("0", ""))
        moved = True
        while ours and moved:
            moved = False
            for address in tuple(ours):
                done[address] = answer = self._put_back(address, saved[address])
                if answer.outcome is Outcome.RESTORED:
                    ours.remove(address)
                    moved = True
        return tuple(self._checked(done[address], before) for address, before in saved.items())

    def _judge(self, address: str, before: str, ours: str | None) -> Restored | None:
        """Return the answer for a setting that is not to be written, None for one that is."""
        if observed(address):
            now = self.peek(address) or "unknown"
            reason = f"it is a state and is not put back: {before!a} before, {now!a} now"
            return Restored(address=address, outcome=Outcome.LEFT_ALONE, reason=reason)
        try:
            now = self.read(address)
        except SourceAbsentError as error:
            return Restored(address=address, outcome=Outcome.LEFT_ALONE, reason=f"it is gone: {error.what}")
        except (SourceFailedError, RefusedError) as error:
            return Restored(address=address, outcome=Outcome.FAILED, reason=error.what)
        if equal(address, now, before) and not _moves(address):
            return Restored(address=address, outcome=Outcome.RESTORED, reason="it reads as before")
        if not equal(address, now, before) and (ours is None or not equal(address, now, ours)):
            reason = f"it reads {now[:200]!a}, which we did not write"
            return Restored(address=address, outcome=Outcome.LEFT_ALONE, reason=reason, foreign=True)
        return None

    def _put_back(self, address: str, before: str) -> Restored:
        try:
            same = equal(address, self.read(address), before)
            if same and not _moves(address):
                return Restored(address=address, outcome=Outcome.RESTORED, reason="it followed another setting")
            self.write(address, content(before))
        except (SourceAbsentError, SourceFailedError, RefusedError, ConflictError) as error:
            return Restored(address=address, outcome=Outcome.FAILED, reason=error.what)
        return Restored(address=address, outcome=Outcome.RESTORED, reason="it reads as before" if same else "")

    def _checked(self, answer: Restored, before: str) -> Restored:
        """Return the answer after a last look: writing one setting may have moved another."""
        if answer.outcome is not Outcome.RESTORED:
            return answer
        try:
            now = self._settled(answer.address, before)
        except (SourceAbsentError, SourceFailedError, RefusedError) as error:
            return Restored(address=answer.address, outcome=Outcome.FAILED, reason=error.what)
        if equal(answer.address, now, before):
            return answer
        return Restored(address=answer.address, outcome=Outcome.FAILED, reason=f"it reads {now[:200]!a} after all")


def _moves(address: str) -> bool:
    """Tell of an interrupt, which may read as before for a moment after it was written: it is written all the same."""
    return address.startswith(f"{Scheme.IRQ}:")


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        return os.read(descriptor, _MAX_READ)
    finally:
        os.close(descriptor)


def _as_the_kernel_shows(before: str, value: str) -> str:
    """Return the content of a plain file that stands for a kernel's, after a write."""
    end = "\n" if before.endswith("\n") else ""
    words = choices(before)
    if value in words:
        return " ".join(f"[{word}]" if word == value else word for word in words) + end
    return value + end


def _failure(address: str, verb: str, error: OSError) -> SourceAbsentError | SourceFailedError:
    reason = error.strerror or str(error)
    if error.errno in _ABSENT:
        return SourceAbsentError(f"{address} is not there: {reason}")
    return SourceFailedError(f"{address} cannot be {verb}: {reason}")
