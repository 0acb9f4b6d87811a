"""From values to pixels, and where an axis has its marks: at round numbers, with their units."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["duration", "readable", "round_marks", "scaled"]

STEPS = (1, 2, 5, 10)


def scaled(values: Any, low: float, high: float, begin: float, end: float) -> Any:
    """From values to pixels."""
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
