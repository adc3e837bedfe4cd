"""The journal's file is created once, for its owner, and a foreign one is refused and left alone."""

from __future__ import annotations

import sqlite3
import stat
from typing import TYPE_CHECKING

import pytest

from unveil.errors import UnreadableError
from unveil.store.connection import open_journal
from unveil.store.queries import Queries
from unveil.store.schema import VERSION

if TYPE_CHECKING:
    from pathlib import Path


def test_a_new_journal_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "state" / "journal.db"
    open_journal(path, readonly=False).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    writer = open_journal(path, readonly=False)
    reader = open_journal(path, readonly=True)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader.execute("DELETE FROM watches")
    reader.close()
    writer.close()


def test_notes_of_somebody_are_refused_and_left_alone(tmp_path: Path) -> None:
    notes = tmp_path / "notes.db"
    notes.write_text("not a database, but somebody's notes, long enough to be looked at")
    with pytest.raises(UnreadableError, match="cannot open the journal"):
        open_journal(notes, readonly=False)
    assert notes.read_text().startswith("not a database")


def test_another_programs_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE theirs (x)")
    other.close()
    with pytest.raises(UnreadableError, match="not a journal of unveil"):
        open_journal(path, readonly=False)


def test_a_newer_journal_is_refused_with_the_cure(tmp_path: Path) -> None:
    path = tmp_path / "newer.db"
    open_journal(path, readonly=False).close()
    with sqlite3.connect(path) as other:
        other.execute("UPDATE meta SET value = '99' WHERE key = 'version'")
    other.close()
    with pytest.raises(UnreadableError, match="newer unveil") as caught:
        open_journal(path, readonly=False)
    assert "upgrade" in (caught.value.hint or "")


def test_no_journal_is_said_to_a_reader(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="no journal at"):
        open_journal(tmp_path / "absent.db", readonly=True)


def test_a_journal_of_an_older_version_is_brought_up_to_date_by_its_writer_alone(tmp_path: Path) -> None:
    path = tmp_path / "older.db"
    open_journal(path, readonly=False).close()
    with sqlite3.connect(path) as other:
        other.execute("DROP TABLE marks")
        other.execute("DROP TABLE resets")
        other.execute("ALTER TABLE run_steps DROP COLUMN evidence")
        other.execute("UPDATE meta SET value = '1' WHERE key = 'version'")
        other.execute("INSERT INTO watches (started_s, version, host) VALUES (1, '0', 'h')")
    other.close()
    reader = Queries(path)
    assert reader.marks() == ()
    assert reader.hits() == {}
    assert reader.resets() == ()
    assert reader.broken_link() is None
    reader.close()
    writer = open_journal(path, readonly=False)
    assert writer.execute("SELECT value FROM meta WHERE key = 'version'").fetchone() == (str(VERSION),)
    assert writer.execute("SELECT count(*) FROM marks").fetchone() == (0,)
    assert writer.execute("SELECT host FROM watches").fetchall() == [("h",)]
    writer.close()
