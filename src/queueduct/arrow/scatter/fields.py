"""Which columns go into the fields of records without a conversion, and the records that they fill."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from queueduct.arrow.scatter._scatter import Scatterer

__all__ = ["blank", "scattered"]


def blank(rows: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Returns records to be filled. What lies between their fields is zero.

    The memory is of Arrow's own pool, which uses again what it has freed: new memory costs more than to fill it.
    """
    if rows == 0 or dtype.itemsize == 0 or has_gaps(dtype):
        return np.zeros(rows, dtype)
    return np.ndarray(rows, dtype, np.frombuffer(pa.allocate_buffer(rows * dtype.itemsize), np.uint8))


def has_gaps(dtype: np.dtype[Any]) -> bool:
    if dtype.subdtype is not None:
        return has_gaps(dtype.subdtype[0])
    fields = [dtype[name] for name in dtype.names or ()]
    if not fields:
        return False
    return sum(field.itemsize for field in fields) != dtype.itemsize or any(map(has_gaps, fields))


def scattered(out: np.ndarray[Any, Any], arrays: Sequence[pa.Array]) -> list[bool]:
    """Writes columns into the fields of records, one each. Returns which are complete.

    The others need a conversion, or have a value that does not fit.
    """
    if out.ndim > 1:
        return [False] * len(arrays)
    scatterer = Scatterer(out)
    numbers = [
        added(scatterer, array, dtype, offset)
        for array, (dtype, offset) in zip(arrays, fields_of(out.dtype), strict=True)
    ]
    bad = scatterer.scatter()
    return [number is not None and number not in bad for number in numbers]


def fields_of(dtype: np.dtype[Any]) -> list[tuple[np.dtype[Any], int]]:
    """Returns the dtype and the offset of each field; of items that are no records, those of the one value."""
    if dtype.names is None:
        return [(dtype, 0)]
    fields: dict[str, Any] = dict(dtype.fields or {})
    return [(fields[name][0], fields[name][1]) for name in dtype.names]


def added(scatterer: Scatterer, array: pa.Array, dtype: np.dtype[Any], offset: int) -> int | None:
    """Adds a column whose values are as the field has them. Returns its number; None if they need a conversion."""
    if len(array) == 0 or array.null_count or dtype.subdtype is not None or not dtype.isnative:
        return None
    if dtype.kind in "iufMm":
        if not is_same(array.type, dtype):
            return None
        return scatterer.add_values(offset, dtype.itemsize, values_of(array, dtype.itemsize))
    if dtype.kind in "SU" and dtype.itemsize:
        if pa.types.is_dictionary(array.type):
            return added_by_dictionary(scatterer, array, dtype, offset)
        if pa.types.is_string(array.type) or (dtype.kind == "S" and pa.types.is_binary(array.type)):
            return scatterer.add_texts(offset, dtype.itemsize, dtype.kind == "U", *texts_of(array))
    return None


def added_by_dictionary(scatterer: Scatterer, array: pa.Array, dtype: np.dtype[Any], offset: int) -> int | None:
    """Each text of the dictionary is converted once. One that does not fit may be no row's: that is seen elsewhere."""
    texts = array.dictionary
    if not pa.types.is_int32(array.indices.type) or not len(texts) <= len(array):
        return None
    choices = blank(len(texts), dtype)
    if not all(scattered(choices, [texts])):
        return None
    return scatterer.add_chosen(offset, choices, values_of(array.indices, 4).view(np.int32))


def is_same(kind: pa.DataType, dtype: np.dtype[Any]) -> bool:
    """Returns true if each value of the column has the bytes of the field's."""
    if dtype.kind not in "Mm":
        return bool(kind == pa.from_numpy_dtype(dtype))
    is_time = pa.types.is_timestamp(kind) if dtype.kind == "M" else pa.types.is_duration(kind)
    return bool(is_time) and np.datetime_data(dtype) == (kind.unit, 1)


def values_of(array: pa.Array, width: int) -> np.ndarray[Any, Any]:
    """Returns the bytes of an array's values, which have this width."""
    return np.frombuffer(array.buffers()[1], np.uint8)[array.offset * width : (array.offset + len(array)) * width]


def texts_of(array: pa.Array) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Returns where each text begins and the last one ends, and all texts end to end."""
    _, offsets, data = array.buffers()
    places = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    return places, np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
