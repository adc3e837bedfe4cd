from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unveil.errors import RefusedError, SourceAbsentError
from unveil.execution.memory_state import huge_pages, nodes
from unveil.execution.settings import Outcome, Settings

if TYPE_CHECKING:
    from pathlib import Path

V1 = "total=900 N0=700 N1=200\nanon=100 N0=100 N1=0\nhierarchical_anon=200 N0=150 N1=50\n"
V2 = "anon N0=4096 N1=12288\nfile N0=0 N1=0\n"


@pytest.mark.parametrize(("text", "told"), [(V1, "N0=75% N1=25%"), (V2, "N0=25% N1=75%"), ("", None), ("x=1", None)])
def test_where_memory_lies_is_told_from_both_versions(text: str, told: str | None) -> None:
    assert nodes(text) == told


def test_huge_pages_are_told_from_both_versions() -> None:
    assert huge_pages("rss 5\ntotal_rss 1000\ntotal_rss_huge 250\n") == "25%"
    assert huge_pages("anon 1000\nanon_thp 1000\n") == "100%"
    assert huge_pages("anon 0\nanon_thp 0\n") == "0%"
    assert huge_pages("cache 5\n") is None


def test_a_state_is_read_never_written_and_not_put_back(tree: Path) -> None:
    (tree / "sys/fs/cgroup/pod1/memory.numa_stat").write_text(V2)
    host = Settings(tree)
    assert host.read("memory:/pod1/nodes") == "N0=25% N1=75%"
    with pytest.raises(RefusedError, match="looked at"):
        host.write("memory:/pod1/nodes", "N0=100%")
    (answer,) = host.restore({"memory:/pod1/nodes": "N0=100% N1=0%"}, {})
    assert (answer.outcome, answer.foreign) == (Outcome.LEFT_ALONE, False)
    assert "'N0=100% N1=0%' before, 'N0=25% N1=75%' now" in answer.reason
    with pytest.raises(SourceAbsentError):
        host.read("memory:/pod1/huge_pages")
