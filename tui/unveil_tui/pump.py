"""The pump: the one thread that talks to the watcher. It never touches a widget; it posts messages.

At most four rounds a second, and one a second while windows come slowly: what arrived meanwhile travels in one message.
A watcher that is gone is asked again and again; nothing that it answers, and no silence, ends the thread.
"""

from __future__ import annotations

import itertools
import queue
import threading
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from unveil.errors import RefusedError, UnveilError, WatcherAbsentError
from unveil_tui.messages import Answered, News, Told
from unveil_tui.seen import Seen
from unveil_tui.surveying import Survey

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.message import Message

    from unveil.engine.client import Watcher

ROUND_S = 0.25
_PUMPS = itertools.count(1)
_NUMBERS = itertools.count(1)  # of all pumps together: an answer to one is never taken for that of another
CALM_S = 1.0  # between two looks at a watcher that makes a window a second
RETRY_S = 1.0


@dataclass(slots=True)
class _Follow:
    """A question that a screen keeps asking."""

    method: str
    params: dict[str, Any]
    every_s: float
    due: float = 0.0
    answer: Any = field(default_factory=object)


class Pump:
    """Asks the watcher, and posts what it says.

    Args:
        watcher: whom to ask; called from the pump's thread only.
        post: takes a message from any thread.
        clock: wall clock, seconds since the epoch.
    """

    def __init__(
        self, watcher: Watcher, post: Callable[[Message], object], *, clock: Callable[[], float] = time.time
    ) -> None:
        self._watcher = watcher
        self._post = post
        self._clock = clock
        self._survey = Survey(watcher)
        self.number = next(_PUMPS)
        self._seen = Seen(source=self.number)
        self._numbers = _NUMBERS
        self._orders: queue.SimpleQueue[tuple[int, str, dict[str, Any]]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._follows: dict[int, _Follow] = {}
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._due = 0.0

    # Called by the app

    def order(self, method: str, params: dict[str, Any]) -> int:
        """Ask once; an Answered message with the returned number follows."""
        number = next(self._numbers)
        self._orders.put((number, method, params))
        self._wake.set()
        return number

    def follow(self, method: str, params: dict[str, Any], *, every_s: float) -> int:
        """Ask again and again; Told messages with the returned number bring answers that differ from the last."""
        number = next(self._numbers)
        with self._lock:
            self._follows[number] = _Follow(method, dict(params), every_s)
        self._wake.set()
        return number

    def unfollow(self, number: int) -> None:
        """Stop asking."""
        with self._lock:
            self._follows.pop(number, None)

    def stop(self) -> None:
        """End the thread at its next round."""
        self._stopping.set()
        self._wake.set()

    # The thread

    def run(self) -> None:
        """Ask until stopped."""
        while not self._stopping.is_set():
            began = time.monotonic()
            self._wake.clear()
            self._take_orders()
            self._look(began)
            self._ask_follows(began)
            self._wake.wait(max(0.01, ROUND_S - (time.monotonic() - began)))

    def _take_orders(self) -> None:
        while not self._stopping.is_set():
            try:
                number, method, params = self._orders.get_nowait()
            except queue.Empty:
                return
            try:
                self._post(Answered(number, self._watcher.call(method, **params), None))
            except UnveilError as error:
                self._post(Answered(number, None, error))
            except Exception as error:  # noqa: BLE001  # the thread's boundary: an answer out of shape must not end it
                self._post(Answered(number, None, UnveilError(f"{method}: unreadable answer: {error!r:.200}")))
            self._survey.hurry()
            self._due = 0.0  # an order changes what there is to see

    def _look(self, now: float) -> None:
        if now < self._due:
            return
        try:
            found = self._survey.look()
        except (WatcherAbsentError, RefusedError) as error:
            self._gone(error.what)
            self._due = now + RETRY_S
            return
        except Exception as error:  # noqa: BLE001  # the thread's boundary: what it says of itself is shown instead
            what = error.what if isinstance(error, UnveilError) else f"{error!r:.200}"
            self._seen = replace(self._seen, trouble=f"the watcher's answer cannot be read: {what}")
            self._post(News(self._seen))
            self._due = now + RETRY_S
            return
        self._seen = replace(
            self._seen,
            status=found.status,
            windows=found.windows,
            episodes=found.episodes,
            silences=found.silences,
            marks=found.marks,
            about=found.about,
            runs=found.runs,
            heard_s=self._clock(),
            gone_since_s=None,
            trouble="",
        )
        self._due = now + (ROUND_S if found.busy else CALM_S) - 0.02
        self._post(News(self._seen))

    def _gone(self, why: str) -> None:
        since = self._seen.gone_since_s
        self._seen = replace(self._seen, gone_since_s=self._clock() if since is None else since, trouble=why)
        self._post(News(self._seen))

    def _ask_follows(self, now: float) -> None:
        with self._lock:
            due = [(number, follow) for number, follow in self._follows.items() if follow.due <= now]
        for number, follow in due:
            if self._stopping.is_set() or self._seen.gone_since_s is not None:
                return
            follow.due = now + follow.every_s - 0.02
            try:
                answer = self._watcher.call(follow.method, **follow.params)
            except WatcherAbsentError:
                self._due = 0.0  # the next look says since when
                return
            except UnveilError as error:
                answer = error
            except Exception as error:  # noqa: BLE001  # the thread's boundary
                answer = UnveilError(f"{follow.method}: unreadable answer: {error!r:.200}")
            if isinstance(answer, UnveilError) or answer != follow.answer:
                self._post(Told(number, answer))
            follow.answer = answer
            if follow.method == "run" and isinstance(answer, dict) and answer.get("events"):
                follow.params["after_event"] = answer["events"][-1]["number"]
                follow.due = now  # there may be more than one page
