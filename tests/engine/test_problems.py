"""Problems are told while they are news."""

from __future__ import annotations

import sys
import threading

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


def test_one_thread_may_add_while_another_tells() -> None:
    problems, ended = Problems(), threading.Event()

    def complain() -> None:
        number = 0
        while not ended.is_set():
            number += 1
            problems.add(f"problem {number}", float(number % 5000))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=complain)
    thread.start()
    try:
        for _ in range(3000):
            assert len(problems.told(4000.0)) <= KEPT + 1
    finally:
        ended.set()
        thread.join()
        sys.setswitchinterval(before)
