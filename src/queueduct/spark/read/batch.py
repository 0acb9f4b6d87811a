"""The batch reader: the positions that are there when the plan is made, and no others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from queueduct.spark.address import Address
from queueduct.spark.options import SourceOptions
from queueduct.spark.read.ranges import check_retained, cut, read_range

__all__ = ["BatchReader"]


class BatchReader(DataSourceReader):
    """Spark makes it and asks it for partitions in the driver; then pickles it to the tasks, which read.

    It must not have pushFilters: Spark would keep the filtered rows for later reads of the same frame.
    """

    def __init__(self, options: SourceOptions, address: Address, schema: pa.Schema) -> None:
        self.options = options
        self.address = address
        self.schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        with self.address.open() as queue:
            queue.sync()  # a batch's output outlives a crash of the machine: so must its input
            start, stop = self.range(queue.earliest, queue.durable_end())
        return cut(self.address, start, stop, self.options.partitions)

    def range(self, earliest: int, end: int) -> tuple[int, int]:
        """Returns the positions that were asked for and exist."""
        options = self.options
        if options.starting_offsets == "latest":
            raise ValueError("a batch read that starts at the latest position reads nothing: startingOffsets='latest'")
        start = options.start_position
        if start is None and isinstance(options.starting_offsets, int):
            start = options.starting_offsets
        if start is None:
            start = earliest
        stop = end if options.end_position is None else options.end_position
        if stop > end:
            raise ValueError(f"endPosition must not be beyond the queue's end: endPosition={stop}, end={end}")
        if start > stop:
            raise ValueError(f"startPosition must not be after the end: startPosition={start}, end={stop}")
        return check_retained(self.address, start, stop, earliest, may_skip=not options.fail_on_data_loss), stop

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_range(partition, self.schema, may_skip=not self.options.fail_on_data_loss)
