from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from unveil.execution.events import condense, differences, printable
from unveil.execution.request import Difference, decode_event
from unveil.records.codec import encode

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


def test_an_event_is_cut_down_to_what_counts() -> None:
    event = condense(
        {
            "event": "runner_on_ok",
            "counter": 7,
            "stdout": "changed: \x1b[0;33m",
            "event_data": {
                "task": "Write\x1b[31m it",
                "host": "localhost",
                "res": {"changed": True, "msg": "done\r\n\x07", "count": 3, "_ansible_no_log": False, "diff": []},
            },
        }
    )
    assert event is not None
    assert (event.counter, event.task, event.changed, event.failed) == (
        7,
        "Write\N{REPLACEMENT CHARACTER}[31m it",
        True,
        False,
    )
    assert event.message == "done\N{REPLACEMENT CHARACTER}\n\N{REPLACEMENT CHARACTER}"
    assert event.answer == {"count": "3"}


def test_a_failure_that_is_not_ignored_is_one() -> None:
    raw = {"event": "runner_on_failed", "event_data": {"task": "T", "res": {"msg": "no"}}}
    assert condense(raw).failed  # type: ignore[union-attr]  # it is kept
    raw["event_data"]["ignore_errors"] = True  # type: ignore[index]  # a mapping
    assert not condense(raw).failed  # type: ignore[union-attr]  # it is kept


def test_events_that_say_nothing_are_left_out() -> None:
    assert condense({"event": "verbose", "stdout": "…"}) is None
    assert condense({}) is None


def test_differences_come_as_one_or_as_a_list() -> None:
    one = {"before_header": "a", "before": "1\n", "after": "2\n"}
    assert differences(one) == (Difference(name="a", before="1", after="2"),)
    assert differences([one, {"before": "x", "after": "x"}, "?", {}]) == (Difference(name="a", before="1", after="2"),)
    assert differences(None) == ()


@given(
    kind=st.sampled_from(["runner_on_ok", "runner_on_failed", "error", "playbook_on_stats"]), data=JSON, text=st.text()
)
def test_no_event_breaks_it_and_what_comes_out_survives_the_disk(kind: str, data: object, text: str) -> None:
    event = condense({"event": kind, "event_data": data, "stdout": text, "counter": text})
    assert event is not None
    import json

    assert decode_event(json.dumps(encode(event))) == event


@given(st.text(max_size=50))
def test_what_is_shown_holds_no_control_characters(text: str) -> None:
    assert all(character.isprintable() or character in "\n\t" for character in printable(text))
