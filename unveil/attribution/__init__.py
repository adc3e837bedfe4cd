"""A verdict becomes shares by feature and by subsystem."""
