from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.errors import BadInputError
from unveil.remediation.templates import names, render


def test_expressions_over_variables_are_filled_in() -> None:
    values = {"item": "24", "setting": "cgroup:/p/cpu.cfs_quota_us", "cores": 2.5, "cpus": ("0", "1")}
    assert render("irq:{{ item }}/smp_affinity_list", values) == "irq:24/smp_affinity_list"
    assert render("{{ '-1' if 'cfs_quota' in setting else 'max' }}", values) == "-1"
    assert render("{{ (cores * 100000) | int }} 100000", values) == "250000 100000"
    assert render("{{ cpus | join(',') }}", values) == "0,1"
    assert names("{{ item }}-{{ setting }}") == {"item", "setting"}


@pytest.mark.parametrize(
    "template",
    [
        "{% for x in y %}{% endfor %}",
        "{{ x.__class__.__mro__ }}",
        "{{ x['__class__'].y }}",
        "{{ lookup('pipe', 'id') }}",
        "{{ range(9) }}",
        "{{ cycler }}{{ x.y }}",
        "{{ x | attr('y') }}",
        "{{ x | format(1) }}",
        "{{ x ** 9999999 }}",
        "{% set a = 1 %}",
        "{% include 'x' %}",
        "{{ x is defined }}",
        "{{ unclosed",
        "x" * 3000,
    ],
)
def test_more_than_an_expression_is_refused(template: str) -> None:
    with pytest.raises(BadInputError):
        names(template)


@pytest.mark.parametrize("template", ["{{ 'x' * 1000000000 }}", "{{ text * 100000000 }}", "{{ '%999999999d' % 1 }}"])
def test_texts_are_not_multiplied_into_gigabytes(template: str) -> None:
    with pytest.raises(BadInputError):
        render(template, {"text": "abc"})


def test_what_cannot_be_filled_in_says_why() -> None:
    with pytest.raises(BadInputError, match="uses tenant, which is no variable"):
        render("{{ tenant }}", {})
    with pytest.raises(BadInputError, match="cannot be filled in"):
        render("{{ 1 / nothing }}", {"nothing": 0})
    with pytest.raises(BadInputError, match="more than 4096 characters"):
        render("{{ a ~ a }}", {"a": "x" * 4000})


@given(st.text(max_size=200))
def test_a_value_stays_what_it_is_even_when_it_looks_like_a_template(value: str) -> None:
    for text in (value, "{{" + value + "}}", "{{ lookup('pipe', 'id') }}" + value):
        assert render("{{ value }}", {"value": text}) == text
