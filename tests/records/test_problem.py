"""A problem is one line that an editor can jump to."""

from __future__ import annotations

from unveil.records.problem import Gravity, Problem


def test_a_problem_reads_file_line_column_check_what_and_cure() -> None:
    problem = Problem(file="a.yml", line=3, column=7, check="K203", what="no feature 'x'", hint="did you mean 'y'?")
    assert str(problem) == "a.yml:3:7: error K203: no feature 'x' (did you mean 'y'?)"
    calm = Problem(file="a.yml", line=1, column=1, check="K301", what="short", gravity=Gravity.WARNING)
    assert str(calm) == "a.yml:1:1: warning K301: short"


def test_problems_sort_by_place() -> None:
    late = Problem(file="a.yml", line=10, column=1, check="K001", what="")
    early = Problem(file="a.yml", line=9, column=1, check="K900", what="")
    assert sorted([late, early]) == [early, late]
