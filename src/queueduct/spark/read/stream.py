"""The stream reader: micro-batches by position, under a durable reader that frees the items of committed batches.

An offset is {position, queue, reader, began, epoch}: the next position to read, the queue's id, the name of the
durable reader, where and under which token the query began, and how often the log was cut after a crash of the machine.
Offsets are the only state, and Spark's checkpoint keeps them:

 - a replayed batch has the same two positions, and the queue gives the same items for them until they are committed;
 - the id tells the checkpoint of another queue, or of one that was created anew;
 - the epoch tells a position that a crash of the machine has given to another item; offsets end at what is on the
   queue's disk, so no such position gets into a checkpoint before the crash;
 - a query finds its reader again without being told its name.

The start of the very first batch is the one offset that no checkpoint keeps: Spark asks for the initial offset again
when it replays that batch, and "latest" has moved by then. The end of the batch tells where the query really began.

Spark asks for the latest offset from a start only when the batch that ends there is in its log of commits, and calls
``commit`` for it only when it plans the next one, for which there must be something new. With a full queue there
would never be: so when there is nothing new, the question itself already frees the items before the start.

Spark calls all this in one long-lived process for each query; only ``read`` runs elsewhere, in the tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from queueduct.spark.address import NEW_CHECKPOINT, NEW_TARGET, Address
from queueduct.spark.options import SourceOptions
from queueduct.spark.read.ranges import LEAST_OF_MICRO_BATCH, check_retained, cut, read_range
from queueduct.spark.read.subscription import LogSubscription, when_the_query_ends

__all__ = ["StreamReader"]

Offset = dict[str, Any]


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The stream reader. It holds nothing before its first offset, since Spark pickles it to the tasks."""

    def __init__(self, options: SourceOptions, address: Address, schema: pa.Schema) -> None:
        self.options = options
        self.address = address
        self.schema = schema
        self._subscription: LogSubscription | None = None
        self.initial: Offset | None = None
        self.latest: Offset | None = None
        self.target: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_subscription": None}

    @property
    def subscription(self) -> LogSubscription:
        if self._subscription is None:
            self._subscription = self.subscribe()
            when_the_query_ends(self._subscription.leave)
        return self._subscription

    def subscribe(self) -> LogSubscription:
        return LogSubscription(self.address, self.options)

    def initialOffset(self) -> Offset:
        if self.initial is None:  # Spark asks twice, and "latest" must not move in between
            position, reader, token = self.subscription.begin()
            self.initial = {
                "position": position,
                "queue": self.address.segment,
                "reader": reader,
                "began": {"at": position, "as": token},
                "epoch": self.subscription.queue.epoch,
            }
        return self.initial

    def getDefaultReadLimit(self) -> ReadLimit:
        rows, size = self.options.max_rows_per_trigger, self.options.max_bytes_per_trigger
        if rows is not None and size is not None:
            return ReadMaxRows(min(rows, self.subscription.rows_of_bytes(size)))
        if rows is not None:
            return ReadMaxRows(rows)
        return ReadAllAvailable() if size is None else ReadMaxBytes(size)

    def prepareForTriggerAvailableNow(self) -> None:
        self.target = self.subscription.target

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        position = self.position(start)
        self.subscription.note_done(position, int(start["began"]["at"]))
        furthest = self.furthest(position, limit)
        end = self.subscription.end if furthest is None else min(self.subscription.end, furthest)
        if end <= position:
            self.subscription.settle(start["reader"], start["began"]["as"], position)
            self.subscription.check_still_there()
        # Spark compares offsets as text: where nothing has come, it is the same one
        is_new = end > position or position != int(start["position"])
        epoch = self.subscription.queue.epoch
        self.latest = {**start, "position": max(position, end), "epoch": epoch} if is_new else start
        return self.latest

    def furthest(self, position: int, limit: ReadLimit) -> int | None:
        """Returns how far a batch from this position may go; None if there is no limit."""
        allowed = [] if self.target is None else [self.target]
        if isinstance(limit, ReadMaxRows):
            allowed.append(position + limit.max_rows)
        elif isinstance(limit, ReadMaxBytes):
            allowed.append(position + self.subscription.rows_of_bytes(limit.max_bytes))
        return min(allowed, default=None)

    def reportLatestOffset(self) -> Offset | None:
        return None if self.latest is None else {**self.latest, **self.subscription.report()}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        is_first_again = start["began"] != end["began"]
        first = self.position({**end, "position": end["began"]["at"]}) if is_first_again else self.position(start)
        stop = self.position(end)
        self.subscription.note_done(first, int(end["began"]["at"]))
        earliest = self.subscription.hold(end["reader"], end["began"]["as"], first)
        self.subscription.planned = stop
        first = check_retained(self.address, first, stop, earliest, may_skip=not self.options.fail_on_data_loss)
        return cut(self.subscription.log_address, first, stop, self.options.partitions, LEAST_OF_MICRO_BATCH)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_range(partition, self.schema, may_skip=not self.options.fail_on_data_loss)

    def commit(self, end: Offset) -> None:
        self.subscription.note_done(self.position(end), int(end["began"]["at"]))
        self.subscription.settle(end["reader"], end["began"]["as"], self.position(end))

    def stop(self) -> None:
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None

    def position(self, offset: Offset) -> int:
        """Returns an offset's position, if it belongs to this queue."""
        if offset["queue"] != self.address.segment:
            raise ValueError(
                f"the checkpoint belongs to another queue than {self.address.name!r}, or to one that was created anew "
                f"since: the checkpoint's id is {offset['queue']}, the queue's {self.address.segment}; "
                f"use the checkpoint with its own queue, or start with a new one, {NEW_TARGET}"
            )
        position = self.subscription.check_epoch(int(offset["position"]), int(offset.get("epoch", 0)))
        if position > self.subscription.queue.end:
            raise ValueError(
                f"the checkpoint is ahead of the queue {self.address.name!r}: position={position}, "
                f"end={self.subscription.queue.end}; the queue's file is older than the checkpoint; {NEW_CHECKPOINT}"
            )
        return position
