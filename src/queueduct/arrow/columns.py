"""Records to columns: each field is gathered from the records once, with no Python for any single row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from queueduct.arrow import _texts

__all__ = ["BadValue", "column", "columns_of", "no_text", "too_far"]

UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as")  # from coarse to fine
UNIT_NAMES = {"D": "days of 4 bytes", "s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
NOT_A_TIME = np.iinfo(np.int64).min


class BadValue(Exception):
    """A value that its column cannot hold, and its row."""

    def __init__(self, problem: str, row: int, remedy: str) -> None:
        super().__init__(problem)
        self.row = row
        self.remedy = remedy


def columns_of(records: np.ndarray[Any, Any], fields: list[pa.Field]) -> list[pa.Array]:
    """Returns the columns of records, or the one column of items that are no records."""
    names = records.dtype.names
    if names is None:
        return [column(records, fields[0].type, fields[0].name)]
    return [column(records[name], field.type, name) for name, field in zip(names, fields, strict=True)]


def column(values: np.ndarray[Any, Any], target: pa.DataType, path: str) -> pa.Array:
    """Returns one field of all the records, of any memory layout, as an Arrow array of the target type."""
    if values.ndim > 1:
        return list_column(values, target, path)
    if values.dtype.names is not None:
        children = [
            column(values[name], field.type, f"{path}.{name}")
            for name, field in zip(values.dtype.names, target, strict=True)
        ]
        return pa.Array.from_buffers(target, len(values), [None], children=children)
    if values.dtype.kind in "SU":
        return text_column(values, target, path)
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
    if pa.types.is_fixed_size_list(target):
        return pa.Array.from_buffers(target, rows, [None], children=[inside])
    offsets = np.arange(rows + 1, dtype=np.int64) * length
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), inside, type=target)


def text_column(values: np.ndarray[Any, Any], target: pa.DataType, path: str) -> pa.Array:
    """Returns texts as numpy reads them: without the NULs at the end."""
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    offsets = np.zeros(len(values) + 1, np.int32)
    data = np.empty(len(values) * values.dtype.itemsize + _texts.SPARE, np.uint8)
    bad_row = _texts.pack(values, offsets, data, pa.types.is_string(target))
    if bad_row >= 0:
        is_bytes = values.dtype.kind == "S"
        raise no_text(path, bad_row, data[offsets[bad_row] : offsets[bad_row + 1]].tobytes() if is_bytes else None)
    return pa.Array.from_buffers(target, len(values), [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def no_text(path: str, row: int, value: bytes | None) -> BadValue:
    """Returns the error for bytes that are no UTF-8, or, without a value, for code points that are no Unicode."""
    if value is None:
        return BadValue(f"field {path!r} is not Unicode", row, "a producer must have written other bytes there")
    problem = f"field {path!r} is not UTF-8: {value!r}"
    return BadValue(problem, row, "read such fields as they are with the option strings=binary")


def time_column(values: np.ndarray[Any, Any], target: pa.DataType, path: str) -> pa.Array:
    """Returns times in the unit of the target: finer units are rounded down, NaT is null."""
    kind = values.dtype.kind
    unit = "D" if pa.types.is_date32(target) else target.unit
    own_unit, step = np.datetime_data(values.dtype)
    if step > 1 or UNITS.index(own_unit) < UNITS.index(unit):
        check_range(values, unit, path)
    numbers = np.ascontiguousarray(values.astype(f"{kind}8[{unit}]", copy=False)).view(np.int64)
    mask = numbers == NOT_A_TIME if len(numbers) and numbers.min() == NOT_A_TIME else None
    if unit == "D":
        return date_column(numbers, mask, target, path)
    if mask is None:
        return pa.Array.from_buffers(target, len(numbers), [None, pa.py_buffer(numbers)])
    return pa.array(numbers, pa.int64(), mask=mask).view(target)


def date_column(
    days: np.ndarray[Any, Any], mask: np.ndarray[Any, Any] | None, target: pa.DataType, path: str
) -> pa.Array:
    is_far = days != days.astype(np.int32)
    if mask is not None:
        is_far &= ~mask
    if is_far.any():
        row = int(np.flatnonzero(is_far)[0])
        raise too_far(path, days[row].view("M8[D]"), "D", row)
    return pa.array(days.astype(np.int32), pa.int32(), mask=mask).view(target)


def check_range(values: np.ndarray[Any, Any], unit: str, path: str) -> None:
    """Raises if a time overflows: numpy wraps around silently."""
    kind = values.dtype.kind
    limit = np.array([2**63 - 1], f"{kind}8[{unit}]").astype(values.dtype)[0]
    is_far = ~np.isnat(values) & (np.abs(values.view(np.int64)) > limit.view(np.int64))
    if is_far.any():
        row = int(np.flatnonzero(is_far)[0])
        raise too_far(path, values[row], unit, row)


def too_far(path: str, value: object, unit: str, row: int) -> BadValue:
    return BadValue(f"field {path!r} is beyond what {UNIT_NAMES[unit]} reach: {value}", row, "use a nearer time")
