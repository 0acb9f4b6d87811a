"""The sink: every row once, batch or stream, whatever is repeated; back-pressure; and clear errors."""

import contextlib
import os
import shutil
import signal
import threading
import time
from math import ceil, log
from pathlib import Path

import numpy as np
import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import functions

import queueduct
from tests.spark.rows import TICK, check_each_once, numbered, queue_numbers
from tests.spark.test_stream import Stream
from tests.support.deadline import until


def frame_of(spark, rows, partitions=3):
    """Numbered ticks that Spark itself makes."""
    number = functions.col("id")
    return spark.range(0, rows, 1, partitions).select(
        functions.lit("ACME").alias("sym"),
        (number / 4).alias("px"),
        functions.timestamp_seconds(number).alias("ts"),
        number.alias("number"),
    )


def write(frame, queue="out", **options):
    frame.write.format("queueduct").option("queue", queue).options(**options).mode("append").save()


@pytest.fixture
def out():
    with queueduct.EventQueue.create("out", item=TICK) as queue:
        yield queue


class QueueStream(Stream):
    """The same stream into a queue."""

    def start(self, available_now=True, sink=None, **options):
        rows = self.spark.readStream.format("queueduct").options(queue="ticks", **self.options, **options).load()
        writer = rows.writeStream.format("queueduct").option("queue", "out").options(**(sink or {}))
        writer = writer.option("checkpointLocation", str(self.checkpoint))
        return (writer.trigger(availableNow=True) if available_now else writer).start()


@pytest.fixture
def stream(spark, tmp_path):
    return QueueStream(spark, tmp_path)


def fails(work, *parts):
    with pytest.raises(PySparkException) as caught:
        work()
    for part in parts:
        assert part in str(caught.value)


def test_a_batch_is_put_once_partition_by_partition(spark, out, tmp_path):
    write(frame_of(spark, 10_000), stagingDir=str(tmp_path))
    numbers = queue_numbers(out)
    assert numbers.tolist() == list(range(10_000)), "the partitions come in their order"
    assert out.read(5, 6)["px"][0] == 1.25
    assert list(tmp_path.rglob("*.rows")) == []


def all_of(jobs):
    return np.concatenate([jobs.get_many(4096)["number"] for _ in iter(jobs.empty, True)])


