"""`unveil tui`: the cockpit, on a running watcher, on several, or on a recording."""

from __future__ import annotations

import gc
import os
import queue
import sys
import threading
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as LateError
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unveil.cli import connect
from unveil.engine.client import Client
from unveil.errors import BadInputError, UnveilError, UsageError, WatcherAbsentError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from unveil.engine.client import Watcher
    from unveil.engine.replaying import RecordedWatch

DESCRIPTION = """Open the cockpit: windows and what moved them, open episodes and why they match, and the fixes, which
are planned, tried, approved, applied, verified and undone from here. `?` lists the keys of each screen.

With --replay a recording is watched as if it were live; nothing can be applied then. With several --socket, or a folder
of sockets, it begins with all hosts. With --serve it is shown in a browser, and only looks unless --act is given."""
EXAMPLE = "unveil tui --replay demo"
ANSWER_S = 5.0  # a watcher answers within a tick; the screens say so when it does not
PORT = 8765


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    connect.add_state_dir(parser)
    parser.add_argument(
        "--socket", action="append", type=Path, metavar="PATH",
        help="a watcher's control socket, or a folder of sockets; may be given several times",
    )  # fmt: skip
    parser.add_argument("--replay", metavar="FILE", help="watch a recording made by `unveil record`, or `demo`")
    parser.add_argument("--speed", type=float, default=20.0, metavar="N", help="of --replay (default: 20 times)")
    parser.add_argument("--kb", default="", metavar="DIR", help="knowledge base of --replay (default: the shipped)")
    parser.add_argument("--read-only", action="store_true", help="look, and refuse everything that acts")
    served = parser.add_argument_group("in a browser (pip install 'unveil[serve]')")
    served.add_argument("--serve", action="store_true", help="serve it over HTTP, behind a link that works once")
    served.add_argument("--listen", default="127.0.0.1", metavar="ADDRESS", help="of --serve (default: 127.0.0.1)")
    served.add_argument("--port", type=int, default=PORT, metavar="N", help=f"of --serve (default: {PORT})")
    served.add_argument("--act", action="store_true", help="let who comes in through --serve act, too")


def run(arguments: argparse.Namespace) -> int:
    """Run the cockpit until it is left."""
    if not 0 < arguments.speed <= 1000:
        raise UsageError(f"--speed is between 0 and 1000, not {arguments.speed:g}")
    if arguments.replay is not None and arguments.socket:
        raise UsageError("--replay and --socket are two different things", hint="leave one of them out")
    if arguments.serve:
        from unveil.cli.tui_serve import run as serve

        return serve(arguments)
    if arguments.act:
        raise UsageError("--act belongs to --serve: a cockpit in a terminal acts unless it is --read-only")
    in_browser = os.environ.get("TEXTUAL_DRIVER", "").startswith("textual.drivers.web_driver")
    if not in_browser and not (sys.stdin.isatty() and sys.stderr.isatty()):  # Textual draws on stderr
        raise UsageError("the cockpit needs a terminal", hint="`unveil status --watch` prints one line a window")
    if arguments.replay is not None:
        from unveil.cli.demo import recording_named

        replay = PacedReplay(recording_named(arguments.replay), kb=arguments.kb, speed=arguments.speed)
        try:
            return _open(replay, read_only=arguments.read_only, recording=True)
        finally:
            replay.close()
    sockets = named_sockets(arguments.socket or [])
    if len(sockets) > 1:
        return _open(None, read_only=arguments.read_only, recording=False, sockets=sockets)
    path = next(iter(sockets.values()), connect.state_dir(arguments).socket)
    client = Client(path, timeout_s=ANSWER_S)
    import unveil_tui.app  # noqa: F401  # takes longer than the watcher: whoever answered is drawn at once

    client.call("ping")  # nobody there is said before the screen is taken
    return _open(client, read_only=arguments.read_only, recording=False)


