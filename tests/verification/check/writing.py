"""A history on disk, as anybody would write it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

SCHEMA = pa.schema(
    [
        ("worker", pa.int32()),
        ("op", pa.string()),
        ("outcome", pa.string()),
        ("value", pa.int64()),
        ("ticket", pa.int64()),
        ("invoke_ns", pa.int64()),
        ("return_ns", pa.int64()),
        ("reader", pa.int32()),
        ("redelivered", pa.bool_()),
        ("weak", pa.bool_()),
    ]
)


def write(folder: Path, rows: list[dict[str, Any]], kind: str, capacity: int | None, **more: Any) -> Path:
    """Rows in two files, like those of two workers."""
    folder.mkdir(parents=True)
    half = len(rows) // 2
    for number, part in enumerate((rows[:half], rows[half:])):
        pq.write_table(pa.Table.from_pylist(part, SCHEMA), folder / f"worker-{number:05}.parquet")
    manifest = {"kind": kind, "capacity": capacity, "clock": "CLOCK_MONOTONIC", "host": "a", "versions": {}}
    (folder / "manifest.json").write_text(json.dumps(manifest | more))
    return folder
