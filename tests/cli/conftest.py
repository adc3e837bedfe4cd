"""A knowledge base of the one fingerprint that the demo's recording shows, and its fix."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
NAME = "reduced_huge_page_coverage"


@pytest.fixture
def one_kb(tmp_path: Path) -> Path:
    """Give a fresh one."""
    return _build(tmp_path / "kb")


@pytest.fixture(scope="session")
def build_one_kb() -> Callable[[Path], Path]:
    """Give what builds one in a folder that is not there yet."""
    return _build


def _build(kb: Path) -> Path:
    """Write it; the fix is for this fingerprint only, whatever else it is for."""
    for folder in ("schemas", "inventory", "playbooks/modules", "playbooks/enable_huge_pages"):
        shutil.copytree(ROOT / folder, kb / folder)
    (kb / "fingerprints/memory").mkdir(parents=True)
    for ending in ("yml", "test.yml"):
        shutil.copy(ROOT / f"fingerprints/memory/{NAME}.{ending}", kb / "fingerprints/memory")
    fix = kb / "playbooks/enable_huge_pages/remediation.yml"
    fix.write_text(re.sub(r"(?m)^remediates: .*$", f"remediates: [{NAME}]", fix.read_text()))
    return kb
