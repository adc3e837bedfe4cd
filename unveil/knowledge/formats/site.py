"""The formats of what a site owns: Filter, SiteValues and Profiles."""

from __future__ import annotations

from unveil.knowledge.formats.fragments import (
    API_VERSION,
    DATE_PATTERN,
    GLOBS,
    NAME,
    TEXT,
    VALUE,
    Schema,
    choice,
    closed,
    described,
    identity,
)
from unveil.knowledge.formats.remediation import IMPACTS, MODES
from unveil.remediation.calendar import WINDOW_PATTERN

EFFECTS = ("suppress", "no_remediation")


def filter_schema() -> Schema:
    """Return the schema of kind Filter."""
    return closed(
        ("apiVersion", "kind", "name", "id", "title", "owner", "reason", "fingerprints", "expires"),
        {
            **identity("Filter", named_for="the file's stem"),
            "owner": described(TEXT, "Who answers for the exception."),
            "reason": {"type": "string", "minLength": 10, "description": "Why it is right here, with a reference."},
            "fingerprints": {
                "type": "array", "minItems": 1, "uniqueItems": True, "items": NAME,
                "description": "Fingerprints it is about.",
            },
            "match": closed(
                (),
                {
                    "hosts": described(GLOBS, "Shell-style patterns over host names. Default: every host."),
                    "entities": described(GLOBS, "Shell-style patterns such as 'cgroup:/pods/*'. Default: every one."),
                },
                "Where it holds.",
            ),
            "effect": {
                **choice(EFFECTS, "suppress: no episode at all; no_remediation: seen, never acted upon."),
                "default": "no_remediation",
            },
            "expires": {
                "type": "string", "pattern": DATE_PATTERN,
                "description": 'Last day it holds (UTC), quoted: "2027-03-31".',
            },
        },
    )  # fmt: skip


def site_values_schema() -> Schema:
    """Return the schema of kind SiteValues."""
    return closed(
        ("apiVersion", "kind", "values"),
        {
            "apiVersion": {"const": API_VERSION},
            "kind": {"const": "SiteValues"},
            "values": {
                "type": "object",
                "propertyNames": {"pattern": r"^[a-z][a-z0-9_]*$"},
                "additionalProperties": VALUE,
                "description": "Numbers and names of this site; variables take them with from: site.NAME.",
            },
        },
    )


def _role_schema() -> Schema:
    name: Schema = {"type": "string", "pattern": r"^[A-Za-z0-9_][A-Za-z0-9_.@-]*[$]?$"}
    role = closed(
        ("name",),
        {
            "name": NAME,
            "users": {
                "type": "array", "minItems": 1, "items": {"anyOf": [name, {"type": "integer", "minimum": 0}]},
                "description": "Users of the host, by name or number.",
            },
            "groups": {"type": "array", "minItems": 1, "items": name, "description": "Groups of the host, by name."},
        },
    )  # fmt: skip
    role["anyOf"] = [{"required": ["users"]}, {"required": ["groups"]}]
    return role


def profiles_schema() -> Schema:
    """Return the schema of kind Profiles."""
    mode = choice(MODES, "Most that automation may do here; a remediation's own mode is never exceeded.")
    profile = closed(
        ("name", "mode"),
        {
            "name": NAME,
            "hosts": described(GLOBS, "Shell-style patterns over host names."),
            "groups": described(GLOBS, "Inventory groups."),
            "mode": mode,
            "remediations": {
                "type": "object", "propertyNames": NAME, "additionalProperties": mode,
                "description": "Another mode for single remediations.",
            },
        },
    )  # fmt: skip
    day: Schema = {"type": "string", "pattern": DATE_PATTERN, "description": 'A day (UTC), quoted: "2026-12-20".'}
    profile["anyOf"] = [{"required": ["hosts"]}, {"required": ["groups"]}]
    return closed(
        ("apiVersion", "kind", "default"),
        {
            "apiVersion": {"const": API_VERSION},
            "kind": {"const": "Profiles"},
            "default": described(mode, "Mode of hosts that no profile names. observe is how a site begins."),
            "profiles": {"type": "array", "items": profile, "description": "The first that names a host holds."},
            "maintenance": {
                "type": "array",
                "items": {"type": "string", "pattern": WINDOW_PATTERN},
                "description": "Windows in which automation may act, UTC: 'Sat-Sun 02:00-06:00'. None is always.",
            },
            "freezes": {
                "type": "array",
                "items": closed(("first", "last", "reason"), {"first": day, "last": day, "reason": TEXT}),
                "description": "Days on which nothing is applied, whoever asks. Rollbacks go on.",
            },
            "roles": {
                "type": "array",
                "minItems": 1,
                "items": _role_schema(),
                "description": "Who may give orders. Without it: whoever may talk to the watcher (its user and root).",
            },
            "approvals": {
                "type": "object",
                "properties": {impact: described(NAME, "The role that approves it.") for impact in IMPACTS},
                "additionalProperties": False,
                "description": "Impact of a remediation and the role that approves it; of another impact, every role.",
            },
        },
    )
