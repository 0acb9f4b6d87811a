"""Numbered ticks, and the checks that each number is there exactly once, or at most once and the others counted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from queueduct.stats import OverwritingStats

TICK = np.dtype([("sym", "S8"), ("px", "f8"), ("ts", "M8[us]"), ("number", "i8")])


def numbered(start: int, stop: int) -> np.ndarray:
    """Ticks with these numbers, and everything else computed from them."""
    ticks = np.zeros(stop - start, TICK)
    ticks["number"] = np.arange(start, stop)
    ticks["sym"] = np.array([b"ACME", b"BOLT", b"CORE"])[ticks["number"] % 3]
    ticks["px"] = ticks["number"] / 4
    ticks["ts"] = np.datetime64("2026-01-01", "us") + ticks["number"] * 1000
    return ticks


def check_each_once(found: np.ndarray, stop: int, start: int = 0) -> None:
    """Each number from start up to and without stop, once."""
    values, counts = np.unique(np.asarray(found), return_counts=True)
    doubled = values[counts > 1]
    missing = np.setdiff1d(np.arange(start, stop), values)
    strange = np.setdiff1d(values, np.arange(start, stop))
    assert (len(missing), len(doubled), len(strange)) == (0, 0, 0), (
        f"of {stop - start}: missing {missing[:5]} ({len(missing)}), doubled {doubled[:5]} ({len(doubled)}), "
        f"strange {strange[:5]} ({len(strange)})"
    )


def check_none_twice_and_losses_counted(found: np.ndarray, stats: OverwritingStats, total: int) -> None:
    """What a killed producer had begun it leaves out afterwards, so fewer than all may have been put, none twice."""
    assert len(np.unique(found)) == len(found), "none twice"
    lost = stats.overwritten + stats.torn + stats.lost_with_consumer
    assert (stats.size, stats.discarded) == (0, 0)
    assert len(found) + lost == stats.puts <= total
    assert len(found) > 0


def parquet_numbers(folder: Path, column: str = "number") -> np.ndarray:
    """What a Parquet sink holds, by its own log of committed files."""
    names = set()
    for log in sorted((folder / "_spark_metadata").iterdir(), key=lambda path: path.name):
        if log.name.startswith("."):
            continue
        names |= {json.loads(line)["path"] for line in log.read_text().splitlines()[1:]}
    files = [name.removeprefix("file://") for name in sorted(names)]
    if not files:
        return np.zeros(0, "i8")
    import pyarrow.dataset  # here: tests of C++ use this module where there is no pyarrow

    return pyarrow.dataset.dataset(files, format="parquet").to_table(columns=[column]).column(column).to_numpy()


def queue_numbers(queue, column: str = "number") -> np.ndarray:
    """What an event queue holds."""
    return queue.read(queue.earliest, queue.end)[column]
