"""Rows of a queue in files and pipes: JSON lines, CSV, Parquet, Arrow, raw bytes, lines of text, and tables to look at.

Every format but the table gives back exactly the values that it was given, for the same item type.

======  =============================  ========================================================
name    file endings                   what a row is
======  =============================  ========================================================
jsonl   .jsonl .ndjson                 a line of JSON
csv     .csv                           a line below a header of the fields
parquet .parquet                       a row of columns; by pyarrow
arrow   .arrow .arrows .feather .ipc   a row of columns; by pyarrow
raw     .raw .bin                      a record as it is in memory; of bytes, the item itself
lines   .txt .lines .log               a line of text; of bytes only
table                                  a line of aligned columns, to look at; it is never read
======  =============================  ========================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from queueduct.formats.rows import BadRow, Batch, RowWriter

__all__ = ["ENDINGS", "FORMATS", "BadRow", "Batch", "RowWriter", "batches", "format_of_file", "writer"]

FORMATS = ("jsonl", "csv", "parquet", "arrow", "raw", "lines", "table")
ENDINGS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".raw": "raw",
    ".bin": "raw",
    ".txt": "lines",
    ".lines": "lines",
    ".log": "lines",
}


def format_of_file(path: str | Path) -> str | None:
    """Returns the format that the ending of a file's name says, or None."""
    return ENDINGS.get(Path(path).suffix.lower())


def needs_pyarrow() -> None:
    """Raises ImportError, with what to do, where there is no pyarrow."""
    try:
        import pyarrow  # noqa: F401  # it is looked for, and used elsewhere
    except ImportError as error:
        raise ImportError(
            "Parquet and Arrow need pyarrow, which is not installed: pip install 'queueduct[arrow]'; or use jsonl or "
            "csv",
            name="pyarrow",
        ) from error


def writer(
    name: str, stream: BinaryIO, item: Any, *, strings: str = "string", width: int | None = None, is_file: bool = False
) -> RowWriter:
    """Returns what writes items of this type in the format of this name. Raises TypeError if the format has no such.

    ``item`` is what ``queue.item`` says. ``strings`` is for Parquet and Arrow: ``"binary"`` takes fields of bytes that
    are no UTF-8. ``width`` limits a table. ``is_file`` chooses Arrow's file format, else it is its stream.
    """
    if name == "jsonl":
        from queueduct.formats.json_lines import JsonLinesWriter

        return JsonLinesWriter(stream, item)
    if name == "csv":
        from queueduct.formats.comma_separated import CsvWriter

        return CsvWriter(stream, item)
    if name in ("parquet", "arrow"):
        needs_pyarrow()
        from queueduct.formats.columnar import ArrowWriter, ParquetWriter

        if name == "parquet":
            return ParquetWriter(stream, item, strings)
        return ArrowWriter(stream, item, strings, is_file=is_file)
    if name == "table":
        from queueduct.formats.table import TableWriter

        return TableWriter(stream, item, width)
    from queueduct.formats.plain_bytes import LinesWriter, RawWriter

    return RawWriter(stream, item) if name == "raw" else LinesWriter(stream, item)


def batches(name: str, stream: BinaryIO, item: Any, rows: int) -> Iterator[Batch]:
    """Yields the rows of a stream as items for a queue of this item type, at most ``rows`` at a time.

    A stream that is no file is not read ahead: what has come by now is a batch. A row that is none raises BadRow, after
    all the rows before it have been yielded.
    """
    if name == "jsonl":
        from queueduct.formats.json_lines import read_json_lines

        return read_json_lines(stream, item, rows)
    if name == "csv":
        from queueduct.formats.comma_separated import read_csv

        return read_csv(stream, item, rows)
    if name in ("parquet", "arrow"):
        needs_pyarrow()
        from queueduct.formats.columnar import read_arrow, read_parquet

        return read_parquet(stream, item, rows) if name == "parquet" else read_arrow(stream, item, rows)
    if name == "table":
        raise ValueError("a table is to look at, and is not read: write and read jsonl, csv, parquet or arrow")
    from queueduct.formats.plain_bytes import read_lines, read_raw

    return read_raw(stream, item, rows) if name == "raw" else read_lines(stream, item, rows)
