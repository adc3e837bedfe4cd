from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from unveil.execution import processes

# A process that leaves its session, starts another that does so too, and ends: what Ansible's workers do.
ESCAPE = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    os.fork()\n    time.sleep(60)\n"


def wait_for(count: int, mark: str) -> set[int]:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if len(found := processes.marked(mark)) == count:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{len(processes.marked(mark))} processes, not {count}")


def test_processes_that_left_their_session_are_found_and_ended() -> None:
    mark = f"test.{os.getpid()}.escape"
    started = subprocess.Popen([sys.executable, "-c", ESCAPE], env={**os.environ, processes.MARK: mark})
    started.wait()
    wait_for(2, mark)
    assert processes.end(lambda: processes.marked(mark), within_s=60) == 0
    assert processes.marked(mark) == set()


def test_a_mark_is_compared_whole() -> None:
    mark = f"test.{os.getpid()}.whole"
    with subprocess.Popen(["sleep", "60"], env={**os.environ, processes.MARK: f"{mark}2"}) as other:
        assert processes.marked(mark) == set()
        other.kill()


def test_a_pid_that_was_used_again_is_not_the_process() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        start = processes.started(child.pid)
        assert start is not None
        assert processes.alive(child.pid, start)
        assert not processes.alive(child.pid, start + 1)
        assert child.pid in processes.descendants(os.getpid())
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert processes.started(child.pid) is None, "one that only waits to be reaped does not live"
    processes.send({child.pid}, signal.SIGTERM)


def test_an_orphan_comes_back_to_the_subreaper() -> None:
    program = (
        "import os, subprocess, sys, time\n"
        "from unveil.execution import processes\n"
        "assert processes.become_subreaper()\n"
        f"subprocess.run([sys.executable, '-c', {ESCAPE!r}])\n"
        "end = time.monotonic() + 20\n"
        "while (there := len(processes.descendants(os.getpid()))) != 2:\n"
        "    assert time.monotonic() < end, there\n"
        "print(processes.end(lambda: processes.descendants(os.getpid()), within_s=20, reaping=True))\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout.strip() == "0"
