"""Plots as SVG, written by hand: a report is one file that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from queueduct.verification.check.report.figures import Scene
from queueduct.verification.check.witnesses import Row

__all__ = ["bars", "duration", "lines", "round_marks", "timeline"]

WIDTH, HEIGHT = 860, 250
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 34, 34
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b")
DARK, GREY, PALE = "#222", "#555", "#e6e6e6"
LANE = 22
LABELS = 300  # of a timeline: as wide as what an operation is called
LEGEND = 110  # for each name in it
SMALL = 10
MARKS = 6
STEPS = (1, 2, 5, 10)


def lines(title: str, series: dict[str, Any], seconds: float) -> str:
    """Each series over the time of the run."""
    highest = max((float(np.max(each)) for each in series.values() if len(each)), default=0.0)
    lowest = min(0.0, *(float(np.min(each)) for each in series.values() if len(each))) if series else 0.0
    highest = max(highest, lowest + 1)
    parts = [heading(title), legend(series), time_axis(HEIGHT, seconds * 1e9, LEFT)]
    for mark in round_marks(lowest, highest, MARKS):
        parts.append(level(float(scaled(mark, lowest, highest, HEIGHT - BOTTOM, TOP)), readable(mark)))
    for number, values in enumerate(series.values()):
        x = scaled(np.arange(len(values)), 0, max(1, len(values) - 1), LEFT, WIDTH - RIGHT)
        y = scaled(values, lowest, highest, HEIGHT - BOTTOM, TOP)
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour_of(number)}" stroke-width="1.4"/>')
    return svg(title, HEIGHT, parts)


def bars(title: str, latencies: dict[str, list[int]], names: Sequence[str]) -> str:
    """Latency at each quantile, on a scale of powers of ten."""
    top = max((max(each) for each in latencies.values()), default=1)
    decades = max(1.0, float(np.ceil(np.log10(max(10, top)))))
    bottom = HEIGHT - BOTTOM
    parts = [heading(title), legend(latencies)]
    for decade in range(int(decades) + 1):
        parts.append(level(float(scaled(decade, 0, decades, bottom, TOP)), duration(10**decade)))
    wide = (WIDTH - LEFT - RIGHT) / max(1, len(names))
    bar = wide * 0.86 / max(1, len(latencies))
    for index, name in enumerate(names):
        parts.append(text(LEFT + wide * (index + 0.5), HEIGHT - 14, name, GREY, anchor="middle"))
        for number, values in enumerate(latencies.values()):
            x = LEFT + wide * (index + 0.07) + bar * number
            y = float(scaled(np.log10(max(1, values[index])), 0, decades, bottom, TOP))
            parts.append(box(x, y, max(1.0, bar - 2), bottom - y, colour_of(number)))
            parts.append(text(x + bar / 2 - 1, y - 3, duration(values[index]), GREY, anchor="middle", size=SMALL))
    return svg(title, HEIGHT, parts)


def timeline(scene: Scene) -> str:
    """The operations around a violation: one lane each, the witnesses in red. What is longer is cut at the edges."""
    title = f"{scene.violation.rule}: {scene.violation.why}"
    rows = list(scene.rows)
    keys = {key(row) for row in rows}
    timed = [witness for witness in scene.violation.witnesses if witness.get("invoke_ns") is not None]
    rows += [witness for witness in timed if key(witness) not in keys]
    rows.sort(key=lambda row: int(row["invoke_ns"]))
    witnesses = {key(witness) for witness in scene.violation.witnesses}
    height = TOP + LANE * len(rows) + BOTTOM
    parts = [heading(title), time_axis(height, scene.end_ns - scene.begin_ns, LABELS)]
    for lane, row in enumerate(rows):
        y = TOP + LANE * lane + 6
        is_witness = key(row) in witnesses
        weight = "bold" if is_witness else "normal"
        parts.append(text(LABELS - 12, y + 10, described(row), DARK, weight, anchor="end"))
        parts.append(stretch(scene, row, y, "#d62728" if is_witness else "#9ab"))
    return svg(title, height, parts)


def stretch(scene: Scene, row: Row, y: float, colour: str) -> str:
    """Returns the bar of an operation, with an arrow if it began before or ended after the plot."""
    begin, until = int(row["invoke_ns"]), row.get("return_ns")
    end = scene.end_ns + 1 if until is None else int(until)
    shown = np.clip([begin, end], scene.begin_ns, scene.end_ns)
    x, right = map(float, scaled(shown, scene.begin_ns, scene.end_ns, LABELS, WIDTH - RIGHT))
    x = min(x, WIDTH - RIGHT - 2)
    dash = ' stroke-dasharray="4 3" fill-opacity="0.3" stroke="#555"' if until is None else ""
    parts = [box(x, y, max(2.0, right - x), 12, colour, dash)]
    if begin < scene.begin_ns:
        parts.append(f'<path d="M{x:.1f} {y}v12l-6 -6z" fill="{colour}"/>')
    if end > scene.end_ns:
        parts.append(f'<path d="M{right:.1f} {y}v12l6 -6z" fill="{colour}"/>')
    return "".join(parts)


def key(row: Row) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in ("op", "worker", "invoke_ns", "return_ns", "value"))


def described(row: Row) -> str:
    what = f"worker {row.get('worker')}: {row.get('op')} {row.get('outcome', '')}"
    if row.get("value") is not None:
        what += f" {row['value']}"
    return what + (f" at {row['ticket']}" if row.get("ticket") is not None else "")


def colour_of(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def heading(title: str) -> str:
    return text(0, 14, title, DARK, "bold")


def legend(names: Sequence[str] | dict[str, Any]) -> str:
    """Returns the legend, at the right above the plot. One series needs none."""
    if len(names) < 2:
        return ""
    first = WIDTH - RIGHT - LEGEND * len(names)
    return "".join(
        box(first + LEGEND * number, 5, 10, 10, colour_of(number)) + text(first + LEGEND * number + 15, 14, name, DARK)
        for number, name in enumerate(names)
    )


def level(y: float, words: str) -> str:
    rule = f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="{PALE}"/>'
    return rule + text(LEFT - 8, y + 4, words, GREY, anchor="end")


def time_axis(height: float, ns: float, left: float) -> str:
    """Returns a time as text, from the beginning of the plot."""
    bottom = height - BOTTOM
    marks = [f'<path d="M{left} {bottom:.1f}H{WIDTH - RIGHT}" stroke="#999"/>']
    for mark in round_marks(0, ns, MARKS):
        x = float(scaled(mark, 0, ns, left, WIDTH - RIGHT))
        marks.append(f'<path d="M{x:.1f} {bottom:.1f}v5" stroke="#999"/>')
        anchor = "end" if x > WIDTH - RIGHT - 20 else "middle"
        marks.append(text(x, height - 14, duration(mark), GREY, anchor=anchor))
    return "".join(marks)


def box(x: float, y: float, wide: float, high: float, colour: str, more: str = "") -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}" fill="{colour}"{more}/>'


def text(
    x: float, y: float, words: str, colour: str, weight: str = "normal", anchor: str = "start", size: int = 12
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" font-size="{size}" font-weight="{weight}" '
        f'text-anchor="{anchor}">{escape(words)}</text>'
    )


def svg(title: str, height: float, parts: Sequence[str]) -> str:
    """As wide as the page; where that is too narrow to read, it can be moved."""
    return (
        f'<div class="plot"><svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        f'aria-label="{escape(title)}" font-family="sans-serif">{"".join(parts)}</svg></div>'
    )


def scaled(values: Any, low: float, high: float, begin: float, end: float) -> Any:
    """Converts values to pixels."""
    return begin + (np.asarray(values, float) - low) / max(high - low, 1e-12) * (end - begin)


def round_marks(low: float, high: float, most: int) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten from low to high, at most so many steps."""
    span = max(high - low, 1e-9)
    power = 10.0 ** np.floor(np.log10(span / most))
    step = next(power * step for step in STEPS if span / (power * step) <= most + 1e-9)
    first, last = np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9)
    return [float(number * step) + 0.0 for number in np.arange(first, last + 1)]  # and no -0


def readable(number: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(number) >= size:
            return f"{number / (1e3 if letter == 'k' else size):.3g} {letter}"
    return f"{number:,.0f}" if number == int(number) else f"{number:.3g}"


def duration(ns: float) -> str:
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.3g} ns" if ns else "0"
