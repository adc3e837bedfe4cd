"""Work that is spread over processes, which Ctrl-C ends without a word from any of them."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, TypeVar

from unveil.errors import UnveilError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future

Item = TypeVar("Item")
Result = TypeVar("Result")
CTRL_C = {signal.SIGINT}


@contextlib.contextmanager
def side_by_side(
    work: Callable[[Item], Result], items: Sequence[Item], *, processes: int, begin: Callable[[], None] | None = None
) -> Iterator[list[Future[Result]]]:
    """Yield a future for each item, in their order; leaving before all are done gives the others up.

    Args:
        work: what is done with an item, a function of a module.
        processes: how many at a time.
        begin: done once in each process, before its first item.

    Raises:
        UnveilError: a process was killed.
    """
    # Started afresh rather than forked: a fork would take over locks of libraries that have threads.
    context = multiprocessing.get_context("spawn")
    processes = min(processes, len(items))
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_begin, initargs=(begin,)) as pool:
        try:
            # Ctrl-C goes to all of us. A process inherits that it waits, so none is hit while it imports.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, CTRL_C)
            try:
                futures = [pool.submit(work, item) for item in items]
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
            yield futures
        except BrokenProcessPool as error:
            time.sleep(0.5)  # when it was Ctrl-C that killed it, that is raised here
            what = "a process that worked for this one was killed"
            raise UnveilError(what, hint="when memory is short, --jobs 1 takes the least") from error
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _begin(begin: Callable[[], None] | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, CTRL_C)
    if begin is not None:
        begin()
