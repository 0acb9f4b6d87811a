"""The sink: tasks stage their rows, the commit puts them, and rows that are put again are recognised and left out.

A task may run twice, and a batch may come again after a crash. So tasks only write files (``staging``), and the commit
puts the files of the attempts that Spark has chosen, in the order of the partitions, each under a sequence number of
batch and partition. The queue remembers for each producer, here the query's id, how far it has come.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from queueduct.arrow.records import chosen_columns, to_items
from queueduct.spark.address import Address
from queueduct.spark.options import SinkOptions
from queueduct.spark.write.commit import BATCH_SHIFT, Putter
from queueduct.spark.write.staging import Folder, clean_up, read_rows, staging_root, unnamed_folder

__all__ = ["BatchWriter", "Plan", "StreamWriter"]

LAST = (1 << BATCH_SHIFT) - 1  # the sequence that marks a batch as complete


@dataclass
class Staged(WriterCommitMessage):
    """The message of a task to the commit: where its rows are, and whose."""

    folder: str
    file: str
    rows: int
    partition: int
    producer: str


@dataclass(frozen=True)
class Plan:
    """A write to one queue, checked against it."""

    address: Address
    item: object
    columns: list[str]
    root: str
    options: SinkOptions

    @classmethod
    def of(cls, options: SinkOptions, columns: Sequence[str]) -> Plan:
        address = Address(options.queue, options.directory)
        with address.open() as queue:
            address = address.exactly(queue)
            chosen = chosen_columns(columns, queue.item, options.position_column)
            root = staging_root(options.staging_dir, options.queue, str(address.segment))
            return cls(address, queue.item, chosen, str(root), options)

    def stage(self, folder: Folder, batch: int, producer: str, batches: Iterator[pa.RecordBatch]) -> Staged:
        partition = task().partitionId()
        parts = (to_items(rows, self.columns, self.item) for rows in batches)
        name, rows = folder.write(batch, partition, parts)
        return Staged(str(folder.path), name, rows, partition, producer)

    def put(self, folder: Folder, batch: int, messages: Sequence[Staged], *, is_stream: bool = False) -> None:
        """Puts all files of the batch. No row of a named producer is ever put twice."""
        names = [message.file for message in sorted(messages, key=lambda message: message.partition)]
        producer, rows = messages[0].producer, 0
        with self.address.open() as queue:
            putter = Putter(queue, self.options.timeout)
            if is_stream:
                last = putter.last_sequence(producer)
                check_same_batch(str(queue.name), last, batch, sum(message.rows for message in messages), folder)
            for partition, name in enumerate(folder.begin(batch, names)):
                items = read_rows(folder.path / name, self.item)
                rows += len(items)
                if not producer:
                    putter.put(items)
                elif len(items):
                    putter.put_once(items, producer, batch << BATCH_SHIFT | partition)
            if producer:
                putter.put_once([], producer, batch << BATCH_SHIFT | LAST)
        if is_stream:
            folder.note_done(batch, rows)
        folder.finish(batch)


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes exactly once: the producer is the query, whose id is in its checkpoint."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        query = str(task().getLocalProperty("sql.streaming.queryId"))
        batch = int(str(task().getLocalProperty("streaming.sql.batchId")))
        folder = Folder(Path(self.plan.root, f"stream-{query}"))
        return self.plan.stage(folder, batch, self.plan.options.producer or query, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        staged = [message for message in messages if isinstance(message, Staged)]
        if staged:
            self.plan.put(Folder(Path(staged[0].folder)), batchId, staged, is_stream=True)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Keeps the files of a commit that was begun: the batch is repeated, and ends with them."""
        for message in messages:
            if isinstance(message, Staged) and not Path(message.folder, f"{batchId}.files").exists():
                Folder(Path(message.folder)).discard([message.file])


class BatchWriter(DataSourceArrowWriter):
    """Writes once, if it succeeds. With the caller's producer and sequence it can be repeated until it does."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.producer = plan.options.producer or ""
        clean_up(Path(plan.root))
        root = Path(plan.root)
        self.folder = Folder(root / f"producer-{self.producer}") if self.producer else unnamed_folder(root)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        return self.plan.stage(self.folder, self.plan.options.sequence, self.producer, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        staged = [message for message in messages if isinstance(message, Staged)]
        if staged:
            self.plan.put(self.folder, self.plan.options.sequence, staged)
        if not self.producer:
            self.folder.remove()

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        if not self.producer:
            self.folder.remove()


def check_same_batch(queue: str, last: int, batch: int, rows: int, folder: Folder) -> None:
    """Raises if a batch with the number of one that was put is another batch: it would be left out.

    Spark repeats only the last batch, with the same rows. A checkpoint that was restored from a copy gives other rows
    the same number.
    """
    remedy = (
        "go on with the newest checkpoint, or start with a new one from where that batch ended: option startingOffsets"
    )
    if last >> BATCH_SHIFT > batch:
        raise RuntimeError(
            f"the checkpoint is older than what the query has put: it comes with batch {batch}, and the queue "
            f"{queue!r} has its batches up to {last >> BATCH_SHIFT}; {remedy}"
        )
    done = folder.rows_done(batch) if last == batch << BATCH_SHIFT | LAST else None
    if done is not None and done != rows:
        raise RuntimeError(
            f"a batch that comes again must have the rows that it had: batch {batch} was put into the queue {queue!r} "
            f"with {done} rows, and comes with {rows}: the checkpoint is older than that; {remedy}; if it is the "
            f"query whose rows differ from run to run, remove {folder.done_note(batch)}, and those that were put stay"
        )


def task() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise RuntimeError("rows are staged by Spark's tasks, and this is none")
    return context
