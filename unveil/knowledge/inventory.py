"""Which groups the hosts of a site belong to: read from Ansible's own inventory, ``inventory/hosts.yml``.

Only names of hosts and groups are looked at, in the YAML form (``all: {hosts: …, children: …}``), ranges included
(``gpu-[01:16]``). Whatever else stands there, or in an inventory of another form, is Ansible's alone.
Source: docs.ansible.com, "How to build your inventory" (inventory basics, adding ranges of hosts).
"""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_HOSTS = 20_000
MAX_NAMED = 200_000  # names that ranges are written out to, in all: a file of ranges stands for billions
MAX_DEPTH = 16
_RANGE = re.compile(r"\[([0-9]{1,9}|[a-zA-Z]):([0-9]{1,9}|[a-zA-Z])(?::([0-9]{1,9}))?\]")


def groups_of_hosts(data: Any) -> dict[str, tuple[str, ...]]:
    """Return the groups of each host, those above a group included, sorted. A mapping of another form has none."""
    found: dict[str, set[str]] = {}
    left = iter(range(MAX_NAMED))
    if isinstance(data, dict):
        for name, group in data.items():
            _group(str(name), group, (), found, left)
    return {host: tuple(sorted(groups)) for host, groups in sorted(found.items())}


def _group(name: str, group: Any, above: tuple[str, ...], found: dict[str, set[str]], left: Iterator[int]) -> None:
    if not isinstance(group, dict) or len(above) >= MAX_DEPTH:
        return
    groups = (*above, name)
    for pattern in _keys(group.get("hosts")):
        for host in hosts_of(pattern):
            if next(left, None) is None:
                return
            if len(found) < MAX_HOSTS or host in found:
                found.setdefault(host, set()).update(groups)
    children = group.get("children")
    for child, inside in children.items() if isinstance(children, dict) else ():
        _group(str(child), inside or {}, groups, found, left)


def _keys(hosts: Any) -> list[str]:
    return [str(host) for host in hosts] if isinstance(hosts, dict) else []


def hosts_of(pattern: str) -> Iterator[str]:
    """Yield the hosts that an entry stands for: ``gpu-[01:03]`` is gpu-01, gpu-02 and gpu-03."""
    parts = _RANGE.split(pattern)
    if len(parts) == 1:
        yield pattern
        return
    choices = [_steps(*parts[at : at + 3]) for at in range(1, len(parts), 4)]
    texts = parts[::4]
    for number, chosen in enumerate(product(*choices)):
        if number >= MAX_HOSTS:
            return
        yield texts[0] + "".join(each + text for each, text in zip(chosen, texts[1:], strict=True))


def _steps(first: str, last: str, step: str | None) -> list[str]:
    width = len(first) if first.startswith("0") else 0
    stride = max(1, int(step or 1))
    if first.isdigit() and last.isdigit():
        return [
            str(each).zfill(width) for each in range(int(first), min(int(last), int(first) + MAX_HOSTS) + 1, stride)
        ]
    if first.isalpha() and last.isalpha():
        return [chr(each) for each in range(ord(first), ord(last) + 1, stride)]
    return []


def groups_of(host: str, groups: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the groups of a host by its name as the inventory has it, or by that name's first part."""
    return groups.get(host) or groups.get(host.partition(".")[0], ())
