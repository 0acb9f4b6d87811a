"""The Arrow schema of a queue's items. A dtype without one is refused; the error names the field.

======================  ==========================  ===============================
numpy                   Arrow
======================  ==========================  ===============================
i1 … i8, u1 … u8        int8 … int64, uint8 …       as they are
f2 f4 f8, bool          halffloat float double bool as they are
M8[s ms us ns]          timestamp of this unit      without a time zone; NaT is null
M8[h m]                 timestamp[s]                NaT is null
M8[Y M W D]             date32                      NaT is null
m8[s ms us ns]          duration of this unit       NaT is null
m8[W D h m]             duration[s]                 NaT is null
Sn                      string or binary            without the NULs at the end
Un                      string                      without the NULs at the end
record                  struct
sub-array               fixed_size_list, nested
======================  ==========================  ===============================
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["ARROW_UNITS", "NULLABLE_KINDS", "VALUE", "check_strings", "dtype_of", "given_dtype", "schema_of"]

VALUE = "value"  # the column of items that are no records
NULLABLE_KINDS = "Mm"  # only these have a null value: NaT
ARROW_UNITS = ("s", "ms", "us", "ns")
CALENDAR_UNITS = ("Y", "M", "W", "D")
COARSE_SPANS = ("W", "D", "h", "m")


def dtype_of(item: object) -> np.dtype[Any]:
    """A queue's item that is neither bytes nor object: the dtype of its records."""
    if not isinstance(item, np.dtype):
        raise TypeError(f"the items must be records, of a numpy dtype: item={item!r}")
    return item


def schema_of(item: Any, *, strings: str = "string") -> pa.Schema:
    """Returns the columns of a queue with items of this type: a numpy dtype, or bytes.

    Items that are no records are one column, ``value``. With ``strings="binary"`` the fields of bytes (``S8``) become
    binary columns, and need not be UTF-8.

    >>> import queueduct.arrow
    >>> queueduct.arrow.schema_of(np.dtype([("symbol", "S8"), ("price", "f8")])).names
    ['symbol', 'price']
    """
    check_strings(strings)
    if item is object:
        raise TypeError(
            "a queue of Python objects has no columns: item=object; create the queue with a numpy dtype, or with bytes"
        )
    if item is bytes:
        return pa.schema([pa.field(VALUE, pa.binary(), nullable=False)])
    dtype = given_dtype("item", item)
    if dtype.names is None:
        return pa.schema([field_of(dtype, VALUE, strings)])
    if not dtype.names:
        raise TypeError(f"a record without fields has no columns: item={dtype}; give it a field")
    return pa.schema(fields_of(dtype, "", strings))


def given_dtype(label: str, given: Any) -> np.dtype[Any]:
    """What a user gives for a dtype."""
    try:
        dtype: np.dtype[Any] = np.dtype(given)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{label} must be bytes or a numpy dtype: {label}={given!r}") from error
    return dtype


def check_strings(strings: object) -> None:
    if strings not in ("string", "binary"):
        raise ValueError(f"strings must be 'string' or 'binary': strings={strings!r}")


def fields_of(dtype: np.dtype[Any], prefix: str, strings: str) -> list[pa.Field]:
    return [field_of(dtype[name], f"{prefix}{name}", strings) for name in dtype.names or ()]


def field_of(dtype: np.dtype[Any], path: str, strings: str) -> pa.Field:
    """Returns the type of one column, or of one field of a struct; errors name it by its path."""
    nullable = dtype.subdtype is None and dtype.kind in NULLABLE_KINDS
    return pa.field(path.rpartition(".")[2], type_of(dtype, path, strings), nullable=nullable)


def type_of(dtype: np.dtype[Any], path: str, strings: str) -> pa.DataType:
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        inside = type_of(base, path, strings)
        nullable = base.kind in NULLABLE_KINDS
        for length in reversed(shape):
            inside = pa.list_(pa.field("item", inside, nullable=nullable), length)
            nullable = False
        return inside
    if dtype.names is not None:
        return pa.struct(fields_of(dtype, f"{path}.", strings))
    if dtype.kind in "SU":
        return pa.binary() if dtype.kind == "S" and strings == "binary" else pa.string()
    if dtype.kind in "Mm":
        return time_type(dtype, path)
    if dtype.kind == "b":
        return pa.bool_()
    if dtype.kind in "iuf" and dtype.itemsize <= 8:
        return pa.from_numpy_dtype(dtype.newbyteorder("="))
    raise TypeError(
        f"field {path!r} has a type that Arrow has no column for: {dtype}; "
        "use numbers of at most 8 bytes, bool, M8, m8, S, U, records or sub-arrays of them"
    )


def time_type(dtype: np.dtype[Any], path: str) -> pa.DataType:
    """Returns the type that has every value of this unit of time, except those that are too far away."""
    unit, _ = np.datetime_data(dtype)
    if unit == "generic":
        raise TypeError(f"field {path!r} has no unit of time: {dtype}; say one, as in {dtype.kind}8[us]")
    if dtype.kind == "M":
        if unit in ARROW_UNITS:
            return pa.timestamp(unit)
        if unit in CALENDAR_UNITS:
            return pa.date32()
        if unit in ("h", "m"):
            return pa.timestamp("s")
    elif unit in ARROW_UNITS:
        return pa.duration(unit)
    elif unit in COARSE_SPANS:
        return pa.duration("s")
    raise TypeError(f"field {path!r} has a unit of time that Arrow has not: {dtype}; use {dtype.kind}8[ns]")
