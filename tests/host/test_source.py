from __future__ import annotations

from unveil.host.cgroups import CgroupTrees
from unveil.host.source import Surroundings


def test_what_one_sampler_found_out_is_no_other_ones(procfs) -> None:
    first, second = (Surroundings(root=procfs.root, cgroups=CgroupTrees(procfs.root)) for _ in range(2))
    assert first.namespaces is not second.namespaces
