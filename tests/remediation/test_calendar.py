from __future__ import annotations

import pytest

from unveil.errors import BadInputError
from unveil.records.site import Freeze
from unveil.remediation.calendar import frozen, within

DAY = 86400
MONDAY = 4 * DAY  # 1970-01-05


@pytest.mark.parametrize(
    ("window", "day", "hour", "inside"),
    [
        ("02:00-06:00", 0, 2, True),
        ("02:00-06:00", 0, 6, False),
        ("02:00-06:00", 3, 5.99, True),
        ("22:00-04:00", 0, 23, True),
        ("22:00-04:00", 1, 3, True),
        ("22:00-04:00", 1, 4, False),
        ("Sat-Sun 02:00-06:00", 5, 3, True),
        ("Sat-Sun 02:00-06:00", 6, 3, True),
        ("Sat-Sun 02:00-06:00", 0, 3, False),
        ("Fri 22:00-04:00", 4, 23, True),
        ("Fri 22:00-04:00", 5, 3, True),  # it belongs to Friday
        ("Fri 22:00-04:00", 4, 3, False),
        ("Sat-Mon 00:00-24:00", 0, 12, True),
        ("Sat-Mon 00:00-24:00", 1, 12, False),
    ],
)
def test_a_window_holds_on_its_days_and_over_midnight(window: str, day: int, hour: float, inside: bool) -> None:
    assert within((window,), MONDAY + day * DAY + hour * 3600) is inside


def test_no_window_is_always_and_of_several_one_is_enough() -> None:
    assert within((), 0.0)
    assert within(("Mon 00:00-01:00", "Tue 00:00-01:00"), MONDAY + DAY)


@pytest.mark.parametrize(
    "text", ["", "Mon", "25:00-26:00", "2:00-3:00", "Mo 01:00-02:00", "01:00-02:00\n", "Mon - 01:00-02:00"]
)
def test_what_is_no_window_is_refused(text: str) -> None:
    with pytest.raises(BadInputError, match="no window"):
        within((text,), 0.0)


def test_a_freeze_holds_from_its_first_day_to_the_end_of_its_last() -> None:
    freeze = Freeze(first="1970-01-02", last="1970-01-03", from_s=DAY, until_s=3 * DAY, reason="year end")
    assert [frozen((freeze,), at) is freeze for at in (DAY - 1, DAY, 3 * DAY - 1, 3 * DAY)] == [
        False,
        True,
        True,
        False,
    ]
