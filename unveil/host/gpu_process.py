"""The watcher's side of one GPU child: started, listened to and started again after a pause, without ever blocking."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from unveil.host.driver_process import ask_to_end, wait_or_leave
from unveil.host.gpu_frames import AbsentFrame, FailedFrame, read_frames

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from unveil.host.gpu_frames import Frame

_SECOND_NS = 1_000_000_000
_FIRST_PAUSE_NS = 1 * _SECOND_NS
_LONGEST_PAUSE_NS = 60 * _SECOND_NS
_CHUNK = 1 << 16
_MOST_CHUNKS = 16  # of one poll: a babbling child cannot hold the watcher, the rest is read next time
_MOST_PENDING = 1 << 20  # bytes without a newline that no frame needs


class GpuProcess:
    """One child that reads GPUs. At most one process is alive at a time, however often it is asked for.

    Attributes:
        starts: how many processes were started so far.
        absent: why there is nothing to read on this host, None while there may be. Then it is never started again.
        failure: why the last process ended by itself; whoever hears from the next one sets it to None.
    """

    def __init__(self, arguments: Sequence[str], environ: Mapping[str, str]) -> None:
        self.starts = 0
        self.absent: str | None = None
        self.failure: str | None = None
        self._command = (sys.executable, "-m", "unveil.host.gpu_child", *arguments)
        self._environ = dict(environ)
        self._process: subprocess.Popen[bytes] | None = None
        self._wanted = True
        self._asked = False  # the process that runs was asked to end: we hung up, and its end is no failure
        self._pending = b""
        self._last_words = ""
        self._started_ns = 0
        self._start_at_ns = 0
        self._pause_ns = _FIRST_PAUSE_NS

    @property
    def pid(self) -> int | None:
        """Return the PID of the process that runs, or that was asked to end and has not yet."""
        return None if self._process is None else self._process.pid

    @property
    def started_ns(self) -> int:
        """Return when the process that runs was started, CLOCK_MONOTONIC."""
        return self._started_ns

    @property
    def wanted(self) -> bool:
        """Tell whether a process shall run: not after ``stop``."""
        return self._wanted

    def poll(self, now_ns: int) -> list[Frame]:
        """Return the frames that came; start a process when one is due. Never waits for the child.

        Args:
            now_ns: CLOCK_MONOTONIC.
        """
        if self._process is None:
            if self._wanted and self.absent is None and now_ns >= self._start_at_ns:
                self._start(now_ns)
            return []
        if self._asked:
            self._reap(now_ns)
            return []
        frames, ended = self._listen()
        for frame in frames:
            if isinstance(frame, AbsentFrame):
                self.absent = frame.reason
            elif isinstance(frame, FailedFrame):
                self.failure = frame.reason
        if ended:
            self._reap(now_ns)
        return frames

    def stop(self) -> None:
        """Ask the process to end after the driver call it may be in; do not wait."""
        self._wanted = False
        self._pending = b""
        if self._process is not None:
            self._asked = True
            ask_to_end(self._process)

    def start_again(self) -> None:
        """Undo ``stop``: a fresh process is started by the next ``poll`` after the old one has ended."""
        self._wanted = True
        self.absent = self.failure = None
        self._start_at_ns = 0
        self._pause_ns = _FIRST_PAUSE_NS

    def end(self, timeout_s: float) -> bool:
        """Stop, and wait; False when the process is inside a driver call and was left to end by itself."""
        self.stop()
        if self._process is None:
            return True
        ended = wait_or_leave(self._process, timeout_s)
        if ended:
            self._process, self._asked = None, False
        return ended

    def _start(self, now_ns: int) -> None:
        try:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,  # last words of an interpreter that dies; they are no frames
                env=self._environ,
                start_new_session=True,  # a Ctrl-C or a SIGKILL for the terminal's group is not for the driver's caller
            )
        except OSError as error:
            self.failure = f"the GPU child cannot be started: {error}"
            self._pause(now_ns)
            return
        self.starts += 1
        self._started_ns = now_ns
        self._pending = b""
        self._last_words = ""
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)

    def _listen(self) -> tuple[list[Frame], bool]:
        """Return the frames that are there, and whether the child hung up."""
        assert self._process is not None
        assert self._process.stdout is not None
        descriptor, ended = self._process.stdout.fileno(), False
        for _ in range(_MOST_CHUNKS):
            try:
                chunk = os.read(descriptor, _CHUNK)
            except BlockingIOError:
                break
            if not chunk:
                ended = True
                break
            self._pending += chunk
        *lines, self._pending = self._pending.split(b"\n")
        if len(self._pending) > _MOST_PENDING:
            self._pending = b""
        frames, others = read_frames(lines)
        for line in others:
            self._last_words = line.decode("utf-8", "replace").strip()[:200] or self._last_words
        return frames, ended

    def _reap(self, now_ns: int) -> None:
        assert self._process is not None
        code = self._process.poll()
        if code is None:
            return  # it hung up, or was asked to end, and still runs: never two at a time
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process = None
        if self._asked:
            self._asked = False
            return
        if code < 0:
            self.failure = f"the GPU child was ended by {signal.Signals(-code).name}"
        elif code and self.failure is None and self.absent is None:
            self.failure = f"the GPU child ended with code {code}" + (
                f": {self._last_words}" if self._last_words else ""
            )
        self._pause(now_ns)

    def _pause(self, now_ns: int) -> None:
        """Set the time of the next start: 1, 2, 4 … 60 s, from the beginning after a child that lived well."""
        if now_ns - self._started_ns > _LONGEST_PAUSE_NS:
            self._pause_ns = _FIRST_PAUSE_NS
        self._start_at_ns = now_ns + self._pause_ns
        self._pause_ns = min(2 * self._pause_ns, _LONGEST_PAUSE_NS)