# Each kind that is consumed and has put_once, with room for so many ticks, the growing one for some more.
MAKERS = {
    "bounded": lambda room: queueduct.BoundedQueue.create("out", room, item=TICK),
    "growing": lambda room: queueduct.GrowingQueue.create(
        "out", item=TICK, first_bytes=32 * TICK.itemsize, steps=1 + ceil(log(room / 32, 4))
    ),
    "slots": lambda room: queueduct.SlotQueue.create("out", room, item=TICK),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_a_queue_that_is_consumed_takes_batches_and_streams_too(spark, ticks, stream, kind):
    with MAKERS[kind](4096) as jobs:
        write(frame_of(spark, 1000))
        check_each_once(all_of(jobs), 1000)
        ticks.put_many(numbered(0, 2000))
        ticks.subscribe("keeper", start="earliest").close()
        stream.run()
        stream.forget_last_commit()
        stream.run()
        check_each_once(all_of(jobs), 2000)


@pytest.mark.long
@pytest.mark.parametrize("kind", MAKERS)
def test_a_batch_that_no_room_was_left_for_goes_on_where_it_stopped(ticks, stream, kind):
    ticks.put_many(numbered(0, 2500))
    with MAKERS[kind](512) as jobs:
        found, is_done = [], False
        while not is_done:
            partitions = 2 + len(found) % 2
            query = stream.start(partitions=partitions, sink={"timeout": 1})
            try:
                is_done = query.awaitTermination(200)
            except StreamingQueryException as error:
                assert "no item was taken for 1 s" in str(error)
            found.append(all_of(jobs))
        assert len(found) > 2, "there was no room for all at once"
        check_each_once(np.concatenate(found), 2500)


def committers(queue_dir):
    """The processes that Spark has put at the work of a commit: they have the queue open, as this one has."""
    found = []
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            if f"{queue_dir}/out" in maps.read_text() and int(maps.parent.name) != os.getpid():
                found.append(int(maps.parent.name))
    return found


@pytest.mark.parametrize("kind", [pytest.param("bounded", marks=pytest.mark.long), "growing", "slots"])
def test_a_commit_that_is_killed_half_way_is_ended_by_the_next_one(ticks, stream, kind, queue_dir):
    """It waits for room with a part of its rows in the queue when it is killed; the next one has other partitions."""
    ticks.put_many(numbered(0, 2500))
    with MAKERS[kind](512) as jobs:
        query = stream.start(available_now=False, partitions=2)
        until(lambda: jobs.full() and committers(queue_dir), "a full queue", seconds=120)
        for pid in committers(queue_dir):
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(StreamingQueryException):
            query.awaitTermination(200)
        found = [all_of(jobs)]
        assert 0 < len(found[0]) < 2500
        thread = threading.Thread(target=collect, args=(jobs, found))
        thread.start()
        try:
            stream.run(partitions=3)
        finally:
            jobs.shutdown()
            thread.join()
        check_each_once(np.concatenate(found), 2500)


def collect(jobs, found):
    """All that comes until the queue is shut down, also what should not."""
    with contextlib.suppress(queueduct.ShutDown):
        while True:
            found.append(jobs.get_many(100)["number"])


def test_frames_go_from_slots_to_slots_as_columns_of_arrays(spark, tmp_path):
    frame = np.dtype(("f4", (4, 5)))
    frames = np.arange(60 * 20, dtype="f4").reshape(60, 4, 5)
    with (
        queueduct.SlotQueue.create("ticks", 64, item=frame) as camera,
        queueduct.SlotQueue.create("out", 64, item=frame) as screen,
    ):
        camera.put_many(frames)
        stream = QueueStream(spark, tmp_path, spoolDir=str(tmp_path / "spool"))
        assert spark.readStream.format("queueduct").option("queue", "ticks").load().schema.simpleString() == (
            "struct<value:array<array<float>>,position:bigint>"
        )
        stream.run(maxRowsPerTrigger=25)
        assert camera.empty()
        np.testing.assert_array_equal(screen.get_many(100), frames)
        camera.put_many(frames[:10])
        stream.run()
        np.testing.assert_array_equal(screen.get_many(100), frames[:10])


def test_byte_strings_are_put_from_binary_and_from_text(spark):
    with queueduct.EventQueue.create("lines") as lines:
        write(spark.range(3).select(functions.concat(functions.lit("ü"), "id").alias("text")), "lines")
        assert sorted(lines.read(0, 3)) == ["ü0".encode(), "ü1".encode(), "ü2".encode()]


def test_a_stream_is_put_once_over_batches_and_restarts(stream, ticks, out):
    ticks.put_many(numbered(0, 10_000))
    stream.run(maxRowsPerTrigger=3000)
    ticks.put_many(numbered(10_000, 12_000))
    stream.run(maxRowsPerTrigger=3000)
    check_each_once(queue_numbers(out), 12_000)


def test_a_batch_that_spark_repeats_is_not_put_again(stream, ticks, out):
    ticks.put_many(numbered(0, 10_000))
    ticks.subscribe("keeper", start="earliest").close()
    stream.run(maxRowsPerTrigger=3000, partitions=2)
    stream.forget_last_commit()
    stream.run(maxRowsPerTrigger=3000, partitions=3)  # and not even in other partitions
    check_each_once(queue_numbers(out), 10_000)


def test_a_batch_that_was_half_put_goes_on_where_it_stopped(stream, ticks, out):
    """Its first run is stopped by a full queue, in the middle of a partition."""
    ticks.put_many(numbered(0, 10_000))
    out.unlink()
    size = 4000 * TICK.itemsize
    with queueduct.EventQueue.create("out", item=TICK, max_bytes=size, chunk_bytes=size // 8) as small:
        reader = small.subscribe("slow", start="earliest")
        with pytest.raises(StreamingQueryException) as caught:
            stream.start(partitions=2, sink={"timeout": 1}).awaitTermination(200)
        assert "no item was taken for 1 s" in str(caught.value)
        assert 0 < small.end < 10_000
        found = []
        thread = threading.Thread(target=drain, args=(reader, found, 10_000))
        thread.start()
        stream.run(partitions=3, sink={"timeout": 30})
        thread.join()
        check_each_once(np.concatenate(found), 10_000)


def drain(reader, found, count):
    while sum(map(len, found)) < count:
        found.append(reader.get_many(1000, timeout=60)["number"])
        reader.commit()


def test_a_full_queue_slows_the_query_and_loses_nothing(stream, ticks, out):
    out.unlink()
    size = 2000 * TICK.itemsize
    ticks.put_many(numbered(0, 20_000))
    with queueduct.EventQueue.create("out", item=TICK, max_bytes=size, chunk_bytes=size // 8) as small:
        reader = small.subscribe("slow", start="earliest")
        query = stream.start(maxRowsPerTrigger=5000)
        until(lambda: small.end > 0, "the first rows")
        time.sleep(1)  # nobody takes anything: the query waits, and does not end
        assert query.isActive
        assert small.end < 5000
        found = []
        drain(reader, found, 20_000)
        assert query.awaitTermination(200)
        check_each_once(np.concatenate(found), 20_000)


def test_a_consumer_that_is_gone_is_a_clear_error_after_the_timeout(spark, out):
    out.unlink()
    size = 2000 * TICK.itemsize
    with queueduct.EventQueue.create("out", item=TICK, max_bytes=size, chunk_bytes=size // 8) as small:
        small.subscribe("gone", start="earliest").close()
        fails(lambda: write(frame_of(spark, 10_000), timeout=0.5), "'out' is full", "no item was taken for 0.5 s")


def test_a_queue_that_is_shut_down_takes_no_rows_and_says_so(spark, out):
    out.shutdown()
    fails(lambda: write(frame_of(spark, 10)), "'out' was shut down")


def test_a_write_of_a_named_producer_can_be_repeated(spark, out):
    for sequence in (1, 1, 2, 1):
        write(frame_of(spark, 100), producer="nightly", sequence=sequence)
    assert out.end == 200


def test_columns_that_are_no_fields_are_refused_before_anything_runs(spark, out):
    fails(lambda: write(frame_of(spark, 10).withColumnRenamed("px", "price")), "missing: px", "unknown: price")
    assert out.end == 0


def test_a_value_that_does_not_fit_fails_the_write_and_puts_nothing(spark, out, tmp_path):
    bad = frame_of(spark, 100).withColumn("sym", functions.expr("if(number = 77, 'much too long', sym)"))
    fails(lambda: write(bad, stagingDir=str(tmp_path)), "column 'sym'", "too long for S8")
    assert out.end == 0
    write(frame_of(spark, 10), stagingDir=str(tmp_path))
    assert list(tmp_path.rglob("*.rows")) == [], "what the failed write left is cleaned up by the next"


def test_overwriting_and_complete_output_are_refused(spark, out):
    frame = frame_of(spark, 1)
    fails(lambda: frame.write.format("queueduct").option("queue", "out").mode("overwrite").save(), "append")


def test_what_late_tasks_leave_is_removed(tmp_path):
    from queueduct.spark.write.staging import Folder, clean_up, driver, started

    pid = driver()
    over = Folder(tmp_path / f"batch-{pid}-{started(pid)}-a")
    over.write(0, 0, [numbered(0, 5)])
    over.remove()
    over.write(0, 1, [numbered(0, 5)])  # a task that ends after the abort
    dead = Folder(tmp_path / "batch-4194304-1-b")
    dead.write(0, 0, [numbered(0, 5)])
    running = Folder(tmp_path / f"batch-{pid}-{started(pid)}-c")
    running.write(0, 0, [numbered(0, 5)])
    clean_up(tmp_path)
    assert {path.parent.name for path in tmp_path.rglob("*.rows")} == {running.path.name}
    stream = Folder(tmp_path / "stream-q")
    for batch in (3, 4, 5):
        stream.write(batch, 0, [numbered(0, 5)])
    stream.finish(4)
    assert [path.name.split("-")[0] for path in stream.path.iterdir()] == ["5"]


def test_a_batch_that_was_begun_is_ended_with_the_files_it_was_begun_with(tmp_path):
    from queueduct.spark.write.staging import Folder, read_rows

    folder = Folder(tmp_path / "stream-q")
    first, _ = folder.write(7, 0, [numbered(0, 5)])
    assert folder.begin(7, [first]) == [first]
    again, _ = folder.write(7, 0, [numbered(5, 10)])
    assert folder.begin(7, [again]) == [first]
    assert read_rows(folder.path / first, TICK)["number"].tolist() == [0, 1, 2, 3, 4]
    folder.finish(7)
    assert folder.begin(7, [again]) == [again]


def test_a_checkpoint_older_than_what_was_put_is_an_error(stream, ticks, out, tmp_path):
    """Its batches have the numbers of others that are in. The remedy: a new checkpoint from where those ended."""
    ticks.subscribe("keeper", start="earliest").close()
    ticks.put_many(numbered(0, 100))
    stream.run()
    shutil.copytree(stream.checkpoint, tmp_path / "copy")
    ticks.put_many(numbered(100, 200))
    stream.run()
    ticks.put_many(numbered(200, 350))
    shutil.rmtree(stream.checkpoint)
    shutil.copytree(tmp_path / "copy", stream.checkpoint)
    with pytest.raises(StreamingQueryException) as caught:
        stream.run()
    for part in ("batch 1 was put", "with 100 rows, and comes with 250", "option startingOffsets"):
        assert part in str(caught.value)
    for name in ("0", "1", ".0.crc", ".1.crc"):  # older still: none of its batches is there
        for folder in ("offsets", "commits"):
            (stream.checkpoint / folder / name).unlink(missing_ok=True)
    with pytest.raises(StreamingQueryException) as caught:
        stream.run()
    assert "it comes with batch 0, and the queue 'out' has its batches up to 1" in str(caught.value)
    check_each_once(queue_numbers(out), 200)
    new = QueueStream(stream.spark, tmp_path / "new")
    new.run(startingOffsets="200")
    check_each_once(queue_numbers(out), 350)


def test_a_stream_has_its_query_as_its_only_producer(spark, stream, ticks, out):
    """With a name, or without a number, a second query or write would be taken for the first, and left out."""
    ticks.put_many(numbered(0, 10))
    fails(lambda: stream.run(sink={"producer": "me", "sequence": 1}), "is its query", "leave it out")
    fails(lambda: write(frame_of(spark, 10), producer="nightly"), "give sequence too")
    assert out.end == 0
    stream.run()
    shutil.rmtree(stream.checkpoint)
    stream.run()
    assert out.end == 20, "a new query is another producer: it puts what it reads"
