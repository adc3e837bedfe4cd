"""What a site owns holds where it says, until it says, and never raises what a remediation allows."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unveil.records.remediation import Mode
from unveil.records.site import Filter, Profile, Profiles, Role

FILTER = Filter(
    name="f", id="1", title="t", owner="o", reason="r", fingerprints=("low",), expires="1970-01-01", expires_s=86_400.0,
    hosts=("hall-b-*",), entities=("cgroup:/pods/*",),
)  # fmt: skip
PROFILES = Profiles(
    default=Mode.OBSERVE,
    profiles=(
        Profile(name="one", mode=Mode.MANUAL, hosts=("gpu-1",), remediations={"fix": Mode.AUTO}),
        Profile(name="rest", mode=Mode.APPROVE, hosts=("gpu-*",), groups=("canary",)),
    ),
)


@pytest.mark.parametrize(
    ("fingerprint", "entity", "host", "at_s", "covered"),
    [
        ("low", "cgroup:/pods/1", "hall-b-7", 86_399.0, True),
        ("low", "cgroup:/pods/1", "hall-b-7", 86_400.0, False),
        ("high", "cgroup:/pods/1", "hall-b-7", 0.0, False),
        ("low", "cgroup:/other", "hall-b-7", 0.0, False),
        ("low", "cgroup:/pods/1", "hall-c-7", 0.0, False),
    ],
)
def test_a_filter_holds_where_and_until_it_says(
    fingerprint: str, entity: str, host: str, at_s: float, covered: bool
) -> None:
    assert FILTER.covers(fingerprint, entity, host, at_s) is covered


def test_a_filter_without_a_place_holds_everywhere() -> None:
    assert dataclasses.replace(FILTER, hosts=("*",), entities=("*",)).covers("low", "host", "any", 0.0)


def test_the_first_profile_that_names_a_host_holds() -> None:
    assert PROFILES.mode("fix", Mode.AUTO, host="gpu-1") is Mode.AUTO
    assert PROFILES.mode("other", Mode.AUTO, host="gpu-1") is Mode.MANUAL
    assert PROFILES.mode("fix", Mode.AUTO, host="gpu-2") is Mode.APPROVE
    assert PROFILES.mode("fix", Mode.AUTO, host="cpu-1", groups=("canary",)) is Mode.APPROVE
    assert PROFILES.mode("fix", Mode.AUTO, host="cpu-1") is Mode.OBSERVE


@given(st.sampled_from(list(Mode)), st.sampled_from(list(Mode)))
def test_a_profile_never_raises_a_mode(allowed: Mode, bound: Mode) -> None:
    modes = list(Mode)
    profiles = Profiles(profiles=(Profile(name="p", mode=allowed, hosts=("*",)),))
    assert modes.index(profiles.mode("fix", bound, host="h")) == min(modes.index(allowed), modes.index(bound))


def test_what_a_site_grants_is_said_in_words_and_observing_is_no_grant() -> None:
    site = dataclasses.replace(
        PROFILES, roles=(Role(name="admin", users=("root",), groups=("adm",)),), approvals={"high": "admin"}
    )
    assert site.grants == (
        "profile one: manual on gpu-1; fix: auto",
        "profile rest: approve on gpu-*, group canary",
        "role admin: root, group adm",
        "high impact is approved by admin",
    )
    assert dataclasses.replace(PROFILES, default=Mode.MANUAL, profiles=()).grants == (
        "mode manual on every host that no profile names",
    )
    looking_on = Profile(name="some", mode=Mode.OBSERVE, hosts=("*",), remediations={"fix": Mode.OBSERVE})
    assert Profiles(profiles=(looking_on,), maintenance=("02:00-04:00",)).grants == ()
    assert site.withheld() == Profiles()
