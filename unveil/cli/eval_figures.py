"""The figures of `unveil eval` as SVG, after the paper's 2 (scores), 3 (subsystems), 7 (cost), 8 (time), 9 (traces)."""

from __future__ import annotations

from html import escape
from math import log10
from typing import TYPE_CHECKING

from unveil.knowledge.comparison import held, labels_around
from unveil.records.plain_text import plain
from unveil.records.subsystem import Subsystem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from unveil.knowledge.backtest import Trace
    from unveil.knowledge.comparison import Combination, Compared, Named
    from unveil.knowledge.evaluation import DetectionScore
    from unveil.knowledge.labels import Interval

WIDTH, LANE, MARGIN = 960.0, 14.0, 250.0
BINS, FARTHEST = 60, 3.0  # of the strengths that are drawn; one is the alarm level
TALL = 34.0  # a lane that holds a curve
COLOURS = ("#1971c2", "#7048e8", "#2f9e44", "#f08c00", "#e03131", "#0c8599")  # of the subsystems


def svg(height: float, content: str) -> str:
    """Return a figure as wide as the page."""
    return f'<svg viewBox="0 0 {WIDTH:.0f} {height:.0f}" role="img">{content}</svg>'


def _label(y: float, text: str) -> str:
    return f'<text x="{MARGIN - 8:.0f}" y="{y:.1f}" text-anchor="end">{escape(plain(text))}</text>'


def f1_bars(scores: Sequence[DetectionScore]) -> str:
    """Return F1 of each combination with its interval."""
    scale = WIDTH - MARGIN - 50
    parts = []
    for number, score in enumerate(scores):
        value, y = score.counts.f1 or 0.0, number * LANE
        parts.append(_label(y + 11, f"{score.label} @ {score.allowed:g}"))
        parts.append(f'<rect x="{MARGIN}" y="{y + 3}" width="{value * scale:.1f}" height="8" fill="var(--match)"/>')
        if score.f1_low is not None and score.f1_high is not None:
            low, high = MARGIN + score.f1_low * scale, MARGIN + score.f1_high * scale
            parts.append(f'<path d="M{low:.1f} {y + 7}H{high:.1f}" stroke="var(--ink)" stroke-width="1.5"/>')
        parts.append(f'<text class="faint" x="{WIDTH - 40}" y="{y + 11}">{value:.3f}</text>')
    return svg(len(scores) * LANE + 4, "".join(parts))


def score_spreads(runs: Sequence[Compared], chosen: Sequence[Combination]) -> str:
    """Return how the strengths of healthy and of faulty windows are spread, for each combination."""
    scale = (WIDTH - MARGIN) / FARTHEST
    parts = []
    for number, each in enumerate(chosen):
        faulty, healthy = [0] * BINS, [0] * BINS
        for run in runs:
            for window, strength in zip(run.windows, held(run, each), strict=True):
                labels = labels_around(run, window)
                if labels is not None and window.judged:
                    place = min(int(max(strength, 0.0) / FARTHEST * BINS), BINS - 1)
                    (faulty if labels else healthy)[place] += 1
        foot = (number + 1) * TALL - 4
        parts.append(_label(foot - 4, each.name))
        parts.append(_steps(healthy, foot, "var(--match)"))
        parts.append(_steps(faulty, foot, "var(--alarm)"))
    level, height = MARGIN + scale, len(chosen) * TALL
    parts.append(f'<path d="M{level:.1f} 0V{height:.0f}" stroke="var(--ink)" stroke-dasharray="3 3"/>')
    return svg(height + 4, "".join(parts))


def _steps(counts: Sequence[int], foot: float, colour: str) -> str:
    """Return a histogram as an outline; the highest of its bins is as high as the lane."""
    width, unit = (WIDTH - MARGIN) / BINS, (TALL - 6) / max(*counts, 1)
    line = "".join(
        f"V{foot - count * unit:.1f}H{MARGIN + (place + 1) * width:.1f}" for place, count in enumerate(counts)
    )
    return (
        f'<path d="M{MARGIN} {foot:.1f}{line}V{foot:.1f}Z" fill="{colour}" fill-opacity=".25" '
        f'stroke="{colour}" stroke-width="1"/>'
    )


