"""Joins the rooms: the watch loop, the control socket, the driver of runs."""
