"""Managed settings of GPUs, for the executor: each read and write is a short-lived process of its own.

The executor knows no driver, and the watcher never calls one: a call that hangs costs this process its deadline.
"""

from __future__ import annotations

import threading

from unveil.errors import BadInputError, SourceAbsentError, SourceFailedError, UnveilError, UsageError
from unveil.host.sources.nvml_settings import read_setting, write_setting

DEADLINE_S = 5.0
LOOK_S = 2.0  # how long an answer is good for whoever only looks


class NvmlBackend:
    """Serves addresses of the scheme ``nvml``. What a driver does not know or take is told as the executor expects."""

    def read(self, key: str, item: str) -> str:
        """Return the content of a GPU's setting.

        Raises:
            SourceAbsentError, SourceFailedError, RefusedError: it cannot be read.
        """
        try:
            return read_setting(f"nvml:{key}/{item}", DEADLINE_S)
        except UsageError as error:  # e.g. a part of a GPU (MIG), which has no settings of its own
            raise SourceAbsentError(error.what, hint=error.hint) from error

    def write(self, key: str, item: str, value: str) -> None:
        """Write a GPU's setting.

        Raises:
            SourceAbsentError, SourceFailedError, RefusedError: it cannot be written, or does not take the value.
        """
        try:
            write_setting(f"nvml:{key}/{item}", value, DEADLINE_S)
        except UsageError as error:
            raise SourceAbsentError(error.what, hint=error.hint) from error
        except BadInputError as error:
            raise SourceFailedError(error.what, hint=error.hint) from error


class NvmlLooks:
    """Contents of GPU settings that no sample carries, looked up beside the loop, which never waits for a driver."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told: dict[str, tuple[float, str | None]] = {}
        self._asking: set[str] = set()

    def peek(self, address: str, at_s: float) -> str | None:
        """Return the newest answer, at most `LOOK_S` before a time; None while there is none. Asks for the next."""
        with self._lock:
            asked_s, text = self._told.get(address, (0.0, None))
            fresh = 0 <= at_s - asked_s <= LOOK_S
            if not fresh and address not in self._asking:
                self._asking.add(address)
                threading.Thread(target=self._ask, args=(address, at_s), name="nvml-look", daemon=True).start()
            return text if 0 <= at_s - asked_s <= 2 * LOOK_S else None

    def _ask(self, address: str, at_s: float) -> None:
        try:
            text: str | None = read_setting(address, DEADLINE_S).strip()
        except UnveilError:
            text = None
        with self._lock:
            self._told[address] = (at_s, text)
            self._asking.discard(address)
