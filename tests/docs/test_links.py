"""What the documents name is there: paths, links and anchors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
CONTENT = ("fingerprints", "playbooks", "schemas", "inventory")
DOCUMENTS = [
    str(path.relative_to(ROOT))
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *(ROOT / name / "README.md" for name in CONTENT)])
    if path.exists()
]

# Of a site, of a state directory, the version of a format, and what only a wheel holds.
ELSEWHERE = ("inventory/filters", "recordings/", "inventory/allowed_signers", "runs/", "unveil/v1", "unveil/_content")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_path_that_is_named_is_there(document: str) -> None:
    prose = FENCE.sub("", (ROOT / document).read_text())
    for name in re.findall(r"`((?:\.ci|[a-z_]+)/[\w./-]*|[A-Z]+\.md|LICENSE|Makefile|pyproject\.toml)`", prose):
        placeholder = re.search(r"[A-Z]{3,}", name) and not re.search(r"(?:^|/)[A-Z]+\.md$|^LICENSE$", name)
        if placeholder or name.startswith(ELSEWHERE):
            continue
        found = [place / f"{name}{ending}" for place in _places(document) for ending in ("", ".py", ".yml")]
        assert any(path.exists() for path in found), f"{document}: {name}"


def _places(document: str) -> tuple[Path, ...]:
    return (ROOT, ROOT / "unveil", (ROOT / document).parent)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_link_leads_somewhere(document: str) -> None:
    prose = FENCE.sub("", (ROOT / document).read_text())
    targets = re.findall(r"\]\(([^)\s]+)\)", prose) + re.findall(r"(?:src|srcset)=\"([^\"]+)\"", prose)
    for target in targets:
        if target.startswith(("https://", "http://")):
            continue
        path, _, anchor = target.partition("#")
        file = (ROOT / document).parent / path if path else ROOT / document
        assert file.exists(), f"{document}: {target}"
        if anchor:
            assert anchor in anchors(file.read_text()), f"{document}: {target}"


def anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_pages_say_nothing_of_machines_that_they_were_written_on() -> None:
    for document in DOCUMENTS:
        assert not re.search(r"(?<![\w.])/(?:work|tmp|home|root)/\w", FENCE.sub("", (ROOT / document).read_text())), (
            document
        )
