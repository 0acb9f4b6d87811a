"""Streams: every row exactly once through restarts and replays, and clear errors for what cannot go on."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from pyspark.errors import StreamingQueryException

import queueduct
from tests.spark.rows import TICK, check_each_once, numbered, parquet_numbers
from tests.support.deadline import until


class Stream:
    """One query from the queue of ticks to Parquet, as often as it is started."""

    def __init__(self, spark, folder, **options):
        self.spark = spark
        self.out = folder / "out"
        self.checkpoint = folder / "checkpoint"
        self.options = options

    def start(self, available_now=True, **options):
        rows = self.spark.readStream.format("queueduct").options(queue="ticks", **self.options, **options).load()
        writer = rows.writeStream.format("parquet").option("checkpointLocation", str(self.checkpoint))
        if available_now:
            writer = writer.trigger(availableNow=True)
        return writer.start(str(self.out))

    def run(self, **options):
        query = self.start(**options)
        assert query.awaitTermination(200)
        return query

    def numbers(self):
        return parquet_numbers(self.out)

    def forget_last_commit(self):
        """As if the driver had been killed just before: Spark does its last batch again.

        A batch whose commit is in the log is done with, so a test that takes it back must keep the items itself.
        """
        last = max((path for path in (self.checkpoint / "commits").iterdir() if path.name.isdigit()), key=batch_of)
        last.unlink()
        last.with_name(f".{last.name}.crc").unlink(missing_ok=True)
        return batch_of(last)


def batch_of(path: Path) -> int:
    return int(path.name)


@pytest.fixture
def stream(spark, tmp_path):
    return Stream(spark, tmp_path)


def fails(query, *parts):
    with pytest.raises(StreamingQueryException) as caught:
        query.awaitTermination(200)
    for part in parts:
        assert part in str(caught.value)


def test_every_row_comes_once_over_batches_and_restarts(stream, ticks):
    ticks.put_many(numbered(0, 10_000))
    query = stream.run(maxRowsPerTrigger=3000)
    assert [progress.numInputRows for progress in query.recentProgress] == [3000, 3000, 3000, 1000]
    check_each_once(stream.numbers(), 10_000)
    ticks.put_many(numbered(10_000, 15_000))
    stream.run(maxRowsPerTrigger=3000)
    check_each_once(stream.numbers(), 15_000)


def test_available_now_ends_where_the_queue_ended_when_it_began(stream, ticks):
    ticks.put_many(numbered(0, 100))
    query = stream.start(maxRowsPerTrigger=40)
    until(lambda: query.recentProgress or query.exception(), "the first batch")
    ticks.put_many(numbered(100, 200))
    assert query.awaitTermination(200)
    check_each_once(stream.numbers(), 100)


def test_a_replayed_batch_reads_the_same_rows(spark, ticks, tmp_path):
    """The noop sink does not keep what it got, so the batches are compared by foreachBatch."""
    seen = {}

    def note(frame, batch):
        seen.setdefault(batch, []).append(sorted(row.number for row in frame.select("number").collect()))

    ticks.put_many(numbered(0, 1000))
    ticks.subscribe("keeper", start="earliest").close()
    stream = Stream(spark, tmp_path)
    for _ in range(2):
        rows = spark.readStream.format("queueduct").options(queue="ticks", maxRowsPerTrigger=400).load()
        writer = rows.writeStream.foreachBatch(note).option("checkpointLocation", str(stream.checkpoint))
        assert writer.trigger(availableNow=True).start().awaitTermination(200)
        last = stream.forget_last_commit()
        ticks.put_many(numbered(1000, 1001))
    assert seen[last - 1][0] == list(range(800, 1000))
    assert seen[last - 1][0] == seen[last - 1][1]


def test_what_is_done_is_freed(stream, ticks):
    ticks.put_many(numbered(0, 60_000))
    stream.run(maxRowsPerTrigger=20_000)
    (reader,) = ticks.readers()
    assert reader.committed == 60_000
    until(lambda: not ticks.readers()[0].is_attached, "the end of the query's process")


def test_a_batch_that_takes_all_there_is_leaves_room_for_more(stream, ticks):
    """A queue that is full to the last byte of a batch that is done must not wait for the next batch to free it."""
    ticks.unlink()
    size = 2000 * TICK.itemsize
    with queueduct.EventQueue.create("ticks", item=TICK, max_bytes=size, chunk_bytes=size // 8) as small:
        query = stream.start(available_now=False)
        for start in range(0, 20_000, 500):
            small.put_many(numbered(start, start + 500), timeout=60)
        query.processAllAvailable()
        query.stop()
        check_each_once(stream.numbers(), 20_000)


def test_a_reader_is_named_by_the_checkpoint_or_by_the_option(stream, spark, tmp_path, ticks):
    ticks.put_many(numbered(0, 10))
    stream.run()
    stream.run()
    (name,) = (reader.name for reader in ticks.readers())
    assert name.startswith("spark-")
    named = Stream(spark, tmp_path / "named", reader="archive")
    named.run()
    assert {reader.name for reader in ticks.readers()} == {name, "archive"}


def test_a_named_reader_goes_on_where_it_was_even_with_a_new_checkpoint(spark, tmp_path, ticks):
    ticks.put_many(numbered(0, 100))
    with ticks.subscribe("archive", start="earliest") as reader:
        reader.commit(60)
    stream = Stream(spark, tmp_path, reader="archive")
    stream.run()
    check_each_once(stream.numbers(), 100, start=60)


def test_a_reader_that_another_query_holds_is_a_clear_error(spark, tmp_path, ticks, monkeypatch):
    ticks.put_many(numbered(0, 100))
    with ticks.subscribe("archive", start="earliest"):
        fails(Stream(spark, tmp_path, reader="archive").start(), "'archive'", "held by another", "option reader")


@pytest.mark.parametrize(("starting", "first"), [("earliest", 0), ("latest", 100), ("70", 70)])
def test_a_new_query_starts_where_it_is_told(stream, ticks, starting, first):
    ticks.put_many(numbered(0, 100))
    query = stream.start(available_now=False, startingOffsets=starting)
    until(lambda: ticks.readers() or query.exception(), "the query holds the queue")
    ticks.put_many(numbered(100, 110))
    query.processAllAvailable()
    query.stop()
    check_each_once(stream.numbers(), 110, start=first)


@pytest.mark.parametrize("reader", [None, "archive"])
def test_the_first_batch_is_replayed_from_where_the_query_began(stream, ticks, reader):
    """Spark asks for the initial offset again, and the latest has moved by then."""
    named = {} if reader is None else {"reader": reader}
    ticks.put_many(numbered(0, 100))
    ticks.subscribe("keeper", start="earliest").close()
    query = stream.start(available_now=False, startingOffsets="latest", **named)
    until(lambda: len(ticks.readers()) == 2 or query.exception(), "the query holds the queue")
    ticks.put_many(numbered(100, 200))
    query.processAllAvailable()
    query.stop()
    stream.forget_last_commit()
    shutil.rmtree(stream.out)  # as if the batch had not been written either
    ticks.put_many(numbered(200, 300))
    stream.run(startingOffsets="latest", **named)
    check_each_once(stream.numbers(), 300, start=100)
    assert len(ticks.readers()) == 2, "and its reader is the same"


def test_the_lag_is_in_the_progress(stream, ticks):
    ticks.put_many(numbered(0, 5000))
    query = stream.run(maxRowsPerTrigger=1000)
    source = query.recentProgress[0].sources[0]
    assert json.loads(source.endOffset)["position"] == 1000
    assert json.loads(source.latestOffset)["position"] == 5000


def test_bytes_limit_a_batch_too(stream, ticks):
    ticks.put_many(numbered(0, 1000))
    query = stream.run(maxBytesPerTrigger=400 * TICK.itemsize)
    assert [progress.numInputRows for progress in query.recentProgress] == [400, 400, 200]


def test_a_queue_that_is_shut_down_is_read_to_its_end(stream, ticks):
    ticks.put_many(numbered(0, 1000))
    query = stream.start(available_now=False)
    query.processAllAvailable()
    ticks.put_many(numbered(1000, 1500))
    ticks.shutdown()
    query.processAllAvailable()
    assert query.isActive
    query.stop()
    check_each_once(stream.numbers(), 1500)


def test_a_queue_that_is_unlinked_ends_the_query_with_an_error(stream, ticks):
    ticks.put_many(numbered(0, 1000))
    query = stream.start(available_now=False)
    query.processAllAvailable()
    ticks.unlink()
    fails(query, "'ticks'", "looked for on host")


def test_a_queue_that_is_created_anew_ends_the_query_with_an_error(stream, ticks):
    ticks.put_many(numbered(0, 1000))
    query = stream.start(available_now=False)
    query.processAllAvailable()
    ticks.unlink()
    with queueduct.EventQueue.create("ticks", item=TICK) as other:
        other.put_many(numbered(0, 2000))
        fails(query, "'ticks'", "created anew", "new checkpoint")


def test_a_checkpoint_of_another_queue_is_refused(stream, ticks):
    ticks.put_many(numbered(0, 1000))
    stream.run()
    ticks.unlink()
    with queueduct.EventQueue.create("ticks", item=TICK) as other:
        other.put_many(numbered(0, 5000))
        fails(stream.start(), "the checkpoint belongs to another queue", "start with a new one")
        assert other.readers() == []


def test_a_checkpoint_older_than_what_is_kept_is_an_error_or_skipped_as_asked(stream, ticks):
    ticks.put_many(numbered(0, 10_000))
    stream.run()
    ticks.put_many(numbered(10_000, 60_000))
    ticks.keep_last(1000)
    earliest = ticks.earliest
    assert earliest > 10_000
    fails(stream.start(), "no longer has position 10000", f"earliest={earliest}", "failOnDataLoss=false")
    stream.run(failOnDataLoss="false")
    found = stream.numbers()
    check_each_once(found[found < 10_000], 10_000)
    check_each_once(found[found >= 10_000], 60_000, start=earliest)


def test_a_lost_checkpoint_starts_anew_and_reads_all_that_is_kept(stream, ticks):
    ticks.put_many(numbered(0, 1000))
    stream.run()
    shutil.rmtree(stream.checkpoint)
    shutil.rmtree(stream.out)
    stream.run()
    check_each_once(stream.numbers(), 1000)


def test_a_query_that_never_planned_a_batch_leaves_no_reader_behind(stream, ticks):
    query = stream.start(available_now=False)
    until(lambda: ticks.readers(), "the query holds the queue")
    query.stop()
    until(lambda: not ticks.readers(), "its hold is gone with its process")


def test_producers_at_work_while_the_stream_runs(stream, ticks):
    query = stream.start(available_now=False, maxRowsPerTrigger=20_000)
    for start in range(0, 50_000, 500):
        ticks.put_many(numbered(start, start + 500))
    query.processAllAvailable()
    query.stop()
    check_each_once(stream.numbers(), 50_000)
    assert np.all(np.diff(np.sort(parquet_numbers(stream.out, "position"))) == 1)
