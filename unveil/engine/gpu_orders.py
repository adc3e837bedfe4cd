"""Orders for the maintenance of GPUs: give their handles back, take them again."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from unveil.errors import RefusedError
from unveil.records.codec import encode

if TYPE_CHECKING:
    from collections.abc import Callable

    from unveil.engine.watched import Gpus, Watched

_LOG = logging.getLogger(__name__)


class GpuOrders:
    """What the control socket takes of GPUs: ``release_gpus``, ``resume_gpus``, and the question ``gpus``."""

    def __init__(self, watch: Watched) -> None:
        self._watch = watch
        self.questions: dict[str, Callable[..., Any]] = {"gpus": lambda: encode(self._gpus.health())}
        self.orders: dict[str, Callable[..., Any]] = {"release_gpus": self._release, "resume_gpus": self._resume}

    @property
    def _gpus(self) -> Gpus:
        gpus = self._watch.gpus
        if gpus is None:
            raise RefusedError(
                "this watcher holds no GPUs", hint="it was started with gpu = false, or plays a recording"
            )
        return gpus

    def _release(self, *, actor: str) -> Any:
        """Give all handles back. Answers at once; they are gone when the condition is *released*."""
        if self._watch.runs.active:
            raise RefusedError(
                "a run is under way, which may need the GPUs", hint="`unveil runs list` shows it; cancel it or wait"
            )
        self._gpus.release()
        _LOG.warning("%s had the handles of all GPUs given back", actor)
        return encode(self._gpus.health())

    def _resume(self, *, actor: str) -> Any:
        """Take the handles again, in fresh processes."""
        self._gpus.resume()
        _LOG.warning("%s had the GPUs taken again", actor)
        return encode(self._gpus.health())
