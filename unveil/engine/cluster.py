"""The recordings of a backtest watched by the workers of a Dask cluster. The one door to Dask, opened only when named.

The workers run the very function that the processes of this machine run. They need unveil in the same version, and the
recordings and the knowledge base at the same paths: a shared file system, or a copy.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unveil.engine.backtesting import carried, unpacked
from unveil.errors import BadInputError, RefusedError, UnveilError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from unveil.engine.backtesting import Job
    from unveil.knowledge.backtest import Trace

CONNECT_S = 10


def watch_on_cluster(jobs: Sequence[Job], *, scheduler: str, done: Callable[[int], None]) -> tuple[Trace, ...]:
    """Watch recordings on a cluster and return their traces in the order of the jobs.

    Args:
        scheduler: its address, ``tcp://HOST:PORT``.
        done: told how many are finished, each time one is.

    Raises:
        UsageError: Dask is not installed.
        BadInputError: nobody answers there, or a recording cannot be read there; the others are given up.
        RefusedError: the cluster has no worker, or one with another version of unveil.
        UnveilError: a worker was lost again and again.
    """
    try:
        import distributed
    except ImportError as error:
        what = "a cluster needs Dask, which is not installed"
        raise UsageError(what, hint="python -m pip install 'unveil[dask]'") from error
    try:
        client = distributed.Client(scheduler, timeout=CONNECT_S)
    except (OSError, ValueError) as error:
        what = f"no scheduler answers at {scheduler}"
        raise BadInputError(what, hint="start one with `dask scheduler`, e.g. tcp://HOST:8786") from error
    with closing(client):
        _check_workers(client, scheduler)
        absolute = [replace(job, recording=_absolute(job.recording), kb=_absolute(job.kb)) for job in jobs]
        # Not pure: a recording may have been replaced since a job of the same name was run.
        futures = client.map(carried, absolute, pure=False)
        try:
            for number, (_, result) in enumerate(distributed.as_completed(futures, with_results=True), 1):
                unpacked(result)
                done(number)
            return tuple(unpacked(result) for result in client.gather(futures))
        except distributed.KilledWorker as error:
            hint = "when memory is short, give each worker one thread and more memory"
            raise UnveilError("a worker of the cluster was lost while it watched a recording", hint=hint) from error
        finally:
            client.cancel(futures)


def _absolute(path: str) -> str:
    return str(Path(path).absolute()) if path else ""


def _check_workers(client: Any, scheduler: str) -> None:
    """Ask every worker which unveil it has."""
    told = client.run(_version_here, on_error="return")
    if not told:
        raise RefusedError(f"the cluster at {scheduler} has no worker", hint=f"start some: dask worker {scheduler}")
    ours = version("unveil")
    for worker, theirs in told.items():
        if theirs != ours:
            has = f"has {theirs}" if isinstance(theirs, str) else "has none"
            raise RefusedError(f"worker {worker} {has}, this is unveil {ours}", hint="install the same on both")


def _version_here() -> str:
    return version("unveil")
