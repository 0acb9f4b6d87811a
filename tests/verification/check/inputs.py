"""Histories as others write them, strange but right, and broken ones: each is taken alike in memory and on Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tests.verification.check.histories import history_of
from tests.verification.check.writing import SCHEMA

Writer = Callable[[Path], object]
MANIFEST = {"kind": "bounded", "capacity": 2}


def table(rows: list[dict[str, Any]] | None = None) -> pa.Table:
    return pa.Table.from_pylist(history_of(20) if rows is None else rows, SCHEMA)


def write_tables(folder: Path, tables: dict[str, pa.Table], manifest: dict[str, Any], **options: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, each in tables.items():
        (folder / name).parent.mkdir(exist_ok=True)
        pq.write_table(each, folder / name, **options)
    (folder / "manifest.json").write_text(json.dumps(manifest))


def written(*tables: pa.Table, names: tuple[str, ...] = ("a.parquet", "b.parquet"), **manifest: Any) -> Writer:
    """In files of those names; without tables the history itself, a part in each."""
    parts = tables or tuple(halves())
    return lambda folder: write_tables(folder, dict(zip(names, parts, strict=False)), MANIFEST | manifest)


def halves() -> list[pa.Table]:
    whole = table()
    return [whole.slice(0, 21), whole.slice(21)]


def changed(column: str, to: Any, rows: list[dict[str, Any]] | None = None) -> pa.Table:
    """With another type, or with other values."""
    whole = table(rows)
    array = whole.column(column).cast(to) if isinstance(to, pa.DataType) else to
    return whole.set_column(whole.schema.get_field_index(column), column, array)


def moved(column: str, by: int, kind: pa.DataType | None = None) -> pa.Table:
    values = [value if value is None else value + by for value in table().column(column).to_pylist()]
    return changed(column, pa.array(values, kind))


def with_row(number: int, **changes: Any) -> pa.Table:
    rows = history_of(20)
    rows[number].update(changes)
    return table(rows)


def with_more(name: str, array: Any) -> pa.Table:
    return table().append_column(name, array)


def of_pandas(folder: Path) -> None:
    """As naively as can be: whole numbers with nulls become floats."""
    write_tables(folder, {}, MANIFEST)
    pd.DataFrame(history_of(20)).to_parquet(folder / "a.parquet")


def with_an_empty_file(folder: Path) -> None:
    write_tables(folder, {"a.parquet": table()}, MANIFEST)
    pd.DataFrame(columns=SCHEMA.names).to_parquet(folder / "b.parquet")


def with_neighbours(folder: Path) -> None:
    """In a directory whose name is a pattern for others, beside one that it matches."""
    written(table(), names=("a.parquet",))(folder.parent / f"{folder.name}-run1")
    pattern = folder.parent / f"{folder.name}-run*"
    written(table(), names=("[a]{b}?.parquet",))(pattern)
    folder.symlink_to(pattern)


def damaged(folder: Path) -> None:
    """Inside: the end of the file is whole, and says that all is there."""
    rows = history_of(3000)
    write_tables(folder, {"a.parquet": table(rows)}, MANIFEST)
    path = folder / "a.parquet"
    data = bytearray(path.read_bytes())
    data[100 : len(data) // 2] = bytes(len(data) // 2 - 100)
    path.write_bytes(data)


def with_a_flipped_bit(folder: Path) -> None:
    """In a value: only the page's checksum tells."""
    options = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    write_tables(folder, {"a.parquet": table()}, MANIFEST, **options)
    path = folder / "a.parquet"
    data = bytearray(path.read_bytes())
    data[data.index((107).to_bytes(8, "little"))] ^= 64
    path.write_bytes(data)


def crossed() -> pa.Table:
    """Two runs of two producers, who came in another order the second time."""
    rows = history_of(40)
    for row in rows[41:]:
        if row["value"] is not None:
            row["value"] = 100 + (row["value"] + 1) % 20
    return table(rows)


