"""The state directory: journal, socket, models and run folders of one watcher, and the lock that makes it one."""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path

from unveil.errors import BadInputError, RefusedError


def default_state_dir(environment: dict[str, str] | os._Environ[str] | None = None) -> Path:
    """Return ``UNVEIL_STATE_DIR``, else ``/var/lib/unveil`` for root and the user's state folder for others."""
    env = os.environ if environment is None else environment
    if named := env.get("UNVEIL_STATE_DIR"):
        return Path(named)
    if os.geteuid() == 0:
        return Path("/var/lib/unveil")
    return Path(env.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "unveil"


class StateDir:
    """Paths inside a state directory. Nothing is created before ``claim``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal = path / "journal.db"
        self.socket = path / "control.sock"
        self.model = path / "model.npz"
        self.reference = path / "reference.npz"
        self.runs = path / "runs"
        self._lock_path = path / "watch.lock"
        self._lock: int | None = None

    def refuse_file(self) -> None:
        """Refuse a path that is something else than a directory.

        Raises:
            BadInputError: it is a file, a socket or the like.
        """
        if self.path.exists() and not self.path.is_dir():
            raise BadInputError(f"{self.path} is not a directory", hint="--state-dir names the directory of a watcher")

    def claim(self) -> None:
        """Create the directory and take it for this process until ``release`` (or its death).

        Raises:
            RefusedError: another watcher holds it.
            BadInputError: it cannot be written, or others may write it: what is here is acted upon as its owner.
        """
        self.refuse_file()
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            found = self.path.stat()
            if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o022:
                raise BadInputError(
                    f"{self.path} belongs to, or can be written by, someone else",
                    hint=f"chown it to the watcher's user and chmod 700 {self.path}",
                )
            self.runs.mkdir(exist_ok=True, mode=0o700)
            descriptor = os.open(self._lock_path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise BadInputError(
                f"cannot use the state directory {self.path}: {error.strerror}", hint="name another with --state-dir"
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise RefusedError(
                f"another watcher already uses {self.path}",
                hint="`unveil status` shows it; --state-dir starts a second",
            ) from error
        self._lock = descriptor

    def held(self) -> bool:
        """Return whether the directory is still the one that was claimed: not removed, not replaced by another."""
        try:
            there, ours = self._lock_path.stat(), os.fstat(-1 if self._lock is None else self._lock)
        except OSError:
            return False
        return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)

    def release(self) -> None:
        """Let another watcher have it."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
