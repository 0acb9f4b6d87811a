"""What the tests of this room record, and what an archive must have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import queueduct

TICK = np.dtype([("sym", "S8"), ("px", "f8"), ("ts", "M8[us]"), ("n", "i8")])
OPENING = np.datetime64("2026-01-05T09:30", "us")

# Small ones, so that producers wait for the recorder.
MAKERS = {
    "events": lambda name="q": queueduct.EventQueue.create(name, item=TICK, max_bytes=1 << 16),
    "bounded": lambda name="q": queueduct.BoundedQueue.create(name, 256, item=TICK),
    "growing": lambda name="q": queueduct.GrowingQueue.create(name, item=TICK, first_bytes=1024, steps=4),
    "slots": lambda name="q": queueduct.SlotQueue.create(name, 64, item=TICK),
    "overwriting": lambda name="q": queueduct.OverwritingQueue.create(name, 256, item=TICK),
}


def ticks(count: int, first: int = 0) -> np.ndarray:
    """Ticks that are numbered, a millisecond apart."""
    made = np.zeros(count, TICK)
    made["n"] = np.arange(first, first + count)
    made["px"] = made["n"] / 4
    made["sym"] = np.resize([b"ACME", b"IBM", b"LONGNAME"], count)
    made["ts"] = OPENING + 1000 * made["n"]
    return made


def table_of(folder: Path) -> pa.Table:
    """The archive, by position."""
    files = sorted(folder.glob("*.parquet"))
    assert files, f"{folder} has no files"
    tables = [pq.ParquetFile(path).read(use_threads=False) for path in files]
    return pa.concat_tables(tables).sort_by("position")


def names_of(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())
