"""Samples become sliding windows."""
