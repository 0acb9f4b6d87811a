"""The stream of a queue whose gets remove items: it drains them into a spool, and reads the spool as a log.

An offset's position is one of the spool, and it has the spool's id as well. Asked for the latest offset, the reader
first drains the queue, as far as the batch may take items: so all items up to an offset are in the spool, and synced.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadLimit

from queueduct import ReaderInUse
from queueduct.segments.kinds import kind_of
from queueduct.spark.address import NEW_CHECKPOINT, Address
from queueduct.spark.options import SourceOptions
from queueduct.spark.read.drainer import LEASE_ROWS, Drainer
from queueduct.spark.read.ranges import read_range
from queueduct.spark.read.spool import READER, Spool, spool_directory, unpacked
from queueduct.spark.read.stream import Offset, StreamReader
from queueduct.spark.read.subscription import LogSubscription

__all__ = ["SpooledStreamReader"]


class SpoolSubscription(LogSubscription):
    """A query's subscription to its spool, and the queue that it drains into it."""

    def __init__(self, address: Address, options: SourceOptions) -> None:
        self.source: Any = address.open()
        directory = spool_directory(options.spool_dir, address)
        self.spool = Spool.open(address, directory, self.source.item, options.spool_max_bytes)
        super().__init__(address, replace(options, reader=READER, starting_offsets=None), self.spool.log)
        self.log_address = self.spool.address
        self.spool.note()
        try:
            self.durable = self.subscribe(READER, "earliest")  # first: drained items must be read
            self.drainer = Drainer(self.source, self.spool, self.subscribe(self.spool.drainer, "earliest"))
        except ReaderInUse as error:
            raise ReaderInUse(
                f"the spool in {directory} is filled by another query or process, and it can serve only one; "
                "stop that one, or give this query a directory of its own with the option spoolDir"
            ) from error

    def begin(self) -> tuple[int, str, str]:
        return int(self.durable.committed), READER, self.token

    @property
    def target(self) -> int:
        self.drainer.recover()
        return int(self.end + self.source.qsize())

    def drain(self, stop: int | None) -> None:
        """Drains up to position ``stop`` of the spool. Leaves items that no batch may take yet to other consumers."""
        self.drainer.drain(max(int(self.source.qsize()), LEASE_ROWS) if stop is None else stop - self.end)

    def report(self) -> dict[str, int]:
        """Returns, for the query's progress, the end with the items that still wait in the queue, and the lost ones."""
        kind = kind_of(self.source)
        return {"position": int(self.end + self.source.qsize()), "lost": kind.count_lost(self.source)}

    def hold(self, reader: str, token: str, position: int) -> int:
        earliest = super().hold(reader, token, position)
        if self.durable.committed > position:
            raise ValueError(
                f"the spool in {self.spool.directory} has been read by another query since: this checkpoint is at "
                f"position {position}, the spool at {self.durable.committed}; give each query a spoolDir of its own, "
                f"and for this one {NEW_CHECKPOINT}"
            )
        return earliest

    def leave(self) -> None:
        """Keeps the spool's readers: their items are nowhere else any more."""

    def close(self) -> None:
        self.drainer.reader.close()
        super().close()
        self.source.close()


class SpooledStreamReader(StreamReader):
    """The stream reader of a log, where the log is the spool."""

    is_available_now = False

    def subscribe(self) -> LogSubscription:
        return SpoolSubscription(self.address, self.options)

    def prepareForTriggerAvailableNow(self) -> None:
        """Does nothing yet: no item is taken before the first offset has shown that the checkpoint is this spool's."""
        self.is_available_now = True

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        position = self.position(start)
        if self.is_available_now and self.target is None:
            self.target = self.subscription.target
        latest = start
        for _ in range(2):  # the first may find the spool full, and frees the items before the start
            cast(SpoolSubscription, self.subscription).drain(self.furthest(position, limit))
            latest = super().latestOffset(start, limit)
            if latest["position"] != start["position"]:
                break
        return latest

    def initialOffset(self) -> Offset:
        if self.initial is None:
            self.initial = {**super().initialOffset(), "spool": self.spool_id()}
        return self.initial

    def spool_id(self) -> str:
        return str(self.subscription.log_address.segment)

    def position(self, offset: Offset) -> int:
        if offset["queue"] == self.address.segment and offset.get("spool") != self.spool_id():
            raise ValueError(
                f"the checkpoint's spool of the queue {self.address.name!r} is not in "
                f"{self.subscription.log_address.directory}: wanted id {offset.get('spool')}, found {self.spool_id()}; "
                f"give the spoolDir that the query was started with, or, if it is lost, {NEW_CHECKPOINT}"
            )
        return super().position(offset)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_range(partition, self.schema, may_skip=not self.options.fail_on_data_loss, unpack=unpacked)
