"""Problems are told while they are news."""

from __future__ import annotations

from unveil.engine.problems import KEPT, NEWS_S, Problems


def test_one_that_comes_again_is_counted_and_one_that_does_not_is_forgotten() -> None:
    problems = Problems()
    assert problems.add("a", 0.0)
    assert problems.add("b", 1.0)
    assert not problems.add("a", 2.0)
    assert problems.told(3.0) == ["b", "a (2 times)"]
    assert problems.told(1.0 + NEWS_S) == ["a (2 times)"]
    assert problems.told(2.0 + NEWS_S) == []


def test_only_the_newest_are_kept() -> None:
    problems = Problems()
    for number in range(KEPT + 3):
        problems.add(str(number), float(number))
    assert problems.told(30.0) == [str(number) for number in range(3, KEPT + 3)]
