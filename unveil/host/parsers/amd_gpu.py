"""``pp_dpm_sclk`` and ``pp_dpm_mclk`` of an AMD GPU: the levels of a clock, a star at the one in use.

Source: drivers/gpu/drm/amd/pm/amdgpu_pm.c, Documentation/gpu/amdgpu/thermal.rst.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from unveil.host.parsers.number import parse_number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unveil.host.parsers.text import Reading, Text

_IN_USE = re.compile(rb"^\w{1,2}: ([0-9]{1,6})Mhz \*\s*$", re.ASCII | re.MULTILINE | re.IGNORECASE)


def cut_clock(raw: bytes) -> bytes:
    """Return the clock in use, in MHz; nothing where no level is marked."""
    found = _IN_USE.search(raw)
    return b"" if found is None else found[1]


def parse_clock(text: Text, metric: str, gpu: str) -> Iterator[Reading]:
    """Yield the clock that ``cut_clock`` left."""
    return parse_number(text, metric, (("gpu", gpu),))
