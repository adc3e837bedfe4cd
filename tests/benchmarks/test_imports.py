"""What an import costs is measured in a process of its own, and what is not installed is said."""

from __future__ import annotations

import pytest

from unveil.benchmarks import imports


def test_an_import_costs_memory_and_time_and_what_is_not_there_costs_nothing() -> None:
    cost = imports.growth("import tomllib", before="import json")
    assert cost is not None
    assert 0 <= cost[0] < 50
    assert cost[1] > 0
    assert imports.growth("import no_such_library_anywhere", before="import json") is None
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        imports.growth("1 / 0", before="import json")


def test_each_has_a_line_with_who_has_it_instead(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(imports, "_WATCHER", "import json")
    monkeypatch.setattr(imports, "_KEPT_OUT", {"one": ("import tomllib", "nobody"), "two": ("import nothing_here", "")})
    monkeypatch.setattr(imports, "_CHILDREN", {"three": "import tomllib"})
    assert imports.main(["--processes", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("one ")
    assert lines[1].endswith(" ms   nobody")
    assert lines[2].split() == ["two", "not", "installed"]
    assert float(lines[4].split()[1]) > 1, "a whole interpreter"
