"""Starts, follows, adopts and stops the children that run playbooks. Nothing here ever waits for one.

A child has a session of its own and lives on when the watcher ends; the next watcher adopts it by its directory.
(A service manager must let it live: systemd's ``KillMode=process``.)
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from unveil.errors import RefusedError, UnveilError
from unveil.execution import processes
from unveil.execution.played import PLAYED, take_along
from unveil.execution.request import (
    CHILD,
    EVENTS,
    LOG,
    REQUEST,
    RESULT,
    WORK,
    RunEvent,
    RunResult,
    Status,
    decode_event,
    load_request,
    load_result,
    request_of,
)
from unveil.execution.snapshot import NAME as SNAPSHOT
from unveil.execution.snapshot import write_durably
from unveil.execution.standby import Standby
from unveil.records.codec import encode
from unveil.remediation.planner import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from unveil.execution.played import Played
    from unveil.execution.request import Request
    from unveil.records.run import Plan, Run

PATIENCE_S = 8.0  # from asking a child to stop until it is stopped: 3 s for Ansible, its sweep, and a slow machine
START_S = 15.0  # in which a child must have said who it is
LEAVE_S = 3.0  # in which a child that told its result has left
_PASSED_ON = ("LD_LIBRARY_PATH", "UNVEIL_NVML_LIBRARY")
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What is new since the last look. With a result it is the last."""

    events: tuple[RunEvent, ...]
    result: RunResult | None


class ChildRun:
    """One child, started or adopted.

    Args:
        directory: of the run.
        process: None for a child that an earlier watcher started.
    """

    def __init__(self, directory: Path, request: Request, process: subprocess.Popen[bytes] | None) -> None:
        self.directory = directory
        self.request = request
        self._process = process
        self._offset = 0
        self._since = time.monotonic()
        self._asked: float | None = None
        self._result: RunResult | None = None

    def poll(self) -> Progress:
        """Return the new events and, once there is one, the result. Never waits for the child.

        A child that died without a result, or that does not stop when its time is long over, is ended here with all its
        processes, which takes a moment.
        """
        if self._result is None:
            living = self._alive()
            self._result = load_result(self.directory)  # after the look at the child: it may have ended in between
            if self._result is None and not living:
                self._result = self._bury(Status.CANCELED if self._asked is not None else Status.LOST)
            elif self._result is None and self._overdue():
                self._result = self._bury(Status.CANCELED if self._asked is not None else Status.TIMEOUT)
            elif self._result is not None and self._process is not None:
                self._process.poll()  # reaps it, now or at the next look
        elif self._process is not None:
            self._process.poll()
        return Progress(events=self._events(), result=self._result)

    @property
    def gone(self) -> bool:
        """Return whether its process has ended, which for a child of this process is when it is reaped."""
        return self._process is None or self._process.poll() is not None

    def reap(self) -> None:
        """Wait for the process of a child that has told its result: it only has to leave."""
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(LEAVE_S)

    def cancel(self) -> None:
        """Ask the child to stop: playbook, workers and modules end within three seconds, then the result says so."""
        if self._result is not None:
            return
        self._asked = self._asked or time.monotonic()
        identity = self._identity()
        if identity is not None and processes.alive(*identity):
            processes.send({identity[0]}, signal.SIGTERM)

    def _identity(self) -> tuple[int, int] | None:
        try:
            value = json.loads((self.directory / CHILD).read_text(encoding="utf-8"))
            return int(value["pid"]), int(value["started"])
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def _alive(self) -> bool:
        if self._process is not None:
            return self._process.poll() is None
        identity = self._identity()
        if identity is None:  # the watcher that started it died before it said who it is
            return time.monotonic() - self._since < START_S and bool(processes.marked(self.request.mark))
        return processes.alive(*identity)

    def _overdue(self) -> bool:
        now = time.monotonic()
        if self._asked is not None:
            if self._identity() is not None and now - self._asked > 1.0:
                self.cancel()  # it may have been asked before it could hear
            return now - self._asked > PATIENCE_S
        return now - self._since > self.request.timeout_s + PATIENCE_S

    def _bury(self, status: Status) -> RunResult:
        """End every process of a run whose child cannot do it, and write the result that it did not."""
        survivors = processes.end(lambda: processes.marked(self.request.mark), within_s=2.0)
        if self._process is not None:
            self._process.poll()  # one that hangs in the kernel is reaped when it ends, and not waited for
        said = ""
        if (log := self.directory / LOG).exists():
            said = log.read_bytes()[-500:].decode("utf-8", "replace").strip().rpartition("\n")[2]
        result = RunResult(
            status=status,
            check=self.request.check,
            rc=None,
            changed=0,
            survivors=survivors,
            duration_s=round(time.monotonic() - self._since, 3),
            message=f"its child ended without an answer{f': {said}' if said else ''}",
        )
        with suppress(OSError):  # a full disk: it is known here, and found out anew by the next watcher
            write_durably(self.directory / RESULT, encode(result))
        return result

    def _events(self) -> tuple[RunEvent, ...]:
        try:
            with (self.directory / EVENTS).open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except OSError:
            return ()
        whole = data[: data.rfind(b"\n") + 1]  # the last line may be half written
        self._offset += len(whole)
        found = []
        for line in whole.splitlines():
            try:
                found.append(decode_event(line.decode()))
            except (ValueError, TypeError, KeyError, AttributeError):
                continue  # written by a version that knew another event; the result counts, events are for the eye
        return tuple(found)


