"""One file per screen; screens do not import each other, they ask the app by name."""
