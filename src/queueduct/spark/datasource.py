"""The data source "queueduct": the class from which Spark makes readers and writers."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from queueduct.segments.kinds import Kind, kind_of
from queueduct.spark.address import Address
from queueduct.spark.convert.schema import arrow_schema, spark_schema
from queueduct.spark.options import SinkOptions, SourceOptions
from queueduct.spark.read.batch import BatchReader
from queueduct.spark.read.spooled_stream import SpooledStreamReader
from queueduct.spark.read.stream import StreamReader
from queueduct.spark.write.writers import BatchWriter, Plan, StreamWriter

__all__ = ["QueueductSource"]


class QueueductSource(DataSource):
    """``spark.read``, ``readStream``, ``write`` and ``writeStream`` with ``format("queueduct")``.

    Spark makes it in one process, and pickles it to the others.
    """

    @classmethod
    def name(cls) -> str:
        return "queueduct"

    def schema(self) -> StructType:
        """Returns the fields of the queue's records, and the position."""
        return spark_schema(self.resolve()[2])

    def reader(self, schema: StructType) -> DataSourceReader:
        options, address, columns, kind = self.resolve(schema)
        if not kind.is_log:
            raise TypeError(
                f"a batch read may be run more than once, and {options.queue!r} gives each item once, so spark.read "
                "cannot read it; use readStream with trigger(availableNow=True), or put into an EventQueue"
            )
        return BatchReader(options, address, columns)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        options, address, columns, kind = self.resolve(schema)
        if kind.is_log:
            return StreamReader(options, address, columns)
        check_spooled(options)
        return SpooledStreamReader(options, address, columns)

    def resolve(self, wanted: StructType | None = None) -> tuple[SourceOptions, Address, pa.Schema, Kind]:
        """Returns the options, the queue's address and its columns."""
        options = SourceOptions.of(self.options)
        address = Address(options.queue, options.directory)
        with address.open() as queue:
            columns = arrow_schema(queue.item, strings=options.strings, position_column=options.position_column)
            if wanted is not None and wanted != spark_schema(columns):
                raise ValueError(
                    f"the schema is the queue's own: {spark_schema(columns).simpleString()}, "
                    f"not {wanted.simpleString()}; leave out .schema(…), and select and cast afterwards"
                )
            return options, address.exactly(queue), columns, kind_of(queue)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        if overwrite:
            raise ValueError("a queue cannot be overwritten: mode='overwrite'; use mode('append')")
        return BatchWriter(Plan.of(SinkOptions.of(self.options), schema.fieldNames()))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        if overwrite:
            raise ValueError("a queue takes rows once and for good: outputMode='complete'; use append or update")
        given = {name: value for name, value in self.options.items() if name.lower() in ("producer", "sequence")}
        if given:
            raise ValueError(
                f"the producer of a stream is its query, by the id in its checkpoint, and a name would take a new "
                f"query's batches for the old one's: {given}; leave it out"
            )
        return StreamWriter(Plan.of(SinkOptions.of(self.options), schema.fieldNames()))


def check_spooled(options: SourceOptions) -> None:
    """Refuses options about positions for a queue whose gets remove items."""
    if options.starting_offsets is not None and options.starting_offsets != "earliest":
        raise ValueError(
            f"a query takes all that is in {options.queue!r}, and has no other place to start: "
            f"startingOffsets={options.starting_offsets}; leave it out"
        )
    if options.reader is not None:
        raise ValueError(
            f"readers are an EventQueue's, and {options.queue!r} is none: reader={options.reader!r}; leave it out"
        )
