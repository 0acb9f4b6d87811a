"""Durations as a person writes them, and the field of a record that has the time. Needs no pyspark."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

__all__ = ["duration", "event_time"]

UNITS = {"us": "microseconds", "ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
WORDS = {word.removesuffix("s") for word in UNITS.values()} | {"week"}


def duration(text: str) -> str:
    """Returns Spark's words for a duration: "1s" is "1 seconds". Those that are Spark's stay."""
    found = re.fullmatch(r"\s*(\d+)\s*([a-z]+)\s*", text)
    if found and found[2] in UNITS:
        return f"{found[1]} {UNITS[found[2]]}"
    parts = re.findall(r"(\d+)\s+([a-z]+)", text)
    if (
        parts
        and re.fullmatch(r"(\s*\d+\s+[a-z]+)+\s*", text)
        and all(unit.removesuffix("s") in WORDS for _, unit in parts)
    ):
        return text
    raise ValueError(f"a duration is a number and a unit: {text!r}; the units are {', '.join(UNITS)}")


def event_time(item: np.dtype[Any], chosen: str | None) -> str:
    """Returns the field of the event time."""
    times = [name for name in item.names or () if item[name].kind == "M" and item[name].subdtype is None]
    if chosen is None and len(times) == 1:
        return times[0]
    if chosen not in times:
        raise ValueError(
            f"the event time must be a field of type M8: time={chosen}; there is {', '.join(times) or 'none'}"
        )
    return str(chosen)
