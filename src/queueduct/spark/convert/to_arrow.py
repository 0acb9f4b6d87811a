"""Records to columns: each field is gathered from the records once, with no Python for any single row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from queueduct.spark.convert.schema import VALUE

__all__ = ["to_batch"]

COARSE_UNITS = {"Y", "M", "W", "D", "h", "m", "s", "ms"}  # whose range is larger than that of microseconds
NOT_A_TIME = np.iinfo(np.int64).min


def to_batch(items: Any, at: int | np.ndarray[Any, Any], schema: pa.Schema) -> pa.RecordBatch:
    """Returns items as a batch with exactly this schema. ``at`` is their first position, or all of them."""
    numbers = np.arange(at, at + len(items)) if isinstance(at, int) else np.ascontiguousarray(at)
    positions = pa.array(numbers, pa.int64())
    if isinstance(items, list):  # of bytes
        columns = [pa.array(items, pa.binary())]
    else:
        fields = [schema.field(index) for index in range(len(schema) - 1)]
        names = items.dtype.names
        try:
            if names is None:
                columns = [column(items, fields[0].type, VALUE)]
            else:
                columns = [column(items[name], field.type, name) for name, field in zip(names, fields, strict=True)]
        except BadValue as bad:
            raise ValueError(f"{bad}, at position {numbers[bad.row]}; {bad.remedy}") from None
    return pa.RecordBatch.from_arrays([*columns, positions], schema=schema)


class BadValue(Exception):
    """A value that its column cannot hold, and its row."""

    def __init__(self, problem: str, row: int, remedy: str) -> None:
        super().__init__(problem)
        self.row = row
        self.remedy = remedy


def column(values: np.ndarray[Any, Any], target: pa.DataType, path: str) -> pa.Array:
    """Returns one field of all the records, of any memory layout, as an Arrow array of the target type."""
    if values.ndim > 1:
        return list_column(values, target, path)
    if values.dtype.names is not None:
        children = [
            column(values[name], field.type, f"{path}.{name}")
            for name, field in zip(values.dtype.names, target, strict=True)
        ]
        return pa.StructArray.from_arrays(children, fields=list(target))
    if values.dtype.kind == "S":
        return bytes_column(values, target, path)
    if values.dtype.kind == "U":
        return text_column(values, path)
    if values.dtype.kind in "Mm":
        return time_column(values, target, path)
    if pa.types.is_decimal(target):
        halves = np.zeros((len(values), 2), "<u8")  # a decimal128 is an integer of 16 bytes
        halves[:, 0] = values
        return pa.Array.from_buffers(target, len(values), [None, pa.py_buffer(halves)])
    wanted = np.dtype(target.to_pandas_dtype())
    return pa.array(np.ascontiguousarray(values, dtype=wanted), target)


def list_column(values: np.ndarray[Any, Any], target: pa.DataType, path: str) -> pa.Array:
    rows, length = values.shape[:2]
    flat = values.reshape((rows * length, *values.shape[2:]))
    try:
        inside = column(flat, target.value_type, path)
    except BadValue as bad:
        raise BadValue(str(bad), bad.row // length, bad.remedy) from None
    offsets = np.arange(rows + 1, dtype=np.int64) * length
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), inside, type=target)


def bytes_column(values: np.ndarray[Any, Any], target: pa.DataType, path: str) -> pa.Array:
    """Returns texts as numpy reads them: without the NULs at the end."""
    width = values.dtype.itemsize
    if width == 0:
        return pa.array([b""] * len(values), target)
    values = np.ascontiguousarray(values)
    characters = values.view(np.uint8).reshape(len(values), width)
    lengths = np.char.str_len(values)
    array = pa.Array.from_buffers(target, len(values), [None, *packed(characters, lengths)])
    if pa.types.is_string(target) and characters.max(initial=0) >= 0x80:
        check_text(array, path)
    return array


def text_column(values: np.ndarray[Any, Any], path: str) -> pa.Array:
    width = values.dtype.itemsize // 4
    if width == 0:
        return pa.array([""] * len(values), pa.string())
    values = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("="))
    points = values.view(np.uint32).reshape(len(values), width)
    lengths = np.char.str_len(values)
    if points.max(initial=0) < 0x80:
        return pa.Array.from_buffers(pa.string(), len(values), [None, *packed(points.astype(np.uint8), lengths)])
    is_used = np.arange(width) < lengths[:, None]
    is_wrong = (points > 0x10FFFF) | ((points >= 0xD800) & (points < 0xE000))
    if is_wrong.any():
        row = int(np.flatnonzero(is_wrong.any(axis=1))[0])
        raise BadValue(f"field {path!r} is not Unicode", row, "a producer must have written other bytes there")
    encoded = points[is_used].astype("<u4").tobytes().decode("utf-32-le").encode()
    sizes = np.where(is_used, 1 + (points >= 0x80) + (points >= 0x800) + (points >= 0x10000), 0).sum(axis=1)
    return pa.Array.from_buffers(pa.string(), len(values), [None, offsets_of(sizes), pa.py_buffer(encoded)])


def packed(characters: np.ndarray[Any, Any], lengths: np.ndarray[Any, Any]) -> tuple[pa.Buffer, pa.Buffer]:
    """Returns rows of fixed width as Arrow needs them: where each begins, and all of them end to end."""
    width = characters.shape[1]
    if len(lengths) and lengths.min() == width:
        return offsets_of(lengths), pa.py_buffer(characters)
    return offsets_of(lengths), pa.py_buffer(characters[np.arange(width) < lengths[:, None]])


def offsets_of(lengths: np.ndarray[Any, Any]) -> pa.Buffer:
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.py_buffer(offsets)


def check_text(array: pa.Array, path: str) -> None:
    """Raises unless all values are UTF-8. Searches for the bad row only if there is one."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        for row, value in enumerate(array.cast(pa.binary())):
            try:
                value.as_py().decode()
            except UnicodeDecodeError:
                problem = f"field {path!r} is not UTF-8: {value.as_py()!r}"
                raise BadValue(problem, row, "read such fields as they are with the option strings=binary") from None
        raise


def time_column(values: np.ndarray[Any, Any], target: pa.DataType, path: str) -> pa.Array:
    """Returns microseconds, Spark's unit: finer units are rounded down, NaT is null."""
    if np.datetime_data(values.dtype)[0] in COARSE_UNITS:
        check_range(values, path)
    micros = np.ascontiguousarray(values.astype(f"{values.dtype.kind}8[us]")).view(np.int64)
    is_missing = micros == NOT_A_TIME
    mask = is_missing if is_missing.any() else None
    return pa.array(micros, pa.int64(), mask=mask).view(target)


def check_range(values: np.ndarray[Any, Any], path: str) -> None:
    """Raises if a time overflows: numpy wraps around silently."""
    kind = values.dtype.kind
    limit = np.array([2**63 - 1], f"{kind}8[us]").astype(values.dtype)[0]
    is_far = ~np.isnat(values) & (np.abs(values.view(np.int64)) > limit.view(np.int64))
    if is_far.any():
        row = int(np.flatnonzero(is_far)[0])
        raise BadValue(f"field {path!r} is beyond what microseconds reach: {values[row]}", row, "use a nearer time")
