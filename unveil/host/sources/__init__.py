"""One file per place of the host that is read; none sees another."""
