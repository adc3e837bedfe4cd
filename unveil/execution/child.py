"""The child that runs one playbook: ``python -m unveil.execution.child DIRECTORY``.

It outlives the watcher that started it, writes what happens into its directory (`request.py` says which files), and
leaves no process behind. What ansible-runner and Ansible are known to do wrong is met here; each trap has its test:

* T1 cancel and time-out kill the process group only, which Ansible's workers have left → `Stop` ends the tree itself:
  SIGTERM to ansible-playbook, which passes it on, three seconds, SIGKILL to whatever is left, and a last sweep.
* T2 a cancel is seen once per ``pexpect_timeout`` → 0.2 s, and `Stop` does not wait for ansible-runner anyway.
* T3, T4 a slow or raising event handler breaks the run → the handler only puts into a queue; a thread writes.
* T5 ansible-runner replaces signal handlers unless there is a ``cancel_callback`` → there is one.
* T6, T7 variables are templates, and reach shells → every text is wrapped as unsafe; no playbook of ours has a shell
  (a test reads them all).
* T8 is how another product passes event data; here nothing but checked variables ever reaches a playbook.
* T9 artifacts hold the environment → the supervisor scrubs it, umask 077, and artifacts are deleted.
* T10, T11 files of an earlier run are used again, arguments show in ``ps`` → a new private directory for each run, the
  variables in a file that we write, the arguments told to ansible-playbook and to nobody else.
* T12 no host at all is a success → success needs hosts that were processed.
* T13 check mode skips ``command`` → no playbook of ours has one; our modules support check mode in full.
* T14 differences come from events. T15 nothing is taken from ``set_stats``: values before are saved by the engine.
* T16 is YAML 1.1 in knowledge files, which are the knowledge room's; what is passed to Ansible here is JSON.
* T17 a template in a text that is not ours → ignored: a tenant must not stop a fix; ``strict`` makes it an error.
* T18 events carry escapes, may be empty, have gaps → `events.condense`.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unveil.execution import processes
from unveil.execution.ansible_at_hand import AnsibleAtHand
from unveil.execution.events import condense, printable
from unveil.execution.played import PLAYED
from unveil.execution.request import (
    CHILD,
    EVENTS,
    RESULT,
    WORK,
    Difference,
    RunEvent,
    RunResult,
    Status,
    load_request,
)
from unveil.execution.snapshot import write_durably, write_whole
from unveil.execution.standby import FLAG, await_run
from unveil.records.codec import encode

if TYPE_CHECKING:
    from types import FrameType

    from unveil.execution.request import Request

GRACE_S = 3.0  # between SIGTERM and SIGKILL
SWEEP_S = 2.0


class Stop(threading.Thread):
    """Ends the playbook when it is asked to or when its time is up, whatever ansible-runner is doing meanwhile."""

    def __init__(self, request: Request) -> None:
        super().__init__(name="stop", daemon=True)
        self._mark = request.mark
        self._deadline = time.monotonic() + request.timeout_s
        self._asked = threading.Event()
        self._over = threading.Event()
        self.reason: Status | None = None

    def ask(self, _number: int = 0, _frame: FrameType | None = None) -> None:
        """Ask for the end; a signal handler."""
        self._asked.set()

    def finish(self) -> None:
        """Say that the playbook has ended by itself."""
        self._over.set()
        self._asked.set()
        self.join()

    def run(self) -> None:
        """Wait for a word or the deadline, then end every process of the run."""
        asked = self._asked.wait(max(0.0, self._deadline - time.monotonic()))
        if self._over.is_set():
            return
        self.reason = Status.CANCELED if asked else Status.TIMEOUT
        me = os.getpid()
        told: set[int] = set()
        until = time.monotonic() + GRACE_S
        while (left := self.family()) and time.monotonic() < until:
            # Only ansible-playbook itself is told (a child of ours): it ends its workers in order.
            direct = {pid for pid in left if _parent(pid) == me} - told
            processes.send(direct, signal.SIGTERM)
            told |= direct
            self._over.wait(0.05)
        processes.end(self.family, within_s=SWEEP_S)

    def family(self) -> set[int]:
        """Return every living process of the run but this one."""
        me = os.getpid()
        return (processes.descendants(me) | processes.marked(self._mark)) - {me}


def _parent(pid: int) -> int | None:
    with suppress(OSError, ValueError, IndexError):
        text = Path(f"/proc/{pid}/stat").read_bytes()
        return int(text[text.rindex(b")") + 2 :].split()[1])
    return None


class Events:
    """Takes events over without ever waiting, and writes them down in a thread, once there is a file for them."""

    def __init__(self, path: Path | None = None) -> None:
        self._queue: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self.statistics: dict[str, Any] = {}
        self.differences: list[Difference] = []
        self.changed = 0
        self.failure = ""
        self.damaged = 0
        if path is not None:
            self.begin(path)

    def begin(self, path: Path) -> None:
        """Write them to a file from now on."""
        self._file = path.open("w", encoding="utf-8")
        self._thread = threading.Thread(target=self._write, name="events", daemon=True)
        self._thread.start()

    def put(self, event: dict[str, Any]) -> bool:
        """Take an event; False tells ansible-runner not to write it down as well."""
        self._queue.put(event)
        return False

    def close(self) -> None:
        """Write what is left and close."""
        self._queue.put(None)
        self._thread.join()
        self._file.close()

    def _write(self) -> None:
        while (raw := self._queue.get()) is not None:
            try:
                event = condense(raw)
                if event is not None:
                    self._note(event, raw)
                    self._file.write(json.dumps(encode(event), ensure_ascii=True) + "\n")
                    self._file.flush()
            except (TypeError, ValueError, LookupError, AttributeError, OSError):
                self.damaged += 1  # one event that cannot be written must not stop the run; it is told in the result

    def _note(self, event: RunEvent, raw: dict[str, Any]) -> None:
        if event.kind == "playbook_on_stats":
            self.statistics = dict(raw.get("event_data") or {})
        if event.kind in ("runner_on_ok", "runner_on_failed"):
            self.differences += event.differences
            self.changed += event.changed
        if event.failed and not self.failure:
            self.failure = f"{event.task}: {event.message}" if event.task else event.message


def complaint(output: str) -> str:
    """Return the first error in the output of ansible-playbook: one that came before any event has no other place."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    first = next((line for line in lines if line.startswith(("[ERROR]", "ERROR!"))), lines[-1] if lines else "")
    return printable(first, 500)


