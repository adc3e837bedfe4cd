"""What was installed is what was packed: edits between the two are lost with the next installation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unveil.errors import BadInputError
from unveil.knowledge.archive import MANIFEST, read_manifest
from unveil.knowledge.checks import file_finding
from unveil.knowledge.content import INVENTORY, SCHEMAS
from unveil.knowledge.pack import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.knowledge.pack import Pack
    from unveil.records.problem import Problem


def check_packed(pack: Pack, manifest: bytes) -> Iterator[Problem]:
    """Yield files that are not as the pack had them (K701). The inventory is the site's own.

    Args:
        manifest: ``kb.json`` of the folder; nothing is said when it is no manifest of a pack.
    """
    try:
        told = read_manifest(manifest)
    except BadInputError:
        return
    packed = {path: digest for path, digest in told["files"].items() if not path.startswith((INVENTORY, SCHEMAS))}
    there = {path: digest for path, digest in pack.digests.items() if not path.startswith(f"{INVENTORY}/")}
    whole = f"{told['name']} {told['version']}"
    for path in sorted(there.keys() | packed.keys()):
        if path not in there:
            yield file_finding("K701", shown(pack.root, MANIFEST), f"{path} of pack {whole} is gone")
        elif there[path] != packed.get(path):
            what = f"not as in the pack {whole}" if path in packed else f"not in the pack {whole}"
            yield file_finding("K701", shown(pack.root, path), what, "the next installation replaces it")
