"""What `unveil eval` writes to files: its tables as Markdown, and a page with figures that needs nothing but itself."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from unveil.records.plain_text import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from unveil.cli.eval import Table
    from unveil.knowledge.backtest import Trace
    from unveil.knowledge.evaluation import DetectionScore

WIDTH, LANE, MARGIN = 960.0, 14.0, 250.0

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


def html(tables: Sequence[Table], scores: Sequence[DetectionScore], groups: Sequence[Sequence[Trace]]) -> str:
    """Return a page: the tables, F1 with its intervals, and each recording with what every combination said.

    Args:
        groups: for each score the recordings as watched with it.
    """
    parts = [f"<p>{escape(_about(groups[0]))}</p>", "<h2>F1 and its 95 % interval</h2>", _bars(scores)]
    parts += [_table(table) for table in tables]
    parts.append("<h2>Recordings</h2><p>Shaded: the time of a fault. For each combination, windows called anomalous;")
    parts.append("in the last lane, windows that a fingerprint matched.</p>")
    for number, trace in enumerate(groups[0]):
        parts.append(_lanes(trace, [(score.rule, group[number]) for score, group in zip(scores, groups, strict=True)]))
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Unveil: evaluation</title>'
        '<meta name="viewport" content="width=device-width">'
        f"<style>{STYLE}</style><h1>Evaluation of the detectors</h1>{''.join(parts)}</html>\n"
    )


def _table(table: Table) -> str:
    title, columns, rows = table
    right = [' class="n"' if column.endswith(">") else "" for column in columns]
    head = "".join(f"<th{r}>{escape(c.rstrip('>'))}</th>" for c, r in zip(columns, right, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{r}>{escape(plain(v))}</td>" for v, r in zip(row, right, strict=True)) + "</tr>"
        for row in rows
    )
    return f'<h2>{escape(title)}</h2><div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def _svg(height: float, content: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH:.0f} {height:.0f}" role="img">{content}</svg>'


def _label(number: int, text: str) -> str:
    return f'<text x="{MARGIN - 8:.0f}" y="{number * LANE + 11:.0f}" text-anchor="end">{escape(plain(text))}</text>'


def _bars(scores: Sequence[DetectionScore]) -> str:
    scale = WIDTH - MARGIN - 50
    parts = []
    for number, score in enumerate(scores):
        value, y = score.counts.f1 or 0.0, number * LANE
        parts.append(_label(number, f"{score.rule} @ {score.allowed:g}"))
        parts.append(f'<rect x="{MARGIN}" y="{y + 3}" width="{value * scale:.1f}" height="8" fill="var(--match)"/>')
        if score.f1_low is not None and score.f1_high is not None:
            low, high = MARGIN + score.f1_low * scale, MARGIN + score.f1_high * scale
            parts.append(f'<path d="M{low:.1f} {y + 7}H{high:.1f}" stroke="var(--ink)" stroke-width="1.5"/>')
        parts.append(f'<text class="faint" x="{WIDTH - 40}" y="{y + 11}">{value:.3f}</text>')
    return _svg(len(scores) * LANE + 4, "".join(parts))


def _lanes(trace: Trace, lanes: Sequence[tuple[str, Trace]]) -> str:
    scale = (WIDTH - MARGIN) / max(trace.seconds, 1.0)
    height = (len(lanes) + 1) * LANE
    parts = []
    for interval in trace.intervals:
        if interval.labels:
            width = (min(interval.to_s, trace.seconds) - interval.from_s) * scale
            title = f"<title>{escape(', '.join(sorted(interval.labels)))}</title>"
            parts.append(
                f'<rect x="{MARGIN + interval.from_s * scale:.1f}" y="0" width="{width:.1f}" '
                f'height="{height}" fill="var(--fault)">{title}</rect>'
            )
    for number, (rule, watched) in enumerate(lanes):
        parts.append(_label(number, rule))
        parts += _marks(number, ((w.end_s, w.anomalous) for w in watched.windows), scale, "var(--alarm)")
    parts.append(_label(len(lanes), "fingerprints"))
    parts += _marks(len(lanes), ((w.end_s, bool(w.matched)) for w in trace.windows), scale, "var(--match)")
    title = f"<h3>{escape(plain(trace.recording))}, {trace.seconds:.0f} s</h3>"
    return title + _svg(height + 4, "".join(parts))


def _marks(number: int, windows: Iterator[tuple[float, bool]], scale: float, colour: str) -> Iterator[str]:
    """Yield one mark for each run of windows that are so, a second wide each."""
    begun: float | None = None
    last = 0.0
    for end_s, holds in windows:
        if holds and begun is None:
            begun = end_s - 1
        if not holds and begun is not None:
            yield _mark(number, begun, last, scale, colour)
            begun = None
        last = end_s
    if begun is not None:
        yield _mark(number, begun, last, scale, colour)


def _mark(number: int, from_s: float, to_s: float, scale: float, colour: str) -> str:
    x, width = MARGIN + from_s * scale, max((to_s - from_s) * scale, 0.8)
    return f'<rect x="{x:.1f}" y="{number * LANE + 3}" width="{width:.1f}" height="8" fill="{colour}"/>'
