"""What a command takes when it is told nothing: the knowledge base and the state directory of ``unveil.toml``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

_SYSTEM_FILE = "/etc/unveil/unveil.toml"  # as unveil.engine.settings has it, which is only imported when one is there


def fill(arguments: argparse.Namespace) -> None:
    """Give ``--kb`` and ``--state-dir`` the values of this host's settings where they were not given.

    Raises:
        BadInputError: a settings file, or a variable, is wrong.
    """
    missing = [name for name in ("kb", "state_dir") if getattr(arguments, name, "") is None]
    if not missing or not _is_set_up():
        return
    from unveil.engine.settings import load_settings

    settings = load_settings({})
    for name in missing:
        setattr(arguments, name, getattr(settings, name) or None)


def _is_set_up() -> bool:
    """Return whether anything says something about either."""
    if os.environ.get("UNVEIL_KB") or os.environ.get("UNVEIL_STATE_DIR"):
        return True
    home = os.environ.get("XDG_CONFIG_HOME") or f"{os.environ.get('HOME', '/root')}/.config"
    return Path(home, "unveil", "unveil.toml").exists() or Path(_SYSTEM_FILE).exists()
