"""The things that travel between the rooms: frozen dataclasses, no I/O, imports nothing of ours."""
