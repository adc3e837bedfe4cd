"""SHA-256 without OpenSSL: ``hashlib`` loads libcrypto, which the watcher would hold to hash some kilobytes.

The interpreter has an implementation of its own beside it, under a name that changed with Python 3.12. Where there is
none, it is OpenSSL's after all. ``python -m unveil.benchmarks.imports`` prints what it would cost.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class Digest(Protocol):
    """What is known of the bytes so far."""

    def update(self, content: bytes, /) -> None:
        """Take more bytes in."""
        ...

    def digest(self) -> bytes:
        """Return the digest of all bytes so far: 32 bytes."""
        ...

    def hexdigest(self) -> str:
        """Return the digest of all bytes so far: 64 hexadecimal digits."""
        ...


def _found() -> Callable[..., Digest]:
    for name in ("_sha2", "_sha256", "hashlib"):
        try:
            made: Callable[..., Digest] = importlib.import_module(name).sha256
        except (ImportError, AttributeError):
            continue
        return made
    raise ImportError("this Python has no SHA-256")


sha256 = _found()
"""Return a `Digest`, of the bytes given or of none."""