def named_sockets(paths: list[Path]) -> dict[str, Path]:
    """Return the sockets that are meant, by a name for each: of its file, or of its folder for a ``control.sock``.

    Raises:
        BadInputError: a folder without a socket.
    """
    found: dict[str, Path] = {}
    for path in paths:
        inside = sorted({*path.glob("*.sock"), *path.glob("*/control.sock")}) if path.is_dir() else [path]
        if not inside:
            raise BadInputError(f"no socket in {path}", hint="it looks for *.sock and */control.sock")
        for each in inside:
            whole = each.absolute()
            stem = whole.parent.name if whole.name == "control.sock" else whole.stem
            name = next(name for name in (stem, *(f"{stem}-{n}" for n in range(2, 10_000))) if name not in found)
            if whole not in found.values():
                found[name] = whole
    return found


def _open(
    watcher: Watcher | None, *, read_only: bool, recording: bool, sockets: Mapping[str, Path] | None = None
) -> int:
    from unveil_tui.app import Cockpit
    from unveil_tui.rights import ACTING, READ_ONLY, RECORDING

    rights = READ_ONLY if read_only else RECORDING if recording else ACTING
    hosts = {name: partial(Client, path, timeout_s=ANSWER_S) for name, path in (sockets or {}).items()}
    app = Cockpit(watcher, rights=rights, hosts=hosts)
    if sys.stdout.isatty():  # exported by a shell, they would be believed before the terminal, also after a resize
        for name in ("COLUMNS", "LINES"):
            os.environ.pop(name, None)
    gc.freeze()  # a collection need not go through all that was imported while a person waits for a key
    app.run()
    return int(app.return_code or 0)


class PacedReplay:
    """A recording whose time passes in a thread of its own, at a pace; it answers from that thread, between windows.

    Args:
        path: the recording.
        kb: knowledge-base root, empty for the shipped one.
        speed: recorded seconds per second.

    Raises:
        UnveilError: the recording or the knowledge base cannot be read.
    """

    def __init__(self, path: str, *, kb: str = "", speed: float = 20.0) -> None:
        self._speed = speed
        self._questions: queue.SimpleQueue[tuple[str, dict[str, Any], Future[Any]] | None] = queue.SimpleQueue()
        self._ready: Future[None] = Future()
        self._stopping = False
        self._ended = False
        self._thread = threading.Thread(target=self._pass_time, args=(path, kb), name="replay", daemon=True)
        self._thread.start()
        self._ready.result()

    def call(self, method: str, **params: Any) -> Any:
        """Answer like a watcher; WatcherAbsentError while it cannot (its models are being trained)."""
        if self._stopping:
            raise WatcherAbsentError("the recording was closed")
        answer: Future[Any] = Future()
        self._questions.put((method, params, answer))
        try:
            return answer.result(timeout=ANSWER_S)
        except LateError as error:
            raise WatcherAbsentError("the recording is busy: its models are being trained") from error

    def close(self) -> None:
        """Let go of the recording."""
        self._stopping = True
        self._questions.put(None)
        self._thread.join(timeout=ANSWER_S)

    def _pass_time(self, path: str, kb: str) -> None:
        from unveil.engine.replaying import RecordedWatch

        try:
            watch = RecordedWatch(path, kb=kb)
        except BaseException as error:  # noqa: BLE001  # whatever it is belongs to who opened the recording
            self._ready.set_exception(error)
            return
        self._ready.set_result(None)
        try:
            due = time.monotonic()
            before_s: float | None = None
            for outcome in watch.outcomes():
                at_s = outcome.summary.wall_s
                due = max(due + (0 if before_s is None else (at_s - before_s) / self._speed), time.monotonic() - 1)
                before_s = at_s
                self._answer_until(watch, due)
                if self._stopping:
                    return
            self._ended = True
            while not self._stopping:
                self._answer_until(watch, time.monotonic() + 3600)
        finally:
            watch.close()

    def _answer_until(self, watch: RecordedWatch, due: float) -> None:
        while not self._stopping:
            try:
                asked = self._questions.get(timeout=max(0.0, due - time.monotonic()))
            except queue.Empty:
                return
            if asked is not None:
                self._answer(watch, *asked)

    def _answer(self, watch: RecordedWatch, method: str, params: dict[str, Any], answer: Future[Any]) -> None:
        try:
            told = watch.call(method, **params)
        except UnveilError as error:
            answer.set_exception(error)
            return
        if method == "status":
            told = {**told, "replay": {"speed": self._speed, "ended": self._ended}}
        answer.set_result(told)
