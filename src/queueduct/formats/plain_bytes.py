"""Raw bytes, and lines of text.

Raw records lie behind each other as in memory, as with ``ndarray.tobytes``. Raw items of bytes are written one after
the other with nothing between them; what is read is one item, the whole file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from queueduct.formats.rows import BadRow, Batch, arriving_lines, dtype_of

__all__ = ["LinesWriter", "RawWriter", "read_lines", "read_raw"]


class RawWriter:
    def __init__(self, stream: BinaryIO, item: Any) -> None:
        self.stream = stream
        self.dtype = dtype_of(item)
        if item is object:
            raise TypeError("Python objects have no raw bytes to write: item=object; use the format jsonl")

    def write(self, items: Any) -> None:
        self.stream.write(b"".join(items) if self.dtype is None else np.asarray(items).tobytes())

    def flush(self) -> None:
        self.stream.flush()

    def close(self) -> None:
        self.stream.flush()


class LinesWriter:
    def __init__(self, stream: BinaryIO, item: Any) -> None:
        self.stream = stream
        check_lines(item)

    def write(self, items: Any) -> None:
        broken = next((one for one in items if b"\n" in one), None)
        if broken is not None:
            raise ValueError(
                f"an item of the format lines must not have a newline in it: {broken[:80]!r}; use the format jsonl"
            )
        self.stream.write(b"".join([one + b"\n" for one in items]))

    def flush(self) -> None:
        self.stream.flush()

    def close(self) -> None:
        self.stream.flush()


def check_lines(item: Any) -> None:
    if item is not bytes:
        raise TypeError(f"the format lines is for items of bytes: item={item}; use jsonl or csv")


def read_raw(stream: BinaryIO, item: Any, rows: int) -> Iterator[Batch]:
    dtype = dtype_of(item)
    if item is object:
        raise TypeError("raw bytes do not become Python objects: item=object; use the format jsonl")
    if dtype is None:
        yield Batch([stream.read()], [1], "row")
        return
    row, rest = 1, b""
    read = getattr(stream, "read1", stream.read)  # what has come by now
    while data := read(rows * dtype.itemsize - len(rest)):
        data = rest + data
        count = len(data) // dtype.itemsize
        rest = data[count * dtype.itemsize :]
        if count:
            yield Batch(records_in(data, dtype, count), range(row, row + count), "row")
            row += count
    if rest:
        raise BadRow(f"row {row}", f"a record has {dtype.itemsize} bytes, and the last one of the file {len(rest)}")


def records_in(data: bytes, dtype: np.dtype[Any], count: int) -> np.ndarray[Any, Any]:
    """Returns the records in the bytes; of a sub-array the array with more dimensions."""
    if dtype.subdtype is None:
        return np.frombuffer(data, dtype, count)
    return np.frombuffer(data, dtype.base, count * dtype.itemsize // dtype.base.itemsize).reshape(count, *dtype.shape)


def read_lines(stream: BinaryIO, item: Any, rows: int) -> Iterator[Batch]:
    check_lines(item)
    number = 1
    for lines in arriving_lines(stream, rows):
        yield Batch(lines, range(number, number + len(lines)), "line")
        number += len(lines)
