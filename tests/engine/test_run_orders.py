from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from unveil.errors import BadInputError

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_reset_and_a_release_need_a_reason_and_are_kept_with_who_said_it(watch: Callable[..., Any]) -> None:
    watcher = watch()
    handle = watcher._commands.handle
    for method, params in (("reset_breaker", {}), ("release", {"setting": "sysctl:vm.dirty_ratio"})):
        with pytest.raises(BadInputError, match="needs a reason"):
            handle(method, {**params, "reason": "  "}, "uid:0 pid:1")
        handle(method, {**params, "reason": "looked at"}, "uid:0 pid:1")
    with pytest.raises(BadInputError, match="no address"):
        handle("release", {"setting": "/etc/passwd", "reason": "x"}, "uid:0 pid:1")
    kept = watcher.queries.resets()
    assert [(each.kind, each.subject, each.actor) for each in kept] == [
        ("breaker", "", "uid:0 pid:1"),
        ("hold", "sysctl:vm.dirty_ratio", "uid:0 pid:1"),
    ]


def test_an_unknown_run_is_told(watch: Callable[..., Any]) -> None:
    watcher = watch()
    with pytest.raises(BadInputError, match="no run"):
        watcher._commands.handle("run", {"id": "r0"}, "uid:0 pid:1")
