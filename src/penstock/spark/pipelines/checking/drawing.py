"""Plots as SVG, written by hand: a report is one file that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from penstock.spark.pipelines.checking.explaining import Row
from penstock.spark.pipelines.checking.figures import Scene

__all__ = ["bars", "lines", "timeline"]

WIDTH, HEIGHT = 860, 240
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 24, 34
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b")
LANE = 22
LEGEND = 260


def scaled(values: Any, low: float, high: float, begin: float, end: float) -> Any:
    """From values to pixels."""
    return begin + (np.asarray(values, float) - low) / max(high - low, 1e-12) * (end - begin)


def lines(title: str, unit: str, series: dict[str, Any], seconds: float) -> str:
    """Each series over the time of the run."""
    highest = max((float(np.max(each)) for each in series.values() if len(each)), default=0.0)
    lowest = min(0.0, *(float(np.min(each)) for each in series.values() if len(each))) if series else 0.0
    highest = max(highest, lowest + 1e-9)
    parts = [frame(title), axis(lowest, highest, unit, seconds)]
    for number, (name, values) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        x = scaled(np.arange(len(values)), 0, max(1, len(values) - 1), LEFT, WIDTH - RIGHT)
        y = scaled(values, lowest, highest, HEIGHT - BOTTOM, TOP)
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.4"/>')
        parts.append(text(LEGEND + 110 * number, 14, name, colour))
    return svg(HEIGHT, parts)


def frame(title: str) -> str:
    return text(LEFT, 14, title, "#222", "bold")


def axis(lowest: float, highest: float, unit: str, seconds: float) -> str:
    bottom = HEIGHT - BOTTOM
    marks = [
        f'<path d="M{LEFT} {TOP}V{bottom}H{WIDTH - RIGHT}" fill="none" stroke="#999"/>',
        text(LEFT - 6, TOP + 8, readable(highest), "#444", anchor="end"),
        text(LEFT - 6, bottom, readable(lowest), "#444", anchor="end"),
        text(LEFT - 6, (TOP + bottom) / 2, unit, "#777", anchor="end"),
    ]
    for part in range(5):
        x = LEFT + (WIDTH - LEFT - RIGHT) * part / 4
        anchor = "end" if part == 4 else "middle"
        marks.append(text(x, HEIGHT - 14, duration(seconds * 1e9 * part / 4), "#444", anchor=anchor))
    return "".join(marks)


def bars(title: str, latencies: dict[str, list[int]], names: Sequence[str]) -> str:
    """Latency at each quantile, on a scale of powers of ten."""
    top = max((max(each) for each in latencies.values()), default=1)
    decades = max(1.0, float(np.ceil(np.log10(max(10, top)))))
    parts = [frame(title), f'<path d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}" fill="none" stroke="#999"/>']
    for decade in range(int(decades) + 1):
        y = float(scaled(decade, 0, decades, HEIGHT - BOTTOM, TOP))
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#eee"/>')
        parts.append(text(LEFT - 6, y + 4, duration(10**decade), "#444", anchor="end"))
    groups = max(1, len(names))
    wide = (WIDTH - LEFT - RIGHT) / groups
    for place, name in enumerate(names):
        parts.append(text(LEFT + wide * (place + 0.5), HEIGHT - 14, name, "#444", anchor="middle"))
        for number, values in enumerate(latencies.values()):
            bar = wide * 0.8 / max(1, len(latencies))
            x = LEFT + wide * (place + 0.1) + bar * number
            y = float(scaled(np.log10(max(1, values[place])), 0, decades, HEIGHT - BOTTOM, TOP))
            label = f"<title>{duration(values[place])}</title>"
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(1.0, bar - 2):.1f}" height="{HEIGHT - BOTTOM - y:.1f}" '
                f'fill="{COLOURS[number % len(COLOURS)]}">{label}</rect>'
            )
    for number, name in enumerate(latencies):
        parts.append(text(LEGEND + 110 * number, 14, name, COLOURS[number % len(COLOURS)]))
    return svg(HEIGHT, parts)


def timeline(scene: Scene) -> str:
    """The operations around a violation: one lane each, the witnesses in red."""
    rows = list(scene.rows)
    keys = {key(row) for row in rows}
    rows += [
        dict(witness) for witness in scene.violation.witnesses if "invoke_ns" in witness and key(witness) not in keys
    ]
    rows.sort(key=lambda row: int(row["invoke_ns"]))
    witnesses = {key(witness) for witness in scene.violation.witnesses}
    begin = min(int(row["invoke_ns"]) for row in rows)
    end = max(int(row.get("return_ns") or row["invoke_ns"]) for row in rows)
    height = TOP + LANE * len(rows) + BOTTOM
    left = 300
    parts = [frame(f"{scene.violation.rule}: {scene.violation.why}")]
    for lane, row in enumerate(rows):
        y = TOP + LANE * lane + 6
        x = float(scaled(int(row["invoke_ns"]), begin, end + 1, left, WIDTH - RIGHT))
        until = row.get("return_ns")
        right = WIDTH - RIGHT if until is None else float(scaled(int(until), begin, end + 1, left, WIDTH - RIGHT))
        colour = "#d62728" if key(row) in witnesses else "#9ab"
        dash = ' stroke-dasharray="4 3" fill-opacity="0.3" stroke="#555"' if until is None else ""
        parts.append(text(left - 8, y + 10, described(row), "#222", anchor="end"))
        parts.append(f'<rect x="{x:.1f}" y="{y}" width="{max(2.0, right - x):.1f}" height="12" fill="{colour}"{dash}/>')
    parts.append(text(left, height - 10, "0", "#444"))
    parts.append(text(WIDTH - RIGHT, height - 10, duration(end - begin), "#444", anchor="end"))
    return svg(height, parts)


def key(row: Row) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in ("op", "worker", "invoke_ns", "return_ns", "value"))


def described(row: Row) -> str:
    what = f"worker {row.get('worker')}: {row.get('op')} {row.get('outcome', '')}"
    if row.get("value") is not None:
        what += f" {row['value']}"
    return what + (f" at {row['ticket']}" if row.get("ticket") is not None else "")


def text(x: float, y: float, words: str, colour: str, weight: str = "normal", anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" font-weight="{weight}" text-anchor="{anchor}">'
        f"{escape(words)}</text>"
    )


def svg(height: float, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" '
        f'height="{height:.0f}" font-family="sans-serif" font-size="11">{"".join(parts)}</svg>'
    )


def readable(number: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"


def duration(ns: float) -> str:
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.3g} ns"
