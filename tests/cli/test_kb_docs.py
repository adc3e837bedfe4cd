"""`unveil kb docs`: pages whose links lead somewhere, in which no author's text is markup, and no script runs."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from unveil.cli.main import main

ROOT = Path(__file__).parents[2]
NAME = "reduced_huge_page_coverage"
HOSTILE = '</script><script>alert(1)</script> <img src=x onerror=alert(1)> {{ 7*7 }} & "quoted" \''


class Page(HTMLParser):
    """What is in a page: links, tags, and whether every tag is closed."""

    VOID = frozenset({"meta", "link", "br"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert not any(name.startswith("on") or name == "style" for name, _ in attrs)
        self.links += [value for name, value in attrs if name in ("href", "src") and value]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_links_lead_somewhere_and_nothing_runs(one_kb: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    command = ["kb", "docs", "--kb", str(one_kb), "--output", str(site), "--no-recordings"]
    assert main(command) == 0
    pages = {path: Page(path.read_text()) for path in site.rglob("*.html")}
    assert {str(path.relative_to(site)) for path in pages} == {
        "index.html", f"fingerprints/{NAME}.html", "remediations/enable_huge_pages.html",
    }  # fmt: skip
    for path, page in pages.items():
        assert page.open == []
        assert "script" not in page.tags
        assert "default-src 'none'; style-src 'self'" in path.read_text().replace("&#39;", "'")
        for link in page.links:
            if link.startswith("https://"):
                continue
            file, _, anchor = link.partition("#")
            target = (path.parent / file) if file else path
            assert target.exists(), link
            assert not anchor or f'id="{anchor}"' in target.read_text()
    before = {path: path.read_text() for path in site.rglob("*") if path.is_file()}
    (site / "fingerprints/gone.html").write_text("of yesterday")
    assert main(command) == 0
    assert {path: path.read_text() for path in site.rglob("*") if path.is_file()} == before


def test_what_an_author_wrote_is_text(one_kb: Path, tmp_path: Path) -> None:
    file = one_kb / f"fingerprints/memory/{NAME}.yml"
    quoted = HOSTILE.replace("'", "''")
    text = re.sub(r"(?m)^title: .*$", lambda _: f"title: '{quoted}'", file.read_text())
    text = re.sub(r"(?m)^falsepositives:\n", lambda _: f"falsepositives:\n  - '{quoted}'\n", text)
    file.write_text(text)
    options = ["--no-recordings", "--no-mutants"]
    assert main(["kb", "docs", "--kb", str(one_kb), "--output", str(tmp_path / "site"), *options]) == 0
    for path in (tmp_path / "site").rglob("*.html"):
        page = Page(path.read_text())
        assert not page.tags & {"script", "img"}
        assert "49" not in re.findall(r"\{\{ 7\*7 \}\}|\b49\b", path.read_text())


def test_a_folder_that_holds_something_else_is_left_alone(one_kb: Path, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site/letter.txt").write_text("mine")
    assert main(["kb", "docs", "--kb", str(one_kb), "--output", str(tmp_path / "site")]) == 1
    assert [path.name for path in (tmp_path / "site").iterdir()] == ["letter.txt"]


@pytest.mark.slow
def test_the_last_backtest_stands_on_the_page(one_kb: Path, tmp_path: Path) -> None:
    assert main(["kb", "docs", "--kb", str(one_kb), "--output", str(tmp_path / "site")]) == 0
    text = (tmp_path / f"site/fingerprints/{NAME}.html").read_text()
    assert "<dt>found</dt><dd>1 of 1</dd>" in text
    assert "Last backtest: recording.parquet" in text
