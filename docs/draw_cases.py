"""Draw `docs/CASES.md` from `docs/cases.yml` and the knowledge base.

python docs/draw_cases.py
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from unveil.knowledge.content import FINGERPRINTS
from unveil.knowledge.testing import read_suite
from unveil.records.subsystem import Subsystem

if TYPE_CHECKING:
    from unveil.knowledge.testing import Suite

ROOT = Path(__file__).parents[1]
HEAD = """# Cases from the field

Inefficiencies that people reported in public, and the fingerprint that answers each; or why nothing that a host shows
can. Drawn from `cases.yml` by `draw_cases.py` of this folder, and held to the knowledge base by a test: every
fingerprint that is named is there, and has cases of its own.

"""


def cases() -> list[dict[str, Any]]:
    """Return the cases in their order."""
    found: list[dict[str, Any]] = yaml.safe_load((ROOT / "docs/cases.yml").read_text("utf-8"))["cases"]
    return found


def page(suite: Suite) -> str:
    """Return the text of the page."""
    told = cases()
    answered = [each for each in told if "fingerprints" in each]
    lines = [f"{HEAD}{len(told)} cases, {len(answered)} of them answered.\n"]
    for subsystem in Subsystem:
        own = [each for each in told if each["subsystem"] == subsystem]
        title = subsystem.upper() if len(subsystem) == 3 else subsystem.capitalize()
        lines.append(f"\n## {title}\n\n| case | what was seen | answered by |\n|---|---|---|\n")
        lines += [_row(each, suite) for each in own]
    return "".join(lines)


def _row(case: dict[str, Any], suite: Suite) -> str:
    seen = f"[{case['title']}]({case['reference']})"
    if "cannot" in case:
        return f"| {case['id']} | {seen} | none: {case['cannot']} |\n"
    names = []
    for name in case["fingerprints"]:
        fingerprint = suite.knowledge.fingerprint(name)
        assert fingerprint is not None, name
        assert fingerprint.path.startswith(FINGERPRINTS)
        assert name in suite.documents
        names.append(
            f"[`{name}`](../{fingerprint.path}) ([cases](../{fingerprint.path.removesuffix('.yml')}.test.yml))"
        )
    return f"| {case['id']} | {seen} | {', '.join(names)} |\n"


if __name__ == "__main__":
    read, problems = read_suite(ROOT)
    assert read is not None, problems
    Path(__file__).with_name("CASES.md").write_text(page(read), "utf-8")
