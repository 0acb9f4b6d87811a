"""Streams of queues whose gets take items away: each row once through restarts and replays, and clear errors."""

import json
import shutil

import numpy as np
import pytest
from pyspark.errors import PySparkException, StreamingQueryException

import queueduct
from tests.spark.rows import TICK, check_each_once, numbered, parquet_numbers
from tests.spark.test_stream import Stream, fails
from tests.support.deadline import until

# Each kind that is drained: how a queue of ticks of that kind is made.
MAKERS = {
    "bounded": lambda: queueduct.BoundedQueue.create("ticks", 32_768, item=TICK),
    "growing": lambda: queueduct.GrowingQueue.create("ticks", item=TICK),
    "slots": lambda: queueduct.SlotQueue.create("ticks", 30_000, item=TICK),
    "overwriting": lambda: queueduct.OverwritingQueue.create("ticks", 32_768, item=TICK),
}
# What is a kind's own is shown without Spark, in test_spool_steps.py, and of losses in test_overwritten.py: to Spark
# they are alike, so in the short form one of them stands for all, but for one test of each.
SHORT_AND_LONG = ["bounded", *(pytest.param(kind, marks=pytest.mark.long) for kind in MAKERS if kind != "bounded")]
of_every_kind = pytest.mark.parametrize("ticks", MAKERS, indirect=True)


@pytest.fixture(params=SHORT_AND_LONG)
def ticks(request):
    """An empty queue of ticks of each kind that is drained."""
    with MAKERS[request.param]() as queue:
        yield queue


@pytest.fixture
def stream(spark, tmp_path):
    return Stream(spark, tmp_path, spoolDir=str(tmp_path / "spool"))


@of_every_kind
def test_every_row_comes_once_over_batches_and_restarts(stream, ticks):
    ticks.put_many(numbered(0, 10_000))
    query = stream.run(maxRowsPerTrigger=3000)
    assert [progress.numInputRows for progress in query.recentProgress] == [3000, 3000, 3000, 1000]
    check_each_once(stream.numbers(), 10_000)
    positions = parquet_numbers(stream.out, "position")
    assert (np.diff(positions[np.argsort(stream.numbers())]) > 0).all(), "it is the queue's position"
    assert ticks.empty()
    ticks.put_many(numbered(10_000, 15_000))
    stream.run(maxRowsPerTrigger=3000)
    check_each_once(stream.numbers(), 15_000)


def test_available_now_takes_what_was_there_and_leaves_the_rest(stream, ticks):
    ticks.put_many(numbered(0, 100))
    query = stream.start(maxRowsPerTrigger=40)
    until(lambda: query.recentProgress or query.exception(), "the first batch")
    ticks.put_many(numbered(100, 200))
    assert query.awaitTermination(200)
    check_each_once(stream.numbers(), 100)
    assert ticks.qsize() == 100


def test_a_batch_that_spark_repeats_reads_the_same_rows(stream, ticks):
    """As if the driver had been killed after it planned the batch, and before it wrote it."""
    ticks.put_many(numbered(0, 1000))
    query = stream.start(available_now=False, maxRowsPerTrigger=400)
    query.processAllAvailable()
    query.stop()
    until(lambda: all(not reader.is_attached for reader in spool_of(stream).readers()), "the end of its process")
    last = max(int(path.name) for path in (stream.checkpoint / "offsets").iterdir() if path.name.isdigit())
    assert last == 2
    ticks.put_many(numbered(1000, 1500))
    stream.run(maxRowsPerTrigger=400)
    check_each_once(stream.numbers(), 1500)


def spool_of(stream):
    return queueduct.EventQueue.open("ticks.spool", directory=stream.options["spoolDir"])


def test_what_is_done_is_freed_from_the_spool(stream, ticks):
    ticks.put_many(numbered(0, 30_000))
    stream.run(maxRowsPerTrigger=10_000)
    log = spool_of(stream)
    assert log.end == 30_000
    assert {reader.committed for reader in log.readers()} == {30_000}


def test_a_spool_that_is_full_slows_the_query_and_loses_nothing(stream, ticks):
    query = stream.start(available_now=False, spoolMaxBytes=4000 * TICK.itemsize)
    for start in range(0, 20_000, 500):
        ticks.put_many(numbered(start, start + 500), timeout=60)
    query.processAllAvailable()
    query.stop()
    check_each_once(stream.numbers(), 20_000)