def killed_and_put_again() -> pa.Table:
    rows = history_of(20)
    killed = dict(rows[1], worker=99, outcome="pending", ticket=None, return_ns=None)
    return table([*rows, killed])


FLOATS = np.array([1.0] * 42)
MANY = 140_000_000_000_000  # as threads are numbered

ACCEPTED: dict[str, Writer] = {
    "hidden names": written(names=("_a.parquet", ".b.parquet")),
    "other endings": written(names=("a.parq", "B.PARQUET")),
    "pq": written(names=("a.pq", "b.parquet")),
    "patterns in the path": with_neighbours,
    "a folder below": written(names=("x=1/a.parquet", "y/b.parquet")),
    "brotli": lambda folder: write_tables(folder, {"a.parquet": table()}, MANIFEST, compression="brotli"),
    "lz4": lambda folder: write_tables(folder, {"a.parquet": table()}, MANIFEST, compression="lz4"),
    "another column of nanoseconds": written(with_more("when", pa.array([1] * 42, pa.timestamp("ns")))),
    "another column of times": written(with_more("when", pa.array([1] * 42, pa.time64("ns")))),
    "another column of halves": written(with_more("half", pa.array(FLOATS.astype(np.float16)))),
    "another column of structs": written(with_more("more", pa.array([{"worker": 1}] * 42))),
    "Worker beside worker": written(with_more("Worker", pa.array([1] * 42))),
    "workers of 64 bits": written(moved("worker", MANY)),
    "small types": written(changed("ticket", pa.uint8()), names=("a.parquet",)),
    "types that differ": written(changed("ticket", pa.uint16()).slice(0, 21), changed("worker", pa.int8()).slice(21)),
    "string views": written(changed("op", pa.string_view())),
    "dictionaries": written(changed("op", table().column("op").dictionary_encode())),
    "unsigned values": written(changed("value", pa.uint64())),
    "floats that are whole": written(changed("value", pa.float64())),
    "pandas": of_pandas,
    "a file without rows": with_an_empty_file,
    "no state": written(state=None, status=None),
    "a state": written(state="Completed", status="SUCCESS"),
    "rows of something else": written(rows=3),
    "files": written(files=["./a.parquet", "b.parquet", "manifest.json"]),
    "a capacity that is not known": written(capacity=None),
}

REFUSED: dict[str, tuple[Writer, str]] = {
    "damaged": (damaged, "must be whole: .*a.parquet"),
    "a checksum that does not fit": (with_a_flipped_bit, "must be whole: .*a.parquet.*(crc|CRC|checksum)"),
    "unsigned values beyond": (
        written(moved("value", 1 << 63, pa.uint64())),
        "the column value must be int64: .*a.parquet it is uint64",
    ),
    "floats of times": (
        written(changed("invoke_ns", pa.array(FLOATS + 2.0**60))),
        "the column invoke_ns must be int64: .*a.parquet it is double, and .* may have lost digits",
    ),
    "floats that are not whole": (written(changed("ticket", pa.array(FLOATS / 2))), "the column ticket must be int64"),
    "a column twice": (written(with_more("worker", pa.array([1] * 42))), "each column once: .* has 2 named worker"),
    "two runs by their names": (
        written(table().replace_schema_metadata({"run": "x"}), table([]).replace_schema_metadata({"run": "y"})),
        "of one run: .*b.parquet is of y, .*a.parquet of x",
    ),
    "two runs, crossed": (written(crossed()), "values must be unique: 10[0-9] was put twice by workers"),
    "a killed put and another": (written(killed_and_put_again()), "values must be unique: 100 was put twice"),
    "a capacity beyond": (written(capacity=1 << 63), "capacity in manifest.json must be below 2.62"),
    "a capacity far beyond": (written(capacity=1 << 70), "capacity in manifest.json must be below 2.62"),
    "a time beyond": (written(with_row(41, return_ns=(1 << 63) - 1)), "times must be nearer to 0"),
    "a time before": (written(with_row(0, invoke_ns=-(1 << 63))), "times must be nearer to 0"),
    "a state": (written(state="aborted"), "must have finished: .*'aborted'"),
}
