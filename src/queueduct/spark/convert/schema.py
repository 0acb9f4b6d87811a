"""The schema of a record in Arrow and in Spark. A dtype without one is refused; the error names the field.

====================  ===================  =======================
numpy                 Arrow                Spark
====================  ===================  =======================
i1 i2 i4 i8           int8 … int64         tinyint … bigint
u1 u2 u4              int16 int32 int64    smallint int bigint
u8                    decimal128(20, 0)    decimal(20, 0)
f2 f4                 float                float
f8                    double               double
bool                  bool                 boolean
M8[any unit]          timestamp[us, UTC]   timestamp, NaT is null
m8[any unit]          duration[us]         interval, NaT is null
Sn                    string or binary     string or binary
Un                    string               string
record                struct               struct
sub-array             list, nested         array, nested
====================  ===================  =======================
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import types
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from queueduct.arrow.schema import NULLABLE_KINDS, VALUE, dtype_of

__all__ = ["arrow_schema", "record_dtype", "spark_schema"]

WIDER = {"u1": "i2", "u2": "i4", "u4": "i8", "f2": "f4"}  # Spark has no unsigned numbers and no halves
DECIMAL = pa.decimal128(20, 0)  # holds every u8


def arrow_schema(item: object, *, strings: str = "string", position_column: str = "position") -> pa.Schema:
    """Returns the columns of a queue with items of this type: its fields, then the position."""
    if item is object:
        raise TypeError(
            "a queue of pickled objects has no columns: item=object; give the queue a numpy dtype, or bytes of your own"
        )
    if item is bytes:
        fields = [pa.field(VALUE, pa.binary(), nullable=False)]
    else:
        dtype = dtype_of(item)
        fields = [field_of(dtype, VALUE, strings)] if dtype.names is None else fields_of(dtype, "", strings)
    if position_column in {field.name for field in fields}:
        raise ValueError(
            f"the record has a field of the position column's name: {position_column!r}; "
            "name the column otherwise with the option positionColumn"
        )
    fields.append(pa.field(position_column, pa.int64(), nullable=False))
    # Once to Spark and back, so that the inside of a list has the name that Spark expects.
    return to_arrow_schema(spark_schema(pa.schema(fields)), timezone="UTC")


def spark_schema(schema: pa.Schema) -> StructType:
    """Returns the same columns as a Spark schema."""
    return from_arrow_schema(schema)


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
        for _ in shape:
            nullable = base.kind in NULLABLE_KINDS and not pa.types.is_list(inside)
            inside = pa.list_(pa.field("element", inside, nullable=nullable))
        return inside
    if dtype.names is not None:
        return pa.struct(fields_of(dtype, f"{path}.", strings))
    if dtype.kind in "SU":
        return pa.binary() if dtype.kind == "S" and strings == "binary" else pa.string()
    if dtype.kind in "Mm":
        if np.datetime_data(dtype)[0] == "generic":
            raise TypeError(f"field {path!r} has no unit of time: {dtype}; say one, as in {dtype.kind}8[us]")
        return pa.timestamp("us", tz="UTC") if dtype.kind == "M" else pa.duration("us")
    name = f"{dtype.kind}{dtype.itemsize}"
    if name == "u8":
        return DECIMAL
    if dtype.kind == "b":
        return pa.bool_()
    if dtype.kind in "iuf" and dtype.itemsize <= 8:
        return pa.from_numpy_dtype(np.dtype(WIDER.get(name, name)))
    raise TypeError(
        f"field {path!r} has a type that Spark has no column for: {dtype}; "
        "use numbers of at most 8 bytes, bool, M8, m8, S, U, records or sub-arrays of them"
    )


PLAIN: dict[type[types.DataType], str] = {
    types.ByteType: "i1",
    types.ShortType: "i2",
    types.IntegerType: "i4",
    types.LongType: "i8",
    types.FloatType: "f4",
    types.DoubleType: "f8",
    types.BooleanType: "?",
    types.TimestampType: "M8[us]",
    types.TimestampNTZType: "M8[us]",
    types.DateType: "M8[D]",
    types.DayTimeIntervalType: "m8[us]",
}


def record_dtype(schema: StructType, known: np.dtype[Any]) -> np.dtype[Any]:
    """Returns the record dtype for such rows. Text takes the length of the known record's field of the same name."""
    fields: list[tuple[str, Any]] = []
    for field in schema:
        if type(field.dataType) in PLAIN:
            fields.append((field.name, PLAIN[type(field.dataType)]))
        elif known.names is not None and field.name in known.names:
            fields.append((field.name, known[field.name]))
        else:
            raise TypeError(
                f"column {field.name!r} has no fixed size in a record: {field.dataType.simpleString()}; "
                "create the queue yourself with the dtype that you want"
            )
    return np.dtype(fields)
