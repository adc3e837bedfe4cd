"""Managed settings of GPUs, for the executor: each read and write is a short-lived process of its own.

The executor knows no driver, and the watcher never calls one: a call that hangs costs this process its deadline.
"""

from __future__ import annotations

from unveil.errors import BadInputError, SourceAbsentError, SourceFailedError, UsageError
from unveil.host.sources.nvml_settings import read_setting, write_setting

DEADLINE_S = 5.0


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
