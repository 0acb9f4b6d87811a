"""Columns to records. Refuses values that do not fit their field exactly; the error names the field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from queueduct.arrow.scatter.fields import blank, scattered
from queueduct.arrow.schema import dtype_of
from queueduct.errors import UnfitItem

__all__ = ["UnfitValue", "chosen_columns", "fill_items", "fitted", "to_items", "values_of"]

NOT_A_TIME = np.iinfo(np.int64).min


class UnfitValue(UnfitItem):
    """Some row has a value that does not fit its field. The remedy stands apart: the row is named before it."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem, remedy)
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.problem}; {self.remedy}"


def chosen_columns(columns: Sequence[str], item: object, position_column: str | None = None) -> list[str]:
    """Returns the columns of an item, in the order of its fields, without the position in the source queue."""
    if item is object:
        raise TypeError("rows cannot become Python objects: item=object; create the queue with a numpy dtype, or bytes")
    names = None if item is bytes else dtype_of(item).names
    if names is None:
        given = [column for column in columns if column != position_column]
        if len(given) != 1:
            raise UnfitItem(f"items of one value take one column: columns={', '.join(given)}; select one of them")
        return given
    twice = sorted({column for column in columns if list(columns).count(column) > 1})
    if twice:
        raise UnfitItem(f"each column needs a name of its own: {', '.join(twice)}; rename or drop one of them")
    missing = [name for name in names if name not in columns]
    unknown = [column for column in columns if column not in names and column != position_column]
    if missing or unknown:
        problem = f"missing: {', '.join(missing) or 'none'}; unknown: {', '.join(unknown) or 'none'}"
        raise UnfitItem(f"the columns must be the record's fields: {problem}; select and rename them first")
    return list(names)


def to_items(batch: pa.RecordBatch, columns: Sequence[str], item: object) -> Any:
    """Returns the rows as items of this type: one array of records, or a list of bytes."""
    if item is bytes:
        return fitted(batch.column(batch.schema.get_field_index(columns[0])), columns[0], item)
    records = blank(batch.num_rows, dtype_of(item))
    fill_items(records, batch, columns)
    return records


def fill_items(out: np.ndarray[Any, Any], batch: pa.RecordBatch, columns: Sequence[str]) -> None:
    """Writes the rows into as many records. Each column of the record is one of these, in their order."""
    arrays = [batch.column(batch.schema.get_field_index(name)) for name in columns]
    is_record = out.ndim == 1 and out.dtype.names is not None
    for name, array, is_done in zip(columns, arrays, scattered(out, arrays), strict=True):
        if not is_done:
            fill(out[name] if is_record else out, array, name)


def fitted(array: pa.Array, path: str, item: object) -> Any:
    """Returns one column as values of this type: an array, or a list of bytes."""
    if item is bytes:
        return byte_strings(plain(array, path), path).to_pylist()
    values = np.zeros(len(array), dtype_of(item))
    fill(values, array, path)
    return values


def fill(out: np.ndarray[Any, Any], array: pa.Array, path: str) -> None:
    """Writes one column into its field, a view of all the records."""
    if filled_by_dictionary(out, array, path):
        return
    array = plain(array, path)
    if len(array) == 0:  # its type says nothing: an empty list of Python's has none
        return
    if out.ndim > 1:
        fill_lists(out, array, path)
        return
    kind = out.dtype.kind
    if kind not in "Mm":
        refuse_nulls(array, path)
    if out.dtype.names is not None:
        if not pa.types.is_struct(array.type):
            raise wrong_type(array, out.dtype, path)
        inner = chosen_columns([field.name for field in array.type], out.dtype)
        flat = dict(zip([field.name for field in array.type], array.flatten(), strict=True))
        for name in inner:
            fill(out[name], flat[name], f"{path}.{name}")
    elif kind == "S":
        fill_bytes(out, byte_strings(array, path), path)
    elif kind == "U":
        fill_text(out, byte_strings(array, path), path)
    elif kind in "Mm":
        fill_times(out, array, path)
    else:
        fill_numbers(out, array, path)


