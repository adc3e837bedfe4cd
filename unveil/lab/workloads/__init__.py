"""Workloads of the lab, one program each. They say what they did as ``unveil.lab.units``, one JSON line a unit."""
