"""The one door to SQLite: the journal and its queries."""
