"""One file per command; draws, decides nothing."""
