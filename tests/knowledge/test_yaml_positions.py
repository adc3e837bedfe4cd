"""YAML is read strictly, and every value knows its place."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unveil.knowledge.yaml_positions import MAX_BYTES, Document, read_yaml
from unveil.records.problem import Gravity


def read(text: str, *, ours: bool = True) -> Document:
    return read_yaml("x.yml", text.encode(), ours=ours)


def said(document: Document) -> list[str]:
    return [f"{each.line}:{each.column} {each.check} {each.what}" for each in document.problems]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("~", None), ("null", None), ("", None), ("true", True), ("FALSE", False), ("7", 7), ("-3", -3), ("0x1F", 31),
        ("0o17", 15), ("0", 0), ("1e3", 1000.0), ("-.5", -0.5), ("1.", 1.0), ("3.25", 3.25), ('"no"', "no"),
        ("'012'", "012"), ("v1.2", "v1.2"), ("1.2.3", "1.2.3"), ("a b", "a b"), ("nan", "nan"), ("-", "-"),
    ],
)  # fmt: skip
def test_scalars_are_those_of_the_core_schema(text: str, value: object) -> None:
    document = read(f"a: {text}\n" if text != "-" else "a: '-'\n")
    assert document.problems == ()
    assert document.data == {"a": value}
    assert type(document.data["a"]) is type(value)


@pytest.mark.parametrize(
    ("text", "reading"),
    [
        ("on", "'on' is true or false in YAML 1.1 and text in 1.2"),
        ("No", "'No' is true or false in YAML 1.1 and text in 1.2"),
        ("y", "'y' is true or false in YAML 1.1 and text in 1.2"),
        ("012", "012 is octal in YAML 1.1 and decimal in 1.2"),
        ("1:30", "1:30 is a number to base 60 in YAML 1.1 and text in 1.2"),
        ("190:20:30", "190:20:30 is a number to base 60 in YAML 1.1 and text in 1.2"),
        ("1_000", "1_000 is a number in YAML 1.1 and text in 1.2"),
        ("0b101", "0b101 is a number in YAML 1.1 and text in 1.2"),
        (".inf", ".inf is not a finite number"),
        (".NaN", ".NaN is not a finite number"),
        ("1e999", "1e999 is not a finite number"),
    ],
)
def test_what_yaml_1_1_reads_differently_is_an_error(text: str, reading: str) -> None:
    assert said(read(f"first: 1\nkey: {text}\n")) == [f"2:6 K003 {reading}"]


def test_a_key_that_yaml_1_1_takes_for_true_is_an_error_at_the_key() -> None:
    assert said(read("a:\n  on: 1\n")) == ["2:3 K003 'on' is true or false in YAML 1.1 and text in 1.2"]


def test_an_unquoted_date_stays_text_with_a_warning() -> None:
    document = read("date: 2026-11-29\n")
    assert document.data == {"date": "2026-11-29"}
    assert [each.gravity for each in document.problems] == [Gravity.WARNING]


def test_a_playbook_may_speak_yaml_1_1() -> None:
    assert read("become: yes\nmode: 0644\nsecret: !vault x\n", ours=False).problems == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\nb: 2\na: 3\n", "3:1 K002 duplicate key 'a'"),
        ("a: {b: 1, c: 2, b: 3}\n", "1:17 K002 duplicate key 'b'"),
        ("a:\n\tb: 1\n", "2:1 K006 tab (U+0009)"),
        ("a: b\tc\n", "1:5 K006 tab (U+0009)"),
        ("a: \x1b[31m\n", "1:4 K006 escape character (U+001B)"),
        ("a: x\u202ey\n", "1:5 K006 invisible character (U+202E)"),
        ("ä: \u200b\n", "1:4 K006 invisible character (U+200B)"),
        ("a: b\rc: d\n", "1:5 K006 carriage return (U+000D)"),
        ('a: "\\e[31m"\n', "1:4 K006 an escape sequence for escape character (U+001B)"),
        ("a: !!python/object:os.system x\n", "1:4 K001 tags such as !!str are not part of the format"),
        ("a: [1, 2\n", "2:1 K001 did not find expected ',' or ']', while parsing a flow sequence"),
        ("? [a]\n: 1\n", "1:3 K001 a key must be plain text"),
        ("a: 1\n---\nb: 2\n", "2:1 K001 but found another document, expected a single document in the stream"),
        ("a: *nowhere\n", "1:4 K001 found undefined alias"),
        ("", "1:1 K001 the file is empty"),
        ("a: &a [*a]\n", "1:4 K007 an alias refers to the value that it is part of"),
    ],
)
def test_what_is_wrong_is_told_with_line_and_column(text: str, expected: str) -> None:
    assert expected in said(read(text))


def test_windows_line_ends_and_a_byte_order_mark_are_no_finding() -> None:
    document = read_yaml("x.yml", "\ufeffa: 1\r\nb: 2\r\n".encode())
    assert document.problems == ()
    assert document.data == {"a": 1, "b": 2}
    assert document.at(("a",)) == (1, 4)


def test_bytes_that_are_not_utf_8_are_found_where_they_are() -> None:
    assert said(read_yaml("x.yml", b"a: 1\nb: \xff\n")) == ["2:4 K001 byte 0xff is not UTF-8"]


def test_an_alias_bomb_goes_off_in_a_bucket() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    document = read("\n".join(lines) + "\n")
    assert document.data is None
    assert [each.check for each in document.problems] == ["K007"]


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 100_000 + "x", "{a: " * 5_000])
def test_a_tower_of_brackets_does_not_fall_on_us(text: str) -> None:
    document = read(text)
    assert document.data is None
    assert {each.check for each in document.problems} <= {"K001", "K007"}


def test_deep_but_well_formed_nesting_is_bounded() -> None:
    assert said(read("a: " + "[" * 60 + "]" * 60 + "\n"))[0].endswith("nested deeper than 40 levels")


def test_a_file_over_the_limit_is_not_read() -> None:
    document = read_yaml("x.yml", b"#" * (MAX_BYTES + 1))
    assert said(document) == ["1:1 K008 the file has 1,000,001 bytes"]


def test_every_key_and_value_knows_its_place() -> None:
    document = read("a:\n  b: [1, {c: x}]\n  'd': >\n    text\n")
    assert document.at_key(("a", "b")) == (2, 3)
    assert document.at(("a", "b")) == (2, 6)
    assert document.at(("a", "b", 1, "c")) == (2, 14)
    assert document.at_key(("a", "b", 1, "c")) == (2, 11)
    assert document.at(("a", "d")) == (3, 8)
    assert document.at(("a", "b", 1, "missing", "deeper")) == (2, 10)


def test_comments_that_silence_know_what_they_cover() -> None:
    text = (
        "# unveil-ignore: K301 for the whole file\na: 1  # unveil-ignore: K304 this line\n"
        "# unveil-ignore: K205 the next\nb: '# unveil-ignore: K110 text, no comment'\n"
    )
    found = [(each.check, each.reason, each.lines) for each in read(text).ignores]
    assert found == [("K301", "for the whole file", (0,)), ("K304", "this line", (2,)), ("K205", "the next", (3, 4))]


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused_but_never_raises(text: str) -> None:
    document = read_yaml("x.yml", text.encode("utf-8", "surrogatepass"))
    for problem in document.problems:
        assert problem.line >= 1
        assert problem.column >= 1
    assert document.data is not None or document.problems or not text.strip() or "null" in text.lower() or "~" in text


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused_but_never_raise(content: bytes) -> None:
    read_yaml("x.yml", content)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(st.characters(min_codepoint=97, max_codepoint=122), min_size=3), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=40)
@given(st.dictionaries(st.text(st.characters(min_codepoint=97, max_codepoint=122), min_size=3), _JSON, min_size=1))
def test_json_is_yaml_and_reads_the_same(data: dict[str, object]) -> None:
    assert read(json.dumps(data)).data == data
