from __future__ import annotations

import sys

import pytest

from unveil.benchmarks.features import SIZES, made_up_layouts, made_up_second, main


@pytest.mark.slow
def test_the_benchmark_prints_a_line_for_each_size_of_host(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["features", "--windows", "3"])
    assert not main()
    said = capsys.readouterr().out
    assert all(any(line.startswith(size) for line in said.splitlines()) for size in SIZES)
    assert "budget: " in said


def test_a_made_up_host_is_the_same_each_time() -> None:
    layouts = made_up_layouts(*SIZES["small"])
    one, other = made_up_second(layouts, 3), made_up_second(layouts, 3)
    assert [block.values.tobytes() for block in one] == [block.values.tobytes() for block in other]