class RunSupervisor:
    """Starts children in directories of their own below one directory.

    Args:
        directory: holds one directory a run; made with mode 0700.
        modules: the folder with our Ansible modules (``playbooks/modules``).
        host_root: passed on to the modules.
        judged: asked before anything is played, with the plan and path → sha256 of what would be; raises RefusedError
            when that is not what the plan was drawn with.
    """

    def __init__(
        self,
        directory: Path,
        modules: Path,
        *,
        host_root: str = "/",
        judged: Callable[[Plan, Mapping[str, str]], None] = lambda _plan, _digests: None,
    ) -> None:
        self.directory = directory
        self._modules = modules
        self._host_root = host_root
        self._judged = judged
        self._prepared: tuple[str, Played] | None = None
        self._standby = Standby(directory, lambda mark: scrubbed_environment(mark, directory))
        self._ending: list[ChildRun] = []  # they have answered, and are about to end: reaped at the next look

    def directory_of(self, run_id: str) -> Path:
        """Return the directory of a run, where its snapshot belongs, too; it is made when it is not there."""
        path = self.directory / run_id
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path

    def stand_by(self) -> None:
        """Have a child ready: a playbook is likely to be started soon."""
        self._standby.make_ready()

    @property
    def standing_by(self) -> str:
        """Return the mark of the child that stands by, empty when there is none."""
        return self._standby.mark

    def close(self) -> None:
        """Let a child that stands by go, and those that have told their result end; runs under way go on."""
        self._standby.dismiss()
        for child in self._ending:
            child.reap()

    def prepare(self, run: Run) -> None:
        """Take along what a run would play, so that whatever is wrong with it is told before the run starts.

        Raises:
            RefusedError: as `start`.
            UnwritableError: there is no room for it.
        """
        self._prepared = (run.id, self._take_along(run.plan, self.directory_of(run.id)))

    def start(self, run: Run, *, strict: bool = False) -> ChildRun:
        """Start the playbook of a run for good and return its child. The snapshot must be on the disk before.

        Raises:
            RefusedError: the plan is not what was hashed, its playbook may be written by others or is another than it
                was drawn with, or it already ran.
            UnwritableError: there is no room for it.
        """
        prepared, self._prepared = self._prepared, None
        played = prepared[1] if prepared is not None and prepared[0] == run.id else None
        return self._start(run.plan, self.directory_of(run.id), played, check=False, strict=strict)

    def dry_run(self, plan: Plan, *, strict: bool = False) -> ChildRun:
        """Start the playbook of a plan with ``--check --diff``: nothing is changed, the result says what would be.

        Raises:
            RefusedError: as `start`.
        """
        directory = self.directory / f"dry-{plan.hash[:12]}-{os.urandom(3).hex()}"
        directory.mkdir(mode=0o700, parents=True)
        try:
            return self._start(plan, directory, None, check=True, strict=strict)
        except UnveilError:
            shutil.rmtree(directory, ignore_errors=True)
            raise

    def adopt(self, run_id: str) -> ChildRun:
        """Return the child of a run that an earlier watcher started; `poll` says whether it lives and how it ended.

        Raises:
            UnreadableError: no playbook was ever started for it.
        """
        directory = self.directory / run_id
        return ChildRun(directory, load_request(directory), None)

    def discard(self, child: ChildRun) -> None:
        """Delete what a run that has ended and is in the journal left, but its snapshot.

        The snapshot stays until `prune`, so that a host whose journal is lost can still be put back by hand.
        """
        if child.poll().result is None:
            raise RefusedError(f"{child.directory.name} has not ended yet", hint="cancel it first")
        self._ending = [each for each in (*self._ending, child) if not each.gone]
        if child.request.work:  # the child has deleted it, unless it was killed
            shutil.rmtree(child.request.work, ignore_errors=True)
        if not (child.directory / SNAPSHOT).exists():
            shutil.rmtree(child.directory, ignore_errors=True)
            return
        for name in (REQUEST, CHILD, EVENTS, RESULT, LOG):
            (child.directory / name).unlink(missing_ok=True)
        for folder in (WORK, PLAYED):
            shutil.rmtree(child.directory / folder, ignore_errors=True)

    def prune(self, before_s: float) -> int:
        """Delete the directories that hold only a snapshot from before a time (since the epoch, s); return how many.

        So go those of dry runs that nobody looked after to their end.
        """
        gone = 0
        self._ending = [each for each in self._ending if not each.gone]
        for snapshot in self.directory.glob(f"r*/{SNAPSHOT}"):
            if snapshot.stat().st_mtime < before_s and not (snapshot.parent / REQUEST).exists():
                shutil.rmtree(snapshot.parent, ignore_errors=True)
                gone += 1
        for left in (*self.directory.glob("dry-*"), *self.directory.glob("standby.*")):
            if left.stat().st_mtime < before_s:
                shutil.rmtree(left, ignore_errors=True)
                gone += 1
        return gone

    def _take_along(self, plan: Plan, directory: Path) -> Played:
        if plan.hash != digest(plan):
            raise RefusedError("the plan is not what was hashed", hint="plan again")
        if (directory / REQUEST).exists():
            raise RefusedError(f"a playbook was already started for {directory.name}", hint="adopt it")
        played = take_along(Path(plan.playbook), self._modules, directory)
        self._judged(plan, played.digests)
        return played

    def _start(self, plan: Plan, directory: Path, played: Played | None, *, check: bool, strict: bool) -> ChildRun:
        played = played or self._take_along(plan, directory)
        standing = "" if strict else self._standby.mark  # one that stands by was started for what is not
        for mark in filter(None, (standing, f"{directory.name}.{os.urandom(8).hex()}")):
            ready = mark == standing
            request = request_of(
                plan,
                run=directory.name,
                mark=mark,
                playbook=played.playbook,
                modules=played.modules,
                check=check,
                host_root=self._host_root,
                strict=strict,
                work=str(self._standby.work) if ready else "",
            )
            write_durably(directory / REQUEST, encode(request))
            process = self._standby.hand_over(directory) if ready else self._fresh(directory, mark)
            if process is not None:
                break
        assert process is not None  # a fresh one always is
        return ChildRun(directory, request, process)

    def _fresh(self, directory: Path, mark: str) -> subprocess.Popen[bytes]:
        """Start a child for a run."""
        with os.fdopen(os.open(directory / LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as log:
            return subprocess.Popen(
                [sys.executable, "-I", "-m", "unveil.execution.child", str(directory)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=directory,
                env=scrubbed_environment(mark, directory, _PASSED_ON),
                start_new_session=True,
                umask=0o077,
            )


def scrubbed_environment(mark: str, home: Path, passed_on: tuple[str, ...] = _PASSED_ON) -> dict[str, str]:
    """Return the environment of a child: nothing of ours but what it needs, because Ansible writes it down (T9)."""
    own = str(Path(sys.executable).parent)  # where ansible-playbook is, whether or not the environment is activated
    return {
        "PATH": f"{own}:{_SYSTEM_PATH}",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        processes.MARK: mark,
        **{name: os.environ[name] for name in passed_on if name in os.environ},
    }
