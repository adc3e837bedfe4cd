"""Each error earns the exit code that the table at the top of the file promises."""

from __future__ import annotations

import re

from unveil import errors
from unveil.errors import UnveilError, did_you_mean


def test_the_tree_in_the_docstring_is_the_tree_of_the_classes() -> None:
    assert errors.__doc__ is not None
    promised = dict(re.findall(r"(\w+Error)\s+(\d)", errors.__doc__))
    kinds = {
        name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, UnveilError)
    }
    assert {name: str(kind.exit_code) for name, kind in kinds.items()} == promised


def test_an_error_says_what_and_how_to_cure_it() -> None:
    error = UnveilError("it is so", hint="do that")
    assert (str(error), error.what, error.hint) == ("it is so", "it is so", "do that")


def test_a_misspelt_name_gets_the_nearest_and_a_strange_one_the_way_to_all() -> None:
    assert did_you_mean("some_dir", ["power", "some_dirt"], otherwise="look") == "did you mean some_dirt?"
    assert did_you_mean("xyz", ["power", "some_dirt"], otherwise="look") == "look"
