"""The edge in: this host's counters and states become samples and facts."""
