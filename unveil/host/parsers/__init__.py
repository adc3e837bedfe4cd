"""Kernel text to numbers: pure functions that know no path."""