def subsystem_bars(named: Sequence[Named]) -> str:
    """Return the mean share of each subsystem in the detected windows of each fault."""
    scale = WIDTH - MARGIN - 50
    parts = []
    for number, each in enumerate(named):
        y, x = number * LANE + LANE, MARGIN
        parts.append(_label(y + 11, each.label))
        for subsystem, share, colour in zip(Subsystem, each.shares, COLOURS, strict=False):
            title = f"<title>{subsystem.value} {share:.0%}</title>"
            parts.append(
                f'<rect x="{x:.1f}" y="{y + 3}" width="{share * scale:.1f}" height="8" fill="{colour}">{title}</rect>'
            )
            x += share * scale
        parts.append(f'<text class="faint" x="{WIDTH - 40}" y="{y + 11}">{each.windows}</text>')
    for place, (subsystem, colour) in enumerate(zip(Subsystem, COLOURS, strict=True)):
        x = MARGIN + place * 105
        parts.append(f'<rect x="{x:.0f}" y="2" width="8" height="8" fill="{colour}"/>')
        parts.append(f'<text x="{x + 12:.0f}" y="10">{subsystem.value}</text>')
    return svg((len(named) + 1) * LANE + 4, "".join(parts))


def cost_bars(costs: Sequence[tuple[str, float]]) -> str:
    """Return CPU microseconds of a window, by combination, on a log scale from one to a hundred thousand."""
    scale = (WIDTH - MARGIN - 60) / 5
    parts = []
    for number, (name, cost) in enumerate(costs):
        y, length = number * LANE, min(max(log10(max(cost, 1.0)), 0.0), 5.0) * scale
        parts.append(_label(y + 11, name))
        parts.append(f'<rect x="{MARGIN}" y="{y + 3}" width="{length:.1f}" height="8" fill="var(--match)"/>')
        parts.append(f'<text class="faint" x="{MARGIN + length + 6:.1f}" y="{y + 11}">{cost:,.0f} µs</text>')
    return svg(len(costs) * LANE + 4, "".join(parts))


def lanes(trace: Trace, watched: Sequence[tuple[str, Trace]]) -> str:
    """Return a recording with what each combination called anomalous, and what the fingerprints matched."""
    scale = (WIDTH - MARGIN) / max(trace.seconds, 1.0)
    height = (len(watched) + 1) * LANE
    parts = [_shading(trace.intervals, trace.seconds, height)]
    for number, (rule, each) in enumerate(watched):
        parts.append(_label(number * LANE + 11, rule))
        parts += _marks(number, ((w.end_s, w.anomalous) for w in each.windows), scale, "var(--alarm)")
    parts.append(_label(len(watched) * LANE + 11, "fingerprints"))
    parts += _marks(len(watched), ((w.end_s, bool(w.matched)) for w in trace.windows), scale, "var(--match)")
    return _headed(trace.recording, trace.seconds, svg(height + 4, "".join(parts)))


def traces(run: Compared, combination: Combination) -> str:
    """Return evidence times share of each subsystem over time: filled where matched, a ring where nothing did."""
    scale = (WIDTH - MARGIN) / max(run.seconds, 1.0)
    height = len(Subsystem) * TALL
    strengths = held(run, combination)
    most = max((window.severity for window in run.windows), default=0.0) or 1.0
    parts = [_shading(run.intervals, run.seconds, height)]
    for lane, subsystem in enumerate(Subsystem):
        foot = (lane + 1) * TALL - 3
        parts.append(_label(foot - 6, subsystem.value))
        line = []
        for window, strength in zip(run.windows, strengths, strict=True):
            share = window.shares[lane] if window.shares else 0.0
            x, y = MARGIN + window.end_s * scale, foot - share * window.severity / most * (TALL - 8)
            line.append(f"{x:.1f} {y:.1f}")
            if strength > 1.0 and window.leading() == subsystem.value:
                fill = "var(--match)" if window.matched else "none"
                stroke = "var(--match)" if window.matched else "var(--alarm)"
                parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.2" fill="{fill}" stroke="{stroke}"/>')
        if line:
            parts.append(f'<path d="M{"L".join(line)}" fill="none" stroke="{COLOURS[lane]}" stroke-width="1"/>')
    return _headed(run.recording, run.seconds, svg(height + 4, "".join(parts)))


def _headed(recording: str, seconds: float, figure: str) -> str:
    return f"<h3>{escape(plain(recording))}, {seconds:.0f} s</h3>{figure}"


def _shading(intervals: Iterable[Interval], seconds: float, height: float) -> str:
    scale = (WIDTH - MARGIN) / max(seconds, 1.0)
    parts = []
    for interval in intervals:
        if interval.labels:
            width = max((min(interval.to_s, seconds) - interval.from_s) * scale, 0.0)
            title = f"<title>{escape(', '.join(sorted(interval.labels)))}</title>"
            parts.append(
                f'<rect x="{MARGIN + interval.from_s * scale:.1f}" y="0" width="{width:.1f}" '
                f'height="{height}" fill="var(--fault)">{title}</rect>'
            )
    return "".join(parts)


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