def judge(rc: int | None, wrong: str, events: Events, said: str = "") -> tuple[Status, str]:
    """Return whether the playbook succeeded, and why not."""
    statistics = events.statistics
    bad = sum(sum((statistics.get(name) or {}).values()) for name in ("failures", "dark"))
    if wrong:
        return Status.FAILED, wrong
    if rc == 0 and statistics.get("processed") and not bad:
        return Status.SUCCESSFUL, ""
    if rc == 0 and not statistics.get("processed"):
        return Status.FAILED, "no host was processed"
    return Status.FAILED, events.failure or f"ansible-playbook ended with {rc}: {complaint(said)}"


def run(directory: Path, events: Events | None = None, ansible: AnsibleAtHand | None = None) -> RunResult:
    """Carry out the request of a directory and return its result; every process of it has ended then.

    Args:
        events, ansible: what stood by for it.
    """
    began = time.monotonic()
    request = load_request(directory)
    processes.become_subreaper()
    stop = Stop(request)
    signal.signal(signal.SIGTERM, stop.ask)
    signal.signal(signal.SIGINT, stop.ask)
    write_whole(directory / CHILD, {"pid": os.getpid(), "started": processes.started(os.getpid())})
    stop.start()
    events = events or Events()
    events.begin(directory / EVENTS)
    rc, said = None, ""
    try:
        ansible = ansible or AnsibleAtHand(
            directory / WORK, events.put, remote=bool(request.inventory), strict=request.strict
        )
        rc, said, wrong = ansible.play(request)
    except OSError as error:  # a full disk: the run has a result that says so
        wrong = printable(f"{type(error).__name__}: {error}")
    stop.finish()
    survivors = processes.end(stop.family, within_s=SWEEP_S, reaping=True)
    events.close()
    status, message = judge(rc, wrong, events, said)
    if stop.reason is not None:
        limit = f"after {request.timeout_s:.0f} s" if stop.reason is Status.TIMEOUT else "on request"
        status, message = stop.reason, f"stopped {limit}"
    if events.damaged:
        message = f"{message} ({events.damaged} events could not be written)".strip()
    for folder in (ansible.work if ansible else directory / WORK, directory / PLAYED):
        shutil.rmtree(folder, ignore_errors=True)
    return RunResult(
        status=status,
        check=request.check,
        rc=rc,
        changed=events.changed,
        survivors=survivors,
        duration_s=round(time.monotonic() - began, 3),
        message=message,
        differences=tuple(events.differences),
    )


def stand_by(work: Path) -> None:
    """Have Ansible at hand, wait for the directory of a run, and carry its request out; leave when nobody comes."""
    events = Events()
    ansible = AnsibleAtHand(work, events.put)
    directory = await_run()
    if directory is None:
        processes.end(lambda: processes.descendants(os.getpid()), within_s=SWEEP_S)
        shutil.rmtree(work, ignore_errors=True)
    else:
        write_durably(directory / RESULT, encode(run(directory, events, ansible)))


def main(arguments: list[str]) -> int:
    """Run the request of a directory; 0 when there is a result, whatever it says."""
    os.umask(0o077)
    if arguments[1] == FLAG:
        stand_by(Path(arguments[2]))
    else:
        directory = Path(arguments[1])
        write_durably(directory / RESULT, encode(run(directory)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
