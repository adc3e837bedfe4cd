"""One file per detector; none sees another."""
