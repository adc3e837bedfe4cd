"""What a pack's inventory would grant is told before anything of it is used."""

from __future__ import annotations

import pytest

from unveil.errors import BadInputError
from unveil.knowledge.brought_inventory import OBSERVING, PROFILES, grants_of

HEAD = b"apiVersion: unveil/v1\nkind: Profiles\n"


def test_what_stands_in_its_place_grants_nothing_and_so_does_none_at_all() -> None:
    assert grants_of({PROFILES: OBSERVING}) == ()
    assert grants_of({}) == ()


def test_a_mode_and_roles_are_told() -> None:
    content = HEAD + b"default: observe\nprofiles: [{name: everywhere, hosts: ['*'], mode: auto}]\n"
    assert grants_of({PROFILES: content}) == ("profile everywhere: auto on *",)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[",
        HEAD + b"default: all\n",
        b"kind: Profiles\n",
        HEAD + b"default: *a\n",
        HEAD + b"default: observe\nfreezes: [{first: '2026-02-30', last: '2026-03-01', reason: x}]\n",
    ],
)
def test_one_that_cannot_be_read_is_refused_not_taken_for_one_that_grants_nothing(content: bytes) -> None:
    with pytest.raises(BadInputError, match="the pack does not load"):
        grants_of({PROFILES: content})
