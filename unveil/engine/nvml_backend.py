"""Managed settings of GPUs, for the executor: each read and write is a short-lived process of its own.

The executor knows no driver, and the watcher never calls one: a call that hangs costs this process its deadline.
"""

from __future__ import annotations

from unveil.host.sources.nvml_settings import read_setting, write_setting

DEADLINE_S = 5.0


class NvmlBackend:
    """Serves addresses of the scheme ``nvml``."""

    def read(self, key: str, item: str) -> str:
        """Return the content of a GPU's setting."""
        return read_setting(f"nvml:{key}/{item}", DEADLINE_S)

    def write(self, key: str, item: str, value: str) -> None:
        """Write a GPU's setting."""
        write_setting(f"nvml:{key}/{item}", value, DEADLINE_S)
