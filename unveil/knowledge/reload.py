"""Follow a knowledge base while it changes: debounced, whole generations only, last known good kept.

Three threads, one duty each. watchdog's observer only raises a flag. The worker waits for quiet, reads the files, has
them loaded by a child process when their content changed, and lays the finished generation down. The watch loop picks
it up with `poll`, which costs one look at a queue, and is told when there is something. On any error the old generation
stays in use and is shown as stale, with the first problem and since when.

Nothing is believed but contents: an event says *look*, never *what*. So atomic renames, a folder replaced as a whole, a
symbolic link that is swapped and a change that inotify missed (seen by the rescan every 30 s) all end in the same look.
A rescan reads what has another inode, size or time of change than at the last one; every ten minutes it reads all.
The rescan also sees to it that there is a loader that knows the folder, so that the next edit is a quick one; where it
breaks again and again though nothing changes, tries come ever more seldom.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import threading
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer

from unveil.knowledge.knowledge_base import KnowledgeBase, Loaded, state_of
from unveil.knowledge.load_child import LoadChild, LoadFailedError
from unveil.knowledge.pack import READ_FOLDERS, read_pack, stamp_of
from unveil.records.problem import Gravity, Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from watchdog.observers.api import BaseObserver, ObservedWatch

    from unveil.records.knowledge import KnowledgeState

QUIET_S = 0.25
CAP_S = 2.0
RESCAN_S = 30.0
THOROUGH = 20  # rescans, of which one reads the files whatever the kernel tells of them
LONGEST_PAUSE_S = 3600.0  # between two tries of a loader that breaks, or is lost, though nothing changes
JOIN_S = 10.0  # a thread that a dead file server holds is left behind
MAX_TOLD = 50  # errors that a state carries; nobody reads more, and it goes into the journal

_LOG = logging.getLogger(__name__)

# Opened and closed are left out: our own reading makes them, and would start the next reading for ever.
_CHANGES: list[type[FileSystemEvent]] = [
    FileCreatedEvent, FileModifiedEvent, FileMovedEvent, FileDeletedEvent,
    DirCreatedEvent, DirMovedEvent, DirDeletedEvent,
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ReloadOutcome:
    """What a change on disk led to.

    Attributes:
        knowledge: the new generation, to be used from now on; None when the old one stays.
        problems: everything found, errors first.
        state: what journal, screens and metrics say from now on.
    """

    knowledge: KnowledgeBase | None
    problems: tuple[Problem, ...]
    state: KnowledgeState


class _Flag(FileSystemEventHandler):
    """Raises flags on a change (of one name, if it is told one), and does nothing else: it is the observer's thread."""

    def __init__(self, *flags: threading.Event, name: str | None = None) -> None:
        self._flags = flags
        self._name = name

    def on_any_event(self, event: FileSystemEvent) -> None:
        if self._name is None or self._name in (_last(event.src_path), _last(event.dest_path)):
            for flag in self._flags:
                flag.set()


def _last(path: str | bytes) -> str:
    return os.path.basename(os.fsdecode(path).rstrip("/"))  # noqa: PTH119 - called for every event of a busy folder


