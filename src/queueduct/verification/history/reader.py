"""The rows of a record with the types of the record, part by part: a file may be longer than memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from queueduct.verification.history.format import COLUMNS, OPTIONAL, DataFile, HistoryError

__all__ = ["SCHEMA", "is_valid", "numbers", "read_parts"]

NAMES = pa.dictionary(pa.int32(), pa.string())
"""The type of text columns: few words, many times."""
SCHEMA = pa.schema(
    [(name, NAMES if kind == "string" else pa.type_for_alias(kind)) for name, kind in (COLUMNS | OPTIONAL).items()]
)
ROWS_A_PART = 1 << 17


def read_parts(file: DataFile, row_groups: Iterable[int] | None = None) -> Iterator[pa.RecordBatch]:
    """Reads these row groups, or all if none are named."""
    wanted = [name for name in SCHEMA.names if name not in file.untyped]
    texts = [name for name in wanted if SCHEMA.field(name).type == NAMES]
    try:
        with pq.ParquetFile(file.path, read_dictionary=texts, page_checksum_verification=True) as opened:
            for part in opened.iter_batches(ROWS_A_PART, row_groups=row_groups, columns=wanted):
                columns = [
                    typed(part.column(name), name, file.path)
                    if name in wanted
                    else pa.nulls(len(part), SCHEMA.field(name).type)
                    for name in SCHEMA.names
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise HistoryError(f"every Parquet file must be whole: {file.path}: {reason}; record the run again") from error


def typed(column: pa.Array, name: str, path: str) -> pa.Array:
    wanted = SCHEMA.field(name).type
    if pa.types.is_floating(column.type):
        return whole(column, name, path)
    if wanted == NAMES and not pa.types.is_dictionary(column.type):
        return column.cast(pa.string()).dictionary_encode()
    try:
        return column.cast(wanted)
    except pa.ArrowInvalid as error:
        raise HistoryError(
            f"the column {name} must be {wanted}: in {path} it is {column.type}, with values beyond; "
            f"write it as {wanted}"
        ) from error


def whole(column: pa.Array, name: str, path: str) -> pa.Array:
    """Converts floats that are whole numbers, as far as floats are exact; NaN is null."""
    found = numbers(column, np.nan).astype(np.float64)
    is_null = np.isnan(found)
    most = 2.0 ** (24 if pa.types.is_float32(column.type) else 53)
    bad = ~is_null & ((np.abs(found) > most) | (np.floor(found) != found))
    if bad.any():
        raise HistoryError(
            f"the column {name} must be {SCHEMA.field(name).type}: in {path} it is {column.type}, "
            f"and {float(found[bad][0])!r} may have lost digits; write it as {SCHEMA.field(name).type}"
        )
    validity = pa.py_buffer(np.packbits(~is_null, bitorder="little"))
    values = pa.py_buffer(np.where(is_null, 0.0, found).astype(np.int64))
    return pa.Array.from_buffers(pa.int64(), len(column), [validity, values])


# pyarrow's own conversions to numpy import pandas, if it is installed: that takes a second.


def numbers(column: pa.Array, null: Any) -> NDArray[Any]:
    """Numbers or flags as numpy has them, with another one where they are null."""
    if pa.types.is_boolean(column.type):
        found = bits(column, 1)
    else:
        dtype = np.dtype(str(column.type).replace("double", "float64").replace("halffloat", "float16"))
        found = np.frombuffer(column.buffers()[1], dtype)[column.offset : column.offset + len(column)]
    if column.null_count:
        found = np.where(is_valid(column), found, np.asarray(null, found.dtype))
    return found


def is_valid(column: pa.Array) -> NDArray[np.bool_]:
    return bits(column, 0) if column.null_count else np.ones(len(column), bool)


def bits(column: pa.Array, buffer: int) -> NDArray[np.bool_]:
    end = column.offset + len(column)
    packed = np.frombuffer(column.buffers()[buffer], np.uint8)
    return np.unpackbits(packed, count=end, bitorder="little")[column.offset :].view(bool)
