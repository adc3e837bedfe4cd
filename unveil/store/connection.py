"""Open the journal's file: create it once, refuse a foreign or newer one, never half-write."""

from __future__ import annotations

import os
import sqlite3
from typing import TYPE_CHECKING

from unveil.errors import UnreadableError
from unveil.store.schema import MIGRATIONS, TABLES, VERSION

if TYPE_CHECKING:
    from pathlib import Path

_CACHE = "PRAGMA cache_size = -200"  # kB: a watcher appends and looks up a few; the system caches the file


def open_journal(path: Path, *, readonly: bool) -> sqlite3.Connection:
    """Return a connection to the journal, created when absent, brought up to date when older (unless *readonly*).

    Raises:
        UnreadableError: no journal there, a file of something else, or one written by a newer version.
    """
    if readonly and not path.is_file():
        raise UnreadableError(f"no journal at {path}", hint="start `unveil watch` first, or name its --state-dir")
    try:
        connection = _connect(path, readonly=readonly)
        _check_version(connection, path, readonly=readonly)
    except (sqlite3.Error, ValueError, TypeError) as error:  # the latter two: its version is no number, or not told
        raise UnreadableError(
            f"cannot open the journal {path}: {error}", hint="move the file away to start a new journal"
        ) from error
    return connection


def _connect(path: Path, *, readonly: bool) -> sqlite3.Connection:
    if readonly:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None, timeout=5)
        connection.execute(_CACHE)
        return connection
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():  # readable by the owner only from its first byte
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(path, isolation_level=None, timeout=5)
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(_CACHE)
    return connection


def _check_version(connection: sqlite3.Connection, path: Path, *, readonly: bool) -> None:
    tables = connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'meta'").fetchone()[0]
    if not tables:
        foreign = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        if foreign or readonly:
            raise UnreadableError(f"{path} is not a journal of unveil", hint="name another --state-dir")
        connection.executescript(
            f"BEGIN; {TABLES} INSERT INTO meta VALUES ('version', '{VERSION}'); COMMIT;"  # noqa: S608  # a constant
        )
        return
    version = int(connection.execute("SELECT value FROM meta WHERE key = 'version'").fetchone()[0])
    if version > VERSION:
        raise UnreadableError(
            f"{path} was written by a newer unveil (format {version}, this one knows {VERSION})",
            hint="upgrade unveil, or name another --state-dir",
        )
    if version < VERSION and not readonly:
        steps = "".join(MIGRATIONS[number] for number in range(version + 1, VERSION + 1))
        connection.executescript(
            f"BEGIN IMMEDIATE; {steps} UPDATE meta SET value = '{VERSION}' WHERE key = 'version'; COMMIT;"  # noqa: S608  # constants
        )