def test_two_queries_share_the_items_of_a_queue(spark, tmp_path, ticks):
    one = Stream(spark, tmp_path / "one", spoolDir=str(tmp_path / "spool one"))
    two = Stream(spark, tmp_path / "two", spoolDir=str(tmp_path / "spool two"))
    ticks.put_many(numbered(0, 20_000))
    queries = [each.start(available_now=False, maxRowsPerTrigger=1000) for each in (one, two)]
    until(lambda: ticks.empty() or any(query.exception() for query in queries), "all are taken")
    for query in queries:
        query.processAllAvailable()
        query.stop()
    check_each_once(np.concatenate([one.numbers(), two.numbers()]), 20_000)


def test_the_lag_and_the_losses_are_in_the_progress(stream, ticks):
    ticks.put_many(numbered(0, 5000))
    query = stream.run(maxRowsPerTrigger=1000)
    first, last = query.recentProgress[0].sources[0], query.recentProgress[-1].sources[0]
    assert json.loads(first.endOffset)["position"] == 1000
    assert json.loads(first.latestOffset)["position"] == 5000
    assert json.loads(last.latestOffset)["lost"] == 0


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


@pytest.mark.parametrize("ticks", ["bounded"], indirect=True)
def test_a_queue_that_is_created_anew_ends_the_query_and_its_spool_with_an_error(stream, ticks):
    ticks.put_many(numbered(0, 1000))
    query = stream.start(available_now=False)
    query.processAllAvailable()
    ticks.unlink()
    with MAKERS["bounded"]() as other:
        other.put_many(numbered(0, 2000))
        fails(query, "'ticks'", "created anew", "new checkpoint")
        fails(stream.start(), "'ticks'", "another queue")
        shutil.rmtree(stream.checkpoint)
        fails(stream.start(), "the spool", "belongs to another queue", "spoolDir")
        assert other.qsize() == 2000, "and nothing was taken from it"


def test_a_lost_checkpoint_starts_anew_with_what_the_spool_still_has(stream, ticks):
    ticks.put_many(numbered(0, 1000))
    stream.run()
    shutil.rmtree(stream.checkpoint)
    ticks.put_many(numbered(1000, 1500))
    shutil.rmtree(stream.out)
    stream.run()
    check_each_once(stream.numbers(), 1500, start=1000)


def test_a_spool_whose_queue_is_gone_can_still_be_read(stream, ticks, spark):
    ticks.put_many(numbered(0, 1000))
    stream.run(maxRowsPerTrigger=600)
    ticks.unlink()
    options = {"queue": "ticks.spool", "directory": stream.options["spoolDir"], "positionColumn": "spooled"}
    frame = spark.read.format("queueduct").options(**options).load()
    assert frame.columns == ["position", "item", "spooled"]
    found = [(row.position, row.number) for row in frame.select("position", "item.number").collect()]
    assert found
    assert sorted(found) == sorted(found, key=lambda each: each[1]), "they rise together"


def test_a_batch_read_is_refused_and_takes_nothing(spark, ticks):
    ticks.put_many(numbered(0, 10))
    with pytest.raises(PySparkException) as caught:
        spark.read.format("queueduct").option("queue", "ticks").load().count()
    for part in ("may be run more than once", "readStream", "availableNow"):
        assert part in str(caught.value)
    assert ticks.qsize() == 10


@pytest.mark.parametrize(
    ("kind", "slot_bytes"),
    [(queueduct.BoundedQueue, None), pytest.param(queueduct.SlotQueue, 100_000, marks=pytest.mark.long)],
    ids=["bounded", "slots"],
)
def test_byte_strings_go_through_a_spool_as_they_are(spark, tmp_path, kind, slot_bytes):
    lines = [b"", b"\xff\0", b"x" * 100_000, b"end"]
    with kind.create("lines", 4096 if slot_bytes is None else 8, slot_bytes=slot_bytes) as queue:
        queue.put_many(lines)
        rows = spark.readStream.format("queueduct").options(queue="lines", spoolDir=str(tmp_path / "spool")).load()
        found = []

        def note(frame, _):
            found.extend((row.position, bytes(row.value)) for row in frame.collect())

        writer = rows.writeStream.foreachBatch(note).option("checkpointLocation", str(tmp_path / "checkpoint"))
        assert writer.trigger(availableNow=True).start().awaitTermination(200)
    assert [value for _, value in sorted(found)] == lines


def test_a_missing_queue_is_named_with_its_host(spark, tmp_path):
    with pytest.raises((PySparkException, StreamingQueryException), match="looked for on host"):
        Stream(spark, tmp_path).start()
