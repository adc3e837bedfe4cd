"""The tables of the journal.

One row per fact of history; nothing is updated but what is a current state by nature (an episode, a run's saved
values). `run_steps` is a chain: each row holds the digest of the one before, so that a removed or altered step shows.
"""

from __future__ import annotations

VERSION = 4

_MARKS = """
CREATE TABLE marks (
    seq INTEGER PRIMARY KEY, episode TEXT NOT NULL, fingerprint TEXT NOT NULL, kind TEXT NOT NULL, mark TEXT NOT NULL
) STRICT;
CREATE INDEX marks_episode ON marks (episode, seq);
"""

_RESETS = """
CREATE TABLE resets (seq INTEGER PRIMARY KEY, at_s REAL NOT NULL, reset TEXT NOT NULL) STRICT;
"""

MIGRATIONS = {
    2: _MARKS,
    3: "ALTER TABLE run_steps ADD COLUMN evidence TEXT NOT NULL DEFAULT '';",
    4: _RESETS,
}
"""What makes a journal of the version before into one of this: done by its writer when it opens an older file.

A reader never changes the file: what an older one lacks is empty."""

TABLES = (
    """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE watches (
    id INTEGER PRIMARY KEY, started_s REAL NOT NULL, version TEXT NOT NULL, host TEXT NOT NULL, ended_s REAL
) STRICT;
CREATE TABLE windows (
    watch INTEGER NOT NULL, idx INTEGER NOT NULL, wall_s REAL NOT NULL, state TEXT NOT NULL, severity REAL NOT NULL,
    ticks_missed INTEGER NOT NULL, matched INTEGER NOT NULL, summary TEXT NOT NULL,
    PRIMARY KEY (watch, idx)
) STRICT, WITHOUT ROWID;
CREATE INDEX windows_wall ON windows (wall_s);
CREATE TABLE episodes (
    id TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, entity TEXT NOT NULL, state TEXT NOT NULL, started_s REAL NOT NULL,
    last_s REAL NOT NULL, cleared_s REAL, episode TEXT NOT NULL
) STRICT;
CREATE INDEX episodes_last ON episodes (last_s);
CREATE TABLE runs (
    id TEXT PRIMARY KEY, episode TEXT NOT NULL, remediation TEXT NOT NULL, created_s REAL NOT NULL, state TEXT NOT NULL,
    plan TEXT NOT NULL, saved TEXT NOT NULL, written TEXT NOT NULL
) STRICT;
CREATE TABLE run_steps (
    seq INTEGER PRIMARY KEY, run TEXT NOT NULL, at_s REAL NOT NULL, state TEXT NOT NULL, cause TEXT NOT NULL,
    actor TEXT NOT NULL, detail TEXT NOT NULL, digest TEXT NOT NULL, evidence TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX run_steps_run ON run_steps (run, seq);
CREATE TABLE run_events (
    seq INTEGER PRIMARY KEY, run TEXT NOT NULL, at_s REAL NOT NULL, event TEXT NOT NULL
) STRICT;
CREATE INDEX run_events_run ON run_events (run, seq);
CREATE TABLE knowledge (
    seq INTEGER PRIMARY KEY, at_s REAL NOT NULL, generation INTEGER NOT NULL, stale INTEGER NOT NULL,
    state TEXT NOT NULL
) STRICT;
CREATE TABLE silences (id TEXT PRIMARY KEY, until_s REAL NOT NULL, silence TEXT NOT NULL) STRICT;
"""
    + _MARKS
    + _RESETS
)
