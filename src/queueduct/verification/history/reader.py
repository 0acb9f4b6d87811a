"""The rows of a file with the types of the record: in this process, or in a worker of Spark's."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from queueduct.verification.check.verdict import HistoryError
from queueduct.verification.history.format import COLUMNS, OPTIONAL

__all__ = ["SCHEMA", "SPARK_SCHEMA", "read_parts"]

TYPES = {"bigint": pa.int64(), "string": pa.string(), "boolean": pa.bool_()}
SCHEMA = pa.schema([(name, TYPES[kind]) for name, kind in (COLUMNS | OPTIONAL).items()])
SPARK_SCHEMA = ", ".join(f"{name} {kind}" for name, kind in (COLUMNS | OPTIONAL).items())
ROWS_A_PART = 1 << 16


def read_parts(path: str, untyped: frozenset[str]) -> Iterator[pa.RecordBatch]:
    """Part by part: a file may be longer than memory."""
    wanted = [name for name in SCHEMA.names if name not in untyped]
    try:
        with pq.ParquetFile(path) as file:
            for part in file.iter_batches(ROWS_A_PART, columns=wanted):
                columns = [
                    typed(part.column(name), name, path)
                    if name in wanted
                    else pa.nulls(len(part), SCHEMA.field(name).type)
                    for name in SCHEMA.names
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise HistoryError(f"every Parquet file must be whole: {path}: {reason}; record the run again") from error


def typed(column: pa.Array, name: str, path: str) -> pa.Array:
    wanted = SCHEMA.field(name).type
    if pa.types.is_floating(column.type):
        return whole(column, name, path)
    try:
        return column.cast(wanted)
    except pa.ArrowInvalid as error:
        raise HistoryError(
            f"the column {name} must be {wanted}: in {path} it is {column.type}, with values beyond; "
            f"write it as {wanted}"
        ) from error


def whole(column: pa.Array, name: str, path: str) -> pa.Array:
    """Floats that are whole numbers, up to where the next whole number is no float; NaN is null."""
    numbers = np.asarray(pc.fill_null(column, np.nan), np.float64)
    is_null = np.isnan(numbers)
    most = 2.0 ** (24 if pa.types.is_float32(column.type) else 53)
    bad = ~is_null & ((np.abs(numbers) > most) | (np.floor(numbers) != numbers))
    if bad.any():
        raise HistoryError(
            f"the column {name} must be {SCHEMA.field(name).type}: in {path} it is {column.type}, "
            f"and {float(numbers[bad][0])!r} may have lost digits; write it as {SCHEMA.field(name).type}"
        )
    return pa.array(np.where(is_null, 0.0, numbers).astype(np.int64), mask=is_null)
