"""Slow states of the host: topology, settings, who runs where."""