def filled_by_dictionary(out: np.ndarray[Any, Any], array: pa.Array, path: str) -> bool:
    """Converts each text of a dictionary once. Returns false where that does not do: then each row is looked at."""
    if not pa.types.is_dictionary(array.type) or out.ndim > 1 or out.dtype.kind not in "SU":
        return False
    if array.null_count or array.dictionary.null_count or not 0 < len(array.dictionary) <= len(array):
        return False
    texts = np.zeros(len(array.dictionary), out.dtype)
    try:
        fill(texts, array.dictionary, path)
    except ValueError:  # perhaps of a text that no row has
        return False
    out[...] = texts[values_of(array.indices)]
    return True


def plain(array: pa.Array, path: str) -> pa.Array:
    """Returns the column in the one form of its type that is handled here."""
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return plain(array.storage, path)
    if pa.types.is_dictionary(kind):
        return plain(array.dictionary, path).take(array.indices)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return cast(array, pa.string(), path)
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind):
        return cast(array, pa.binary(), path)
    if pa.types.is_large_list(kind):
        return cast(array, pa.list_(kind.value_field), path)
    return array


def fill_numbers(out: np.ndarray[Any, Any], array: pa.Array, path: str) -> None:
    kind = array.type
    is_boolean = pa.types.is_boolean(kind)
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if is_boolean != (out.dtype.kind == "b") or not (is_boolean or is_number):
        raise wrong_type(array, out.dtype, path)  # Arrow would convert "7", True and times to numbers
    native = out.dtype.newbyteorder("=")
    wanted = pa.from_numpy_dtype(native)
    converted = values_of(array if array.type == wanted else cast(array, wanted, path))
    if native.kind == "f" and pa.types.is_floating(array.type) and array.type.bit_width > native.itemsize * 8:
        check_finite(array, converted, path)
    out[...] = converted


def check_finite(array: pa.Array, narrowed: np.ndarray[Any, Any], path: str) -> None:
    """Raises if a number became infinite. Rounded to the precision of its field it may be."""
    is_lost = np.isinf(narrowed) & ~np.isinf(values_of(array))
    if is_lost.any():
        value = array[int(np.flatnonzero(is_lost)[0])].as_py()
        raise UnfitValue(
            f"column {path!r} has a value beyond {narrowed.dtype}: {value}", "give the record a wider field"
        )


def values_of(array: pa.Array) -> np.ndarray[Any, Any]:
    """Returns the values of an array without nulls, numbers without a copy. Its own to_numpy imports pandas first."""
    if pa.types.is_boolean(array.type):  # they are bits
        return values_of(array.cast(pa.uint8())).view(bool)
    kind = array.type.to_pandas_dtype()
    if len(array) == 0:
        return np.zeros(0, kind)
    return np.frombuffer(array.buffers()[1], kind)[array.offset : array.offset + len(array)]


def times_of(numbers: pa.Array) -> np.ndarray[Any, Any]:
    return values_of(numbers.fill_null(NOT_A_TIME) if numbers.null_count else numbers)


def fill_times(out: np.ndarray[Any, Any], array: pa.Array, path: str) -> None:
    kind = out.dtype.kind
    times = (pa.types.is_duration,) if kind == "m" else (pa.types.is_timestamp, pa.types.is_date)
    if not any(is_one(array.type) for is_one in times):
        raise wrong_type(array, out.dtype, path)
    if pa.types.is_date32(array.type):
        values = times_of(array.view(pa.int32()).cast(pa.int64())).view("M8[D]")
    else:
        unit = "ms" if pa.types.is_date64(array.type) else array.type.unit
        values = times_of(array.view(pa.int64())).view(f"{kind}8[{unit}]")
    fitted = values.astype(out.dtype)
    # numpy rounds down, and wraps around: either shows on the way back
    if fitted.dtype != values.dtype and not np.array_equal(fitted.astype(values.dtype), values, equal_nan=True):
        raise UnfitValue(f"column {path!r} does not fit {out.dtype} exactly", "round it first, as with date_trunc")
    out[...] = fitted


