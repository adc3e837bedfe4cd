"""The format Remediation."""

from __future__ import annotations

from unveil.knowledge.formats.fragments import (
    TEXT,
    VALUE,
    Schema,
    choice,
    closed,
    described,
    duration,
    identity,
    names,
    provenance,
)
from unveil.records.remediation import Mode

MODES = tuple(str(mode) for mode in Mode)
VARIABLE_TYPES = ("string", "integer", "number", "boolean", "list")
TRIGGERS = ("apply_failed", "verify_failed", "canceled", "timeout", "operator")
PRECONDITIONS = ("still_matching", "no_silence")
IMPACTS = ("none", "low", "medium", "high")
ADDRESS_PATTERN = r"^(file|sysctl|irq|cgroup|ethtool|nvml|service|irqbalance|memory):.+|^\{\{.+\}\}$"

ORIGIN_PATTERN = r"^(match\.[a-z]+|(fact|setting)\.[a-z]+\.[a-z0-9_]+|site\.[a-z][a-z0-9_]*)$"
_VARIABLE_NAME = r"^(?!(item|index|unveil_.*)$)[a-z][a-z0-9_]{0,62}$"


def _variable() -> Schema:
    return closed(
        ("type",),
        {
            "type": choice(VARIABLE_TYPES, "list is a list of texts."),
            "from": {
                "type": "string", "pattern": ORIGIN_PATTERN,
                "description": "match.KEY (a binding), fact.NAME, setting.NAME (address of the setting behind a fact), "
                "or site.NAME (inventory/values.yml).",
            },
            "default": described(VALUE, "Value when there is no other."),
            "pattern": described(TEXT, "Regular expression for the whole text, or for each element of a list."),
            "min": {"type": "number", "description": "Least value of a number."},
            "max": {"type": "number", "description": "Greatest value of a number."},
            "max_length": {"type": "integer", "minimum": 1, "maximum": 65536, "default": 4096},
            "untrusted": {
                "type": "boolean", "default": False,
                "description": "A tenant can choose the text: shown only, never in a path, command or template.",
            },
            "description": TEXT,
        },
    )  # fmt: skip


def _setting() -> Schema:
    address: Schema = {"type": "string", "pattern": ADDRESS_PATTERN}
    return closed(
        ("address",),
        {
            "address": described(
                address, "What may change: file:/sys/…, sysctl:vm.…, irq:N/smp_affinity_list, cgroup:/…, nvml:UUID/…"
            ),
            "value": {
                "type": ["string", "number", "null"],
                "description": "Wanted content, a template over the variables; null when only the playbook can tell.",
            },
            "for_each": described(TEXT, "A list variable: a setting for each element, item; index is its number."),
            "coupled": {
                "type": "array", "uniqueItems": True, "items": address,
                "description": "What the kernel changes along with it; saved and restored, too.",
            },
        },
    )  # fmt: skip


def _improvements(feature: Schema, description: str, effect: str) -> Schema:
    item = closed(
        ("feature", "direction", "effect"),
        {
            "feature": feature,
            "direction": {"enum": ["up", "down"]},
            "effect": {"type": "number", "minimum": 0, "maximum": 100, "description": effect},
            "optional": described({"type": "boolean"}, "Counts only where it is measured before and afterwards."),
            "after": duration("Values count so long after the fix; for what looks back further than a window."),
        },
    )
    return {"type": "array", "items": item, "description": description}


def _verify(feature: Schema) -> Schema:
    return closed(
        ("within",),
        {
            "within": duration("Time until the judgement must be made."),
            "settings_hold_for": duration("How long the settings must keep what was written.", default="3s"),
            "fingerprint_clear_for": duration("How long the fingerprint must not match.", default="6s"),
            "improve": _improvements(feature, "What must get better.", "Least change, as a share of the value before."),
            "must_not_worsen": _improvements(
                feature, "What must not get worse; direction is the way that is worse.", "Most that is tolerated."
            ),
        },
        "What must be seen on fresh windows afterwards.",
    )


def _ansible() -> Schema:
    return closed(
        ("apply", "timeout"),
        {
            "apply": {"type": "string", "pattern": r"\.yml$",
                      "description": "Playbook, relative to this folder."},
            "timeout": duration("After that the run is ended and rolled back."),
        },
    )  # fmt: skip


def _risk() -> Schema:
    return closed(
        ("impact", "reversible", "interrupts_workload", "requires_reboot"),
        {
            "impact": choice(IMPACTS, "How much the workload may feel it."),
            "reversible": {"type": "boolean", "description": "Whether the saved values undo it."},
            "interrupts_workload": {"type": "boolean"},
            "requires_reboot": {"type": "boolean"},
            "notes": described(TEXT, "What a person should weigh."),
        },
    )  # fmt: skip


def _limits() -> Schema:
    return closed(
        ("cooldown", "max_attempts", "within"),
        {
            "cooldown": duration("Pause after a run on the same entity."),
            "max_attempts": {"type": "integer", "minimum": 1, "maximum": 10},
            "within": duration("Time in which attempts are counted."),
            "max_hosts": {"type": "integer", "minimum": 1, "description": "Hosts acted on in that time."},
        },
        "How often it may act.",
    )  # fmt: skip


def remediation_schema(feature: Schema) -> Schema:
    """Return the schema of kind Remediation; *feature* says what a feature name is."""
    return closed(
        ("apiVersion", "kind", "name", "id", "title", "status", "description", "date", "remediates", "ansible",
         "settings", "mode", "risk", "limits", "rollback", "verify"),
        {
            **identity("Remediation", named_for="the folder's name"),
            **provenance(),
            "remediates": described(names("Fingerprints it mends."), "Fingerprints it mends.", minItems=1),
            "ansible": _ansible(),
            "variables": {
                "type": "object", "propertyNames": {"pattern": _VARIABLE_NAME}, "additionalProperties": _variable(),
                "description": "Typed values for settings and playbook.",
            },
            "settings": {
                "type": "array", "minItems": 1, "items": _setting(),
                "description": "Managed settings: exactly what may change. Saved before, locked, compared after.",
            },
            "mode": choice(MODES, "How far automation may go: an upper bound that a site's profile can only lower."),
            "risk": _risk(),
            "preconditions": {
                "type": "array", "uniqueItems": True, "items": {"enum": list(PRECONDITIONS)},
                "default": list(PRECONDITIONS), "description": "Checked on fresh windows right before acting.",
            },
            "limits": _limits(),
            "approval": closed((), {"expires": duration("After that an approval is void.", default="30m")}),
            "rollback": closed(
                ("triggers",),
                {
                    "triggers": {
                        "type": "array", "uniqueItems": True, "items": {"enum": list(TRIGGERS)},
                        "description": "What puts the saved values back.",
                    },
                    "available_for": duration("How long a person may still undo it.", default="24h"),
                },
            ),
            "verify": _verify(feature),
        },
    )  # fmt: skip


def automatic_rule() -> Schema:
    """Return the rule about mode auto, for editors; the loader has it as check K501 with better words."""
    return {
        "if": {"properties": {"mode": {"const": "auto"}}, "required": ["mode"]},
        "then": {
            "properties": {
                "status": {"const": "stable"},
                "risk": {
                    "properties": {
                        "reversible": {"const": True},
                        "interrupts_workload": {"const": False},
                        "requires_reboot": {"const": False},
                    }
                },
                "rollback": {"properties": {"triggers": {"contains": {"const": "verify_failed"}}}},
                "limits": {"required": ["max_hosts"]},
            }
        },
    }
