"""What `unveil eval` writes to files: its tables as Markdown, and a page with figures that needs nothing but itself."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from unveil.cli import eval_figures
from unveil.records.plain_text import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unveil.cli.eval_tables import Table
    from unveil.knowledge.backtest import Trace
    from unveil.knowledge.comparison import Combination, Compared, Named, Standing
    from unveil.knowledge.evaluation import DetectionScore

STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --paper: #fff; --faint: #8894a3; --line: #dde3ea;
  --alarm: #d9480f; --match: #1971c2; --fault: #fff0d6; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9ef; --paper: #14181d; --faint: #8b97a5; --line: #2c343d;
  --alarm: #ff922b; --match: #4dabf7; --fault: #33290f; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem;
  color: var(--ink); background: var(--paper); }
h2 { margin-top: 2.5rem; font-size: 1.1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid var(--line); text-align: left; white-space: nowrap; }
.n { text-align: right; }
svg { width: 100%; height: auto; margin: .5rem 0 1.5rem; }
text { fill: var(--ink); font: 11px system-ui, sans-serif; }
.faint { fill: var(--faint); }
"""


def markdown(tables: Sequence[Table], traces: Sequence[Trace]) -> str:
    """Return the tables for a pull request."""
    lines = ["# Evaluation", "", _about(traces)]
    for title, columns, rows in tables:
        lines += ["", f"## {title}", "", "| " + " | ".join(_cell(column.rstrip(">")) for column in columns) + " |"]
        lines.append("|" + "|".join("---:" if column.endswith(">") else "---" for column in columns) + "|")
        lines += ["| " + " | ".join(_cell(value) for value in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(value: object) -> str:
    return plain(value).replace("|", "\\|")


def _about(traces: Sequence[Trace]) -> str:
    minutes = sum(trace.seconds for trace in traces) / 60
    names = ", ".join(plain(trace.recording) for trace in traces)
    return f"{len(traces)} recording{'s' * (len(traces) != 1)}, {minutes:.1f} minutes: {names}."


def html(
    tables: Sequence[Table],
    scores: Sequence[DetectionScore],
    groups: Sequence[Sequence[Trace]],
    runs: Sequence[Compared],
    compared: tuple[Sequence[Combination], Sequence[Standing], Sequence[Named]],
) -> str:
    """Return a page: the tables, figures after the paper's, and each recording with what every combination said.

    Args:
        groups: for each score the recordings as watched with it.
        runs: the recordings as all detectors saw them.
        compared: combinations, ours first; how they stand; and what ours attributes faults to.
    """
    chosen, stood, named = compared
    costs = [(each.combination, each.cost_us) for each in stood if each.cost_us is not None]
    watched = list(zip(scores, groups, strict=True))
    lanes = [[(score.label, group[number]) for score, group in watched] for number in range(len(groups[0]))]
    parts = [
        f"<p>{escape(_about(groups[0]))}</p>",
        _figure("F1", "With its 95 % interval, as a watcher.", eval_figures.f1_bars(scores)),
        *map(_table, tables),
        _figure(
            "Scores of healthy (blue) and of faulty windows (orange)",
            "Evidence over the alarm level, which is the dashed line. After the paper's figure 2.",
            eval_figures.score_spreads(runs, chosen),
        ),
        _figure(
            "Subsystems that detected windows are attributed to",
            "Mean shares for each fault, and for false alarms; on the right, how many windows. After figure 3.",
            eval_figures.subsystem_bars(named),
        ),
        _figure(
            "CPU time to score a window",
            "Log scale. In the paper's figure 7 it is the collector's: <code>python -m unveil.benchmarks.watch</code>.",
            eval_figures.cost_bars(costs),
        ),
        _figure(
            "Recordings",
            "Shaded: the time of a fault. In each lane, windows that a combination called anomalous; in the last, "
            "those that a fingerprint matched. After figure 8.",
            "".join(eval_figures.lanes(trace, each) for trace, each in zip(groups[0], lanes, strict=True)),
        ),
        _figure(
            "Subsystems over time",
            f"Evidence of {escape(chosen[0].name)} times the share of the subsystem. A dot was detected and matched, a "
            "ring only detected. After figure 9.",
            "".join(eval_figures.traces(run, chosen[0]) for run in runs),
        ),
    ]
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Unveil: evaluation</title>'
        '<meta name="viewport" content="width=device-width">'
        f"<style>{STYLE}</style><h1>Evaluation of the detectors</h1>{''.join(parts)}</html>\n"
    )


def _figure(title: str, caption: str, drawn: str) -> str:
    return f"<h2>{escape(title)}</h2><p>{caption}</p>{drawn}"


def _table(table: Table) -> str:
    title, columns, rows = table
    right = [' class="n"' if column.endswith(">") else "" for column in columns]
    head = "".join(f"<th{r}>{escape(c.rstrip('>'))}</th>" for c, r in zip(columns, right, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{r}>{escape(plain(v))}</td>" for v, r in zip(row, right, strict=True)) + "</tr>"
        for row in rows
    )
    return f'<h2>{escape(title)}</h2><div class="wide"><table><tr>{head}</tr>{body}</table></div>'