def fill_lists(out: np.ndarray[Any, Any], array: pa.Array, path: str) -> None:
    refuse_nulls(array, path)
    wanted = out.shape[1]
    if pa.types.is_fixed_size_list(array.type):
        lengths = np.array([array.type.list_size])
    elif pa.types.is_list(array.type):
        lengths = values_of(array.value_lengths())
    else:
        raise wrong_type(array, out.dtype, path)
    if (lengths != wanted).any():
        found = int(lengths[lengths != wanted][0])
        raise UnfitValue(f"column {path!r} must have {wanted} elements in each row: one has {found}", "pad or cut it")
    inner = np.zeros((out.shape[0] * wanted, *out.shape[2:]), out.dtype)
    fill(inner, array.flatten(), path)
    out[...] = inner.reshape(out.shape)


def fill_bytes(out: np.ndarray[Any, Any], array: pa.Array, path: str) -> None:
    if all(scattered(out, [array])):
        return
    lengths, data = lengths_and_data(array)
    check_lengths(lengths, out.dtype.itemsize, out.dtype, path)
    ends = np.cumsum(lengths)[lengths > 0] - 1
    if len(ends) and (data[ends] == 0).any():
        raise UnfitValue(
            f"column {path!r} has a value that ends with a NUL byte, which {out.dtype} cannot keep",
            "strip it, or give the record a field of V bytes",
        )


def fill_text(out: np.ndarray[Any, Any], array: pa.Array, path: str) -> None:
    width = out.dtype.itemsize // 4
    lengths, data = lengths_and_data(array)
    try:
        text = data.tobytes().decode()
    except UnicodeDecodeError as error:
        raise UnfitValue(
            f"column {path!r} is not UTF-8, and {out.dtype} takes text: {error.reason}",
            f"decode it first, or give the record a field of S{width} bytes",
        ) from error
    # a character begins at every byte that does not continue another one
    begun = np.concatenate([[0], np.cumsum((data & 0xC0) != 0x80)])
    ends = np.cumsum(lengths)
    counts = begun[ends] - begun[ends - lengths]
    check_lengths(counts, width, out.dtype, path)
    points = np.zeros((len(out), width), np.uint32)
    points[np.arange(width) < counts[:, None]] = np.frombuffer(text.encode("utf-32-le"), "<u4")
    out[...] = points.view(f"U{width}").reshape(len(out)) if width else ""


def check_lengths(lengths: np.ndarray[Any, Any], width: int, dtype: np.dtype[Any], path: str) -> None:
    if len(lengths) and lengths.max() > width:
        raise UnfitValue(
            f"column {path!r} has a value of length {lengths.max()}, too long for {dtype.kind}{width}",
            "cut it first, or give the record a wider field",
        )


def lengths_and_data(array: pa.Array) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Returns, for a binary column without nulls, the length of each value, and all values end to end."""
    if len(array) == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.uint8)
    _, offsets_buffer, data_buffer = array.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32)[array.offset : array.offset + len(array) + 1]
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.zeros(0, np.uint8)
    return np.diff(offsets).astype(np.int64), data[offsets[0] : offsets[-1]]


def byte_strings(array: pa.Array, path: str) -> pa.Array:
    refuse_nulls(array, path)
    if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        return array.cast(pa.binary())
    raise UnfitItem(f"column {path!r} must be string or binary: {array.type}; cast it first")


def refuse_nulls(array: pa.Array, path: str) -> None:
    if array.null_count:
        raise UnfitValue(f"column {path!r} has a null, and a record has no nulls", "fill or filter them first")


def cast(array: pa.Array, wanted: pa.DataType, path: str) -> pa.Array:
    try:
        return array.cast(wanted, safe=True)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        why = f"column {path!r} does not fit {wanted} exactly: {str(error).rstrip('.')}"
        raise UnfitValue(why, "convert it first, or give the record another field") from error


def wrong_type(array: pa.Array, dtype: np.dtype[Any], path: str) -> UnfitItem:
    return UnfitItem(f"column {path!r} cannot become {dtype}: it is {array.type}; cast it first")
