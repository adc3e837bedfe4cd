"""Reference and models on disk: plain arrays under a format version and a checksum.

What is damaged, or was written for other features, is refused, said, and learned anew; it is never half believed.
"""

from __future__ import annotations

import io
import os
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from unveil.errors import UnreadableError
from unveil.records.digest import sha256

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

MAGIC = b"unveil arrays 1\n"
_DIGEST = 32
MAX_BYTES = 256 * 1024 * 1024


def save_arrays(path: Path, arrays: Mapping[str, NDArray[np.generic]]) -> None:
    """Write arrays so that the file is there whole or not at all, for its owner alone."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **dict(arrays))
    body = buffer.getvalue()
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(MAGIC + sha256(body).digest() + body)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def load_arrays(path: Path) -> dict[str, NDArray[np.generic]] | None:
    """Return the arrays of a file, None where there is none.

    Raises:
        UnreadableError: the file is not one of ours, or not what was written.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UnreadableError(f"{path} is larger than any model")
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnreadableError(f"{path} cannot be read: {error.strerror}") from error
    if not data.startswith(MAGIC):
        raise UnreadableError(f"{path} is not a file of this version of unveil")
    digest, body = data[len(MAGIC) : len(MAGIC) + _DIGEST], data[len(MAGIC) + _DIGEST :]
    if sha256(body).digest() != digest:
        raise UnreadableError(f"{path} is damaged: its checksum is another")
    try:
        with np.load(io.BytesIO(body), allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (ValueError, OSError, zipfile.BadZipFile, KeyError) as error:
        raise UnreadableError(f"{path} cannot be used: {error}") from error