class Reloader:
    """Keeps a generation current. Made and polled by the watch loop's thread."""

    def __init__(
        self,
        root: Path,
        *,
        quiet_s: float = QUIET_S,
        cap_s: float = CAP_S,
        rescan_s: float = RESCAN_S,
        child: LoadChild | None = None,
        ready: Callable[[], None] | None = None,
    ) -> None:
        """Make one; `start` begins.

        Args:
            root: the folder, or a link to it that may be swapped.
            quiet_s, cap_s: how long nothing must change before files are read, and the most that is waited for it.
            rescan_s: how often files are read without an event.
            child: loads; one of its own when None.
            ready: called by the worker's thread when there is something to `poll`.
        """
        self._root = root
        self._quiet_s, self._cap_s, self._rescan_s = quiet_s, cap_s, rescan_s
        self._child = LoadChild() if child is None else child
        self._owns_child = child is None
        self._ready = ready
        self._changed = threading.Event()
        self._replaced = threading.Event()
        self._asked = False
        self._stopping = False
        self._finished: deque[Loaded] = deque()
        self._generation = 0
        self._digest = ""  # of what was loaded last
        self._seen = ""  # of what was looked at last, though it may not have been loaded
        self._stamp = ""  # of the same, as the kernel tells it; empty where that may not be all
        self._rescans = 0
        self._broke = ""  # why it was not
        self._pause_s = rescan_s
        self._again_s = 0.0
        self._current: KnowledgeBase | None = None
        self._state: KnowledgeState | None = None
        self._worker = threading.Thread(target=self._work, name="knowledge", daemon=True)
        self._observer: BaseObserver | None = None
        self._watched: tuple[int, int] | None = None
        self._watches: list[ObservedWatch] = []
        self._blind = False

    def start(self, now_s: float) -> Loaded:
        """Load the first generation, and follow changes from then on.

        Blocks while loading. When the folder cannot be used the result says why, and the reloader still follows it:
        the first generation that can be used comes from `poll`.

        Args:
            now_s: wall clock, seconds since the epoch.

        Raises:
            LoadFailedError: the loader itself broke.
        """
        self._follow()
        try:
            loaded = self._child.load(self._root, generation=1)
        except LoadFailedError:
            self.close()
            raise
        self._digest = self._seen = loaded.digest
        if loaded.knowledge is not None:
            self._generation = 1
        self._take(loaded, now_s)
        self._worker.start()
        return loaded

    @property
    def state(self) -> KnowledgeState | None:
        """Return the state of what is in use, None before the start; generation 0 is none at all."""
        return self._state

    def poll(self, now_s: float) -> ReloadOutcome | None:
        """Return what became of the newest change, None when nothing happened. Never blocks.

        Args:
            now_s: wall clock, seconds since the epoch.
        """
        if not self._finished:
            return None
        loaded = self._finished.popleft()
        while self._finished:  # only the newest counts
            loaded = self._finished.popleft()
        state = self._take(loaded, now_s)
        problems = tuple(sorted(loaded.problems, key=lambda problem: (problem.gravity is not Gravity.ERROR, problem)))
        return ReloadOutcome(knowledge=loaded.knowledge, problems=problems, state=state)

    def _take(self, loaded: Loaded, now_s: float) -> KnowledgeState:
        """Go over to a generation, or stay with the old one and say since when and why."""
        if loaded.knowledge is not None:
            self._current = loaded.knowledge
            self._state = state_of(loaded.knowledge, now_s)
            return self._state
        before = self._state
        since_s = now_s if before is None or before.stale_since_s is None else before.stale_since_s
        told = tuple(map(str, loaded.errors[:MAX_TOLD]))
        if len(loaded.errors) > MAX_TOLD:
            told = (*told, f"and {len(loaded.errors) - MAX_TOLD} more")
        base = self._current or KnowledgeBase(generation=0, digest="", root=str(self._root))
        at_s = now_s if before is None else before.at_s
        self._state = state_of(base, at_s, stale_since_s=since_s, problems=told)
        return self._state

    def rescan(self) -> None:
        """Have the files read again now, whatever inotify said. For SIGHUP; returns at once."""
        self._asked = True
        self._changed.set()

    def close(self) -> None:
        """Stop following, and end the child."""
        self._stopping = True
        self._changed.set()
        if self._owns_child:
            self._child.stop()  # whoever closes need not wait for a load
        if self._worker.is_alive():
            self._worker.join(timeout=JOIN_S)
        self._close_observer()
        if self._owns_child:
            self._child.close()

    # --- the worker's thread ---

    def _work(self) -> None:
        while not self._stopping:
            told = self._changed.wait(timeout=self._rescan_s)
            try:
                if told and not self._stopping:
                    self._settle()
                if not self._stopping:
                    self._look(told=told)
            except Exception as error:  # noqa: BLE001  # a look that breaks is told as any other, and is not the last
                what = f"looking at it failed: {error!r}"
                if what != self._broke:
                    _LOG.warning("looking at the knowledge base failed", exc_info=True)
                self._failed(what, "the next look tries again")

    def _settle(self) -> None:
        """Wait until nothing changed for a while, at most for the cap; a person who asked need not wait."""
        first_s = time.monotonic()
        self._child.warm()
        while not self._asked and not self._stopping:
            self._changed.clear()
            left_s = self._cap_s - (time.monotonic() - first_s)
            if left_s <= 0 or not self._changed.wait(timeout=min(self._quiet_s, left_s)):
                break
        self._changed.clear()
        self._asked = False

    def _look(self, *, told: bool) -> None:
        """Load the folder if its content is not what was loaded last, or if there is no loader that knows it.

        Args:
            told: whether something was seen to happen. Then the child, which is awake, reads and compares; a rescan
                does it here, so that the child may sleep.
        """
        self._follow()
        if told:
            self._pause_s, self._again_s = self._rescan_s, 0.0
        else:
            seen = self._content()
            if seen == self._seen and not self._wanting():
                return
            self._seen = seen
        try:
            loaded = self._child.load(self._root, generation=self._generation + 1)
        except LoadFailedError as error:
            if told and not self._stopping:
                self._seen = read_pack(self._root).digest
            self._failed(error.what, error.hint or "")
            return
        self._seen = loaded.digest
        if loaded.digest and loaded.digest == self._digest:
            return
        self._digest, self._broke = loaded.digest, ""
        if loaded.knowledge is not None:
            self._generation += 1
        self._publish(loaded)

    def _content(self) -> str:
        """Return the digest of what the folder holds, read only where the kernel tells of something new, mostly."""
        self._rescans += 1
        stamp, before = stamp_of(self._root), self._stamp  # first: what changes meanwhile has another one
        if stamp and stamp == before and self._rescans % THOROUGH:
            return self._seen
        seen = read_pack(self._root).digest
        self._stamp = stamp
        return seen

    def _wanting(self) -> bool:
        """Return whether to load though nothing changed: the last try failed, or the child was lost.

        So the next edit finds a child that knows the folder. Where that comes to nothing, pauses grow.
        """
        now_s = time.monotonic()
        if (self._digest and self._child.ready) or now_s < self._again_s:
            return False
        self._again_s = now_s + self._pause_s
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        return True

    def _failed(self, what: str, hint: str) -> None:
        """Tell, once, that the folder could not be loaded at all; whatever it holds is news to the next look."""
        if self._stopping or what == self._broke:
            return
        self._digest, self._broke = "", what
        problem = Problem(file=str(self._root), line=1, column=1, check="K008", what=what, hint=hint)
        self._publish(Loaded(knowledge=None, problems=(problem,)))

    def _publish(self, loaded: Loaded) -> None:
        self._finished.append(loaded)
        if self._ready is not None:
            self._ready()

    def _follow(self) -> None:
        """Watch the folder that the root names now, which may be another one than a moment ago."""
        real = Path(os.path.realpath(self._root))
        try:
            about = real.stat()
            identity = (about.st_dev, about.st_ino)
        except OSError:
            identity = None
        replaced = self._replaced.is_set()  # a new folder may have the inode of the old one
        self._replaced.clear()
        if self._blind:
            self._close_observer()  # perhaps the kernel has a watch left now
        elif self._observer is not None and identity == self._watched and not replaced:
            return
        observer = self._observer
        if observer is None:
            observer = self._observer = Observer()
            with contextlib.suppress(OSError):  # no inotify instance left: the rescan remains
                observer.start()
        for watch in self._watches:
            with contextlib.suppress(KeyError, OSError):
                observer.unschedule(watch)
        self._watches = []
        # The folder above tells when the root itself is replaced. Of a root that is a link, the link and its target.
        above = {(self._root.absolute().parent, self._root.name), (real.parent, real.name)}
        for folder, name in sorted(above):
            flag = _Flag(self._replaced, self._changed, name=name)
            self._schedule(observer, flag, folder, recursive=False)
        if identity is not None:
            # Only what is read is followed: the root may be a checkout with more in it than a knowledge base.
            self._schedule(observer, _Flag(self._replaced, self._changed), real, recursive=False)
            for name in READ_FOLDERS:
                if (real / name).is_dir():
                    self._schedule(observer, _Flag(self._changed), real / name, recursive=True)
        self._watched = identity

    def _schedule(self, observer: BaseObserver, flag: _Flag, folder: Path, *, recursive: bool) -> None:
        try:
            self._watches.append(observer.schedule(flag, str(folder), recursive=recursive, event_filter=_CHANGES))
        except OSError as error:  # the rescan remains; where there is merely no watch left, it tries again
            self._blind = self._blind or error.errno not in (errno.ENOENT, errno.EACCES)

    def _close_observer(self) -> None:
        observer, self._observer, self._watches, self._blind = self._observer, None, [], False
        if observer is not None:
            observer.stop()
            if observer.is_alive():
                observer.join(timeout=JOIN_S)
