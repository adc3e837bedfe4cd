"""The checks themselves, one file per topic; `checks` is their table of contents."""
