"""How a cgroup's anonymous memory lies: on which nodes, and how much of it in huge pages. Read only.

Both are states that a playbook may change (pages moved, memory collapsed) and nobody writes: they are saved before,
shown after, and not put back.

Sources: kernel documentation admin-guide/cgroup-v1/memory (numa_stat, stat), admin-guide/cgroup-v2 (memory.numa_stat).
"""

from __future__ import annotations

import re

_NODE = re.compile(r"N([0-9]+)=([0-9]+)")


def nodes(numa_stat: str) -> str | None:
    """Return ``N0=81% N1=19%`` from a ``memory.numa_stat`` of either version, None when it does not tell."""
    lines = {re.split(r"[ =]", line, maxsplit=1)[0]: line for line in numa_stat.splitlines()}
    line = lines.get("hierarchical_anon") or lines.get("anon")
    if line is None:
        return None
    shares = {int(node): int(amount) for node, amount in _NODE.findall(line)}
    total = sum(shares.values())
    return " ".join(f"N{node}={100 * amount / total if total else 0:.0f}%" for node, amount in sorted(shares.items()))


def huge_pages(stat: str) -> str | None:
    """Return ``12%``, the share of anonymous memory in huge pages, from a ``memory.stat`` of either version."""
    amounts = {name: value for name, _, value in (line.partition(" ") for line in stat.splitlines())}
    for whole, huge in (("total_rss", "total_rss_huge"), ("anon", "anon_thp")):
        if whole in amounts and huge in amounts:
            total = int(amounts[whole])
            return f"{100 * int(amounts[huge]) / total if total else 0:.0f}%"
    return None
