"""``kb docs``: the knowledge base as pages to read in a browser. Pure but for the templates that come with the package.

One page a fingerprint and a remediation, and an index by subsystem. HTML and one style sheet, no script, nothing from
elsewhere; every text that an author wrote is escaped. The same knowledge base and evidence make the same pages.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

from unveil.knowledge.fingerprint_changes import asked
from unveil.records.plain_text import span
from unveil.records.subsystem import Subsystem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import jinja2

    from unveil.knowledge.backtest import BacktestReport, Score
    from unveil.knowledge.knowledge_base import KnowledgeBase
    from unveil.knowledge.mutation import MutationResult
    from unveil.knowledge.scorecard import Card
    from unveil.knowledge.testing import TestReport
    from unveil.records.fingerprint import Fingerprint
    from unveil.records.remediation import Remediation

STYLE = "style.css"
INDEX = "index.html"
_TEMPLATES = "page_templates"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known about the fingerprints beside what they say.

    Attributes:
        mutated: empty when no mutants were made.
        backtest: None when nothing was watched.
        cards: one a fingerprint.
        sources: text of each file by its path below the knowledge base.
    """

    report: TestReport
    mutated: Sequence[MutationResult]
    backtest: BacktestReport | None
    cards: Sequence[Card]
    sources: Mapping[str, str]


def pages(knowledge: KnowledgeBase, evidence: Evidence, *, version: str) -> dict[str, str]:
    """Return the text of each page by its path.

    Args:
        version: of unveil, for the foot of each page.
    """
    environment = _environment()
    environment.globals |= {"digest": knowledge.digest[:12], "version": version}
    made = {STYLE: (resources.files("unveil.knowledge") / _TEMPLATES / STYLE).read_text("utf-8")}
    made[INDEX] = environment.get_template("index.html.j2").render(root="", **_index(knowledge, evidence))
    for each in knowledge.fingerprints:
        told = _fingerprint(each, knowledge, evidence)
        made[f"fingerprints/{each.name}.html"] = environment.get_template("fingerprint.html.j2").render(
            root="../", **told
        )
    for fix in knowledge.remediations:
        told = _remediation(fix, knowledge, evidence)
        made[f"remediations/{fix.name}.html"] = environment.get_template("remediation.html.j2").render(
            root="../", **told
        )
    return made


def _environment() -> jinja2.Environment:
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(str(resources.files("unveil.knowledge") / _TEMPLATES)),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {"share": _share, "paragraphs": _paragraphs, "span": _duration}
    made.tests["a_link"] = lambda text: text.startswith(("https://", "http://"))
    return made


def _index(knowledge: KnowledgeBase, evidence: Evidence) -> dict[str, Any]:
    cards = {each.fingerprint: each for each in evidence.cards}
    return {
        "subsystems": {
            str(subsystem): [(each, cards[each.name]) for each in knowledge.fingerprints if each.subsystem == subsystem]
            for subsystem in Subsystem
        },
        "remediations": knowledge.remediations,
        "correlations": knowledge.correlations,
        "filters": knowledge.filters,
        "statuses": Counter(each.status for each in knowledge.fingerprints),
        "cases": len(evidence.report.cases),
        "failed": len(evidence.report.failed),
        "backtest": evidence.backtest,
    }


def _fingerprint(fingerprint: Fingerprint, knowledge: KnowledgeBase, evidence: Evidence) -> dict[str, Any]:
    scores: Sequence[Score] = () if evidence.backtest is None else evidence.backtest.scores
    cases = [each for each in evidence.report.cases if each.fingerprint == fingerprint.name]
    return {
        "fingerprint": fingerprint,
        "clauses": [(clause, asked(clause)) for clause in fingerprint.clauses],
        "fixes": knowledge.fixes(fingerprint.name),
        "filters": [each for each in knowledge.filters if fingerprint.name in each.fingerprints],
        "cases": cases,
        "mutation": next((each for each in evidence.mutated if each.fingerprint == fingerprint.name), None),
        "score": next((each for each in scores if each.fingerprint == fingerprint.name), None),
        "backtest": evidence.backtest,
        "card": next(each for each in evidence.cards if each.fingerprint == fingerprint.name),
        "source": evidence.sources.get(fingerprint.path, ""),
    }


def _remediation(fix: Remediation, knowledge: KnowledgeBase, evidence: Evidence) -> dict[str, Any]:
    folder = fix.path.rpartition("/")[0]
    plans = [case for case in evidence.report.cases if case.planned == fix.name]
    return {
        "fix": fix,
        "fingerprints": [each for each in knowledge.fingerprints if fix.name in each.remediations],
        "plans": plans,
        "sources": {
            path.removeprefix(f"{folder}/"): text
            for path, text in evidence.sources.items()
            if path.startswith(f"{folder}/")
        },
    }


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"


def _duration(seconds: float) -> str:
    return "any number" if seconds == float("inf") else span(seconds)


def _paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a text."""
    return [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]
