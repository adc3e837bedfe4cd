"""Where the content folders are: the same answer in a checkout and in an installed wheel.

A wheel carries ``fingerprints/``, ``playbooks/``, ``schemas/`` and ``inventory/`` as ``unveil/_content/*``; a checkout
has them beside the package. `pyproject.toml` holds the other half of this; tests/knowledge/test_content.py holds both
to it.
"""

from __future__ import annotations

from pathlib import Path

from unveil.errors import UnreadableError

FINGERPRINTS = "fingerprints"
PLAYBOOKS = "playbooks"
SCHEMAS = "schemas"
INVENTORY = "inventory"
FOLDERS = (FINGERPRINTS, PLAYBOOKS, SCHEMAS, INVENTORY)


def shipped_root(package: Path | None = None) -> Path:
    """Return the folder that holds the four content folders that came with this installation.

    Args:
        package: where the package ``unveil`` lies; found by itself when None.

    Raises:
        UnreadableError: the installation lacks its content.
    """
    import importlib.resources  # only who names no folder needs it

    package = Path(str(importlib.resources.files("unveil"))) if package is None else package
    in_wheel = package / "_content"  # exists only in an installed wheel
    root = in_wheel if in_wheel.is_dir() else package.parent
    missing = [name for name in FOLDERS if not (root / name).is_dir()]
    if missing:
        what = f"no {missing[0]}/ folder at {root}"
        raise UnreadableError(what, hint="install unveil again, or name your own knowledge base with --kb DIR")
    return root


def knowledge_root(override: str | Path | None = None) -> Path:
    """Return the knowledge base to work with: the folder named by ``--kb``, else the shipped one.

    The result is as given, not resolved, so that a symbolic link that a site swaps keeps its meaning and messages
    name the paths that the person typed.

    Raises:
        UnreadableError: there is no such folder.
    """
    if override is None:
        return shipped_root()
    root = Path(override)
    if not root.is_dir():
        raise UnreadableError(
            f"{root} is not a folder", hint="--kb names the folder that holds fingerprints/ and playbooks/"
        )
    return root
