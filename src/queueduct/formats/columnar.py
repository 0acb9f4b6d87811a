"""Parquet and Arrow, by pyarrow. What column a field becomes, docs/arrow.md says; some units of time become finer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import pyarrow as pa

from queueduct.arrow import records_from, schema_of, table_from
from queueduct.formats.rows import BadRow, Batch, is_pipe

__all__ = ["ArrowWriter", "ParquetWriter", "read_arrow", "read_parquet"]

GROUP_ROWS = 1 << 17
GROUP_BYTES = 64 << 20
FILE_MAGIC = b"ARROW1"


class ColumnarWriter:
    """Turns items into tables. ``sink`` is set by the heir: it has write_table() and close()."""

    sink: Any

    def __init__(self, item: Any, strings: str) -> None:
        self.schema = schema_of(item, strings=strings)
        self.strings = strings

    def table(self, items: Any) -> pa.Table:
        try:
            found = table_from(items, strings=self.strings)
        except ValueError as error:
            if "strings=binary" in str(error):
                raise ValueError(f"{error} (--strings binary)") from None
            raise
        return found.cast(self.schema) if found.schema != self.schema else found

    def close(self) -> None:
        self.sink.close()


class ParquetWriter(ColumnarWriter):
    """Collects items into row groups. All of it is there only after the close."""

    def __init__(self, stream: BinaryIO, item: Any, strings: str) -> None:
        from pyarrow import parquet

        super().__init__(item, strings)
        self.stream = stream
        self.sink = parquet.ParquetWriter(stream, self.schema, version="2.6", write_page_checksum=True)
        self.waiting: list[pa.Table] = []
        self.rows = self.bytes = 0

    def write(self, items: Any) -> None:
        table = self.table(items)
        self.waiting.append(table)
        self.rows += table.num_rows
        self.bytes += table.nbytes
        if self.rows >= GROUP_ROWS or self.bytes >= GROUP_BYTES:
            self.write_group()

    def write_group(self) -> None:
        if self.waiting:
            self.sink.write_table(pa.concat_tables(self.waiting))
        self.waiting, self.rows, self.bytes = [], 0, 0

    def flush(self) -> None:
        """What is collected stays until its row group is full: a file of small groups would be slow to read."""

    def close(self) -> None:
        self.write_group()
        super().close()
        self.stream.flush()


class ArrowWriter(ColumnarWriter):
    """Writes each call's items as a batch: into a stream, or into a file."""

    def __init__(self, stream: BinaryIO, item: Any, strings: str, *, is_file: bool) -> None:
        super().__init__(item, strings)
        self.stream = stream
        self.sink = (pa.ipc.new_file if is_file else pa.ipc.new_stream)(stream, self.schema)

    def write(self, items: Any) -> None:
        self.sink.write_table(self.table(items))

    def flush(self) -> None:
        self.stream.flush()

    def close(self) -> None:
        super().close()
        self.stream.flush()


def read_parquet(stream: BinaryIO, item: Any, rows: int) -> Iterator[Batch]:
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(seekable(stream), page_checksum_verification=True) as file:
            yield from converted(file.iter_batches(rows), item)
    except (pa.ArrowInvalid, OSError) as error:
        raise BadRow("the file", f"it is no Parquet, or damaged: {first_line(error)}") from error


def read_arrow(stream: BinaryIO, item: Any, rows: int) -> Iterator[Batch]:
    try:
        if is_pipe(stream):
            head = stream.read(len(FILE_MAGIC))
            source = Joined(head, stream)
            opened = file_batches(pa.BufferReader(source.read())) if head == FILE_MAGIC else pa.ipc.open_stream(source)
        else:
            head = stream.read(len(FILE_MAGIC))
            stream.seek(0)
            opened = file_batches(stream) if head == FILE_MAGIC else pa.ipc.open_stream(stream)
        yield from converted(parts(opened, rows), item)
    except (pa.ArrowInvalid, OSError) as error:
        raise BadRow("the file", f"it is no Arrow, or damaged: {first_line(error)}") from error


def file_batches(source: Any) -> Iterator[pa.RecordBatch]:
    file = pa.ipc.open_file(source)
    for number in range(file.num_record_batches):
        yield file.get_batch(number)


def parts(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for at in range(0, batch.num_rows, rows):
            yield batch.slice(at, rows)


class Joined:
    """A pipe of which the first bytes have been read."""

    closed = False

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self.head = head
        self.stream = stream

    def read(self, size: int = -1) -> bytes:
        head, self.head = (self.head, b"") if size < 0 else (self.head[:size], self.head[size:])
        return head + self.stream.read(-1 if size < 0 else size - len(head))

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True


def seekable(stream: BinaryIO) -> Any:
    """Parquet is read from its end: a pipe is read into memory first."""
    return pa.BufferReader(stream.read()) if is_pipe(stream) else stream


def converted(batches: Iterable[pa.RecordBatch], item: Any) -> Iterator[Batch]:
    row = 1
    for batch in batches:
        if batch.num_rows == 0:
            continue
        try:
            items = records_from(batch, item)
        except (ValueError, TypeError) as error:
            good, problem = first_bad(batch, item, error)
            if good:
                yield Batch(records_from(batch.slice(0, good), item), range(row, row + good), "row")
            raise BadRow(f"row {row + good}", str(problem)) from None
        yield Batch(items, range(row, row + batch.num_rows), "row")
        row += batch.num_rows


def first_bad(batch: pa.RecordBatch, item: Any, error: Exception) -> tuple[int, Exception]:
    """Returns how many rows are good before the first that is not, and what is wrong with that one."""
    low, high = 0, batch.num_rows  # the first `low` rows are good, the first `high` are not
    while high - low > 1:
        middle = (low + high) // 2
        try:
            records_from(batch.slice(low, middle - low), item)
        except (ValueError, TypeError) as found:
            high, error = middle, found
        else:
            low = middle
    try:
        records_from(batch.slice(low, 1), item)
    except (ValueError, TypeError) as found:
        error = found
    return low, error


def first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
