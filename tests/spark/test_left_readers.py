"""Durable readers stand for queries that come back: one that never committed leaves none."""

import json
import os
import signal
import time

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions
from pyspark.sql.streaming.datasource import ReadMaxRows

import queueduct
from queueduct.spark.address import Address
from queueduct.spark.convert.schema import arrow_schema
from queueduct.spark.options import SourceOptions
from queueduct.spark.read import subscription
from queueduct.spark.read.ranges import Range
from queueduct.spark.read.stream import StreamReader
from tests.spark.rows import check_each_once, numbered
from tests.spark.test_stream import Stream
from tests.support.deadline import until


def reader_of(queue, **options):
    """The stream reader, to be called as Spark calls it."""
    given = SourceOptions.of({"queue": str(queue.name), **options})
    columns = arrow_schema(queue.item, strings="string", position_column="position")
    return StreamReader(given, Address(str(queue.name)).exactly(queue), columns)


def plan(stream, rows=100):
    start = stream.initialOffset()
    end = stream.latestOffset(start, ReadMaxRows(rows))
    return start, end, stream.partitions(start, end)


def names(queue):
    return [reader.name for reader in queue.readers()]


def fail(query):
    with pytest.raises(StreamingQueryException):
        query.awaitTermination(200)


@pytest.mark.parametrize("given", [{}, {"reader": "mine"}])
def test_queries_that_fail_in_their_first_batch_leave_no_reader(spark, ticks, tmp_path, given):
    ticks.put_many(numbered(0, 100))
    for number in range(2):
        rows = spark.readStream.format("queueduct").options(queue="ticks", **given).load()
        bad = rows.select(functions.raise_error(functions.lit("no")).alias("x"))
        writer = bad.writeStream.format("noop").option("checkpointLocation", str(tmp_path / f"failed {number}"))
        fail(writer.start())
        assert (tmp_path / f"failed {number}" / "offsets" / "0").exists(), "its first batch was planned"
        until(lambda: not ticks.readers(), "its reader goes with its process")
    stream = Stream(spark, tmp_path, **given)
    stream.checkpoint = tmp_path / "failed 0"
    stream.run()
    check_each_once(stream.numbers(), 100)
    assert len(names(ticks)) == 1, "it has committed: now its reader stays"


def test_a_reader_that_was_there_before_a_query_that_fails_stays(spark, ticks, tmp_path):
    ticks.put_many(numbered(0, 100))
    ticks.subscribe("mine", start="earliest").close()
    rows = spark.readStream.format("queueduct").options(queue="ticks", reader="mine").load()
    bad = rows.select(functions.raise_error(functions.lit("no")).alias("x"))
    fail(bad.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "failed")).start())
    until(lambda: not ticks.readers()[0].is_attached, "the end of its process")
    assert names(ticks) == ["mine"]


def test_reading_a_batch_and_planning_leave_no_reader(spark, ticks):
    ticks.put_many(numbered(0, 100))
    assert spark.read.format("queueduct").option("queue", "ticks").load().count() == 100
    spark.readStream.format("queueduct").option("queue", "ticks").load().explain()
    assert names(ticks) == []


def test_a_query_killed_in_its_first_batch_finds_its_items_again(ticks, children, tmp_path):
    """Though everybody else is done with them, and the log would free them."""
    ticks.put_many(numbered(0, 60_000))

    def driver():
        start, end, _ = plan(reader_of(ticks), rows=50_000)
        (tmp_path / "offsets").write_text(json.dumps([start, end]))
        os.kill(os.getpid(), signal.SIGKILL)

    assert children.wait(children.fork(driver)) == -signal.SIGKILL
    planned = json.loads((tmp_path / "offsets").read_text())
    with ticks.subscribe("other", start="earliest") as other:
        other.commit(60_000)
    ticks.put_many(numbered(60_000, 60_001))
    again = reader_of(ticks)
    again.initialOffset()
    spans = again.partitions(*planned)
    assert (spans[0].start, spans[-1].stop) == (0, 50_000)
    assert all(isinstance(span, Range) for span in spans)
    found = sum(batch.num_rows for span in spans for batch in again.read(span))
    assert found == 50_000
    again.subscription.leave()
    again.stop()
    assert names(ticks) == ["other"], "and when it fails again in an orderly way, it leaves no reader"


@pytest.mark.parametrize("how", ["asked for more", "commit", "checkpoint"])
def test_a_reader_stays_once_its_query_is_known_to_have_committed(ticks, tmp_path, how):
    ticks.put_many(numbered(0, 1000))
    stream = reader_of(ticks, checkpointLocation=str(tmp_path))
    _, end, _ = plan(stream)
    if how == "asked for more":
        stream.latestOffset(end, ReadMaxRows(10))
    elif how == "commit":
        stream.commit(end)
    else:
        (tmp_path / "commits").mkdir()
        (tmp_path / "commits" / "0").touch()
    stream.subscription.leave()
    stream.stop()
    assert len(names(ticks)) == 1
    again = reader_of(ticks)
    again.initialOffset()
    again.partitions(end, {**end, "position": 200})
    again.subscription.leave()
    again.stop()
    assert len(names(ticks)) == 1, "a later batch that fails is not the first"


@pytest.mark.parametrize("given", [{}, {"startingOffsets": "50"}])
@pytest.mark.parametrize("name", ["mine", "spark-12345678aaaaaa-10"])
def test_a_named_reader_stays_wherever_the_query_begins(ticks, name, given):
    """The second is another query's, which this one takes over."""
    ticks.put_many(numbered(0, 100))
    ticks.subscribe(name, start=10).close()
    stream = reader_of(ticks, reader=name, **given)
    plan(stream)
    stream.subscription.leave()
    stream.stop()
    assert names(ticks) == [name]


def test_a_query_stopped_after_its_first_commit_comes_back(ticks, tmp_path, monkeypatch):
    """Its checkpoint alone told of the commit: with a long interval Spark asks for nothing more for hours."""
    ticks.put_many(numbered(0, 1000))
    stream = reader_of(ticks, checkpointLocation=str(tmp_path))
    _, end, _ = plan(stream)
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "0").touch()
    stream.subscription.leave()
    stream.stop()
    monkeypatch.setattr("queueduct.spark.read.subscription.RESTART_SECONDS", -1.0)
    other = reader_of(ticks)
    plan(other)
    assert end["reader"] in names(ticks)
    other.stop()


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_query_whose_connection_closes_leaves_unless_its_driver_is_gone(monkeypatch, is_killed):
    """Spark closes it first and sends SIGTERM then: on a busy machine the process has ended in between."""
    monkeypatch.setattr(subscription, "DRIVER_EXIT_SECONDS", 0.1)
    left = []
    subscription.leave_unless_killed(lambda: left.append(True), -1 if is_killed else os.getppid())
    assert bool(left) != is_killed


@pytest.mark.parametrize("others", [0, 3])
def test_a_query_needs_one_line_for_readers(queue_dir, others):
    with queueduct.EventQueue.create("few", item="i8", readers=others + 1) as few:
        few.put_many(range(10))
        for number in range(others):
            few.subscribe(f"other {number}", start="earliest").close()
        stream = reader_of(few)
        _, end, spans = plan(stream)
        assert [(span.start, span.stop) for span in spans] == [(0, 10)]
        assert end["reader"] in names(few)
        stream.stop()


def test_the_next_query_removes_what_killed_ones_left_an_hour_ago(ticks):
    ticks.put_many(numbered(0, 1000))
    old, young = int(time.time()) - 4000, int(time.time()) - 100
    stale, fresh, moved = f"spark-{old:08x}aaaaaa-5", f"spark-{young:08x}bbbbbb-5", f"spark-{old:08x}cccccc-5"
    held = f"spark-{old:08x}dddddd-5"
    others = ["archive", "spark-aaaaaaaaaaaa"]
    for name in (stale, fresh, moved, *others):
        ticks.subscribe(name, start=5).close()
    with ticks.subscribe(moved) as reader:
        reader.commit(6)
    with ticks.subscribe(held, start=5):
        stream = reader_of(ticks)
        _, end, _ = plan(stream)
        assert set(names(ticks)) == {fresh, moved, held, *others, end["reader"]}
        stream.stop()


def test_a_query_that_comes_back_late_finds_its_items_still(ticks):
    ticks.put_many(numbered(0, 60_000))
    name = f"spark-{int(time.time()) - 4000:08x}aaaaaa-0"
    ticks.subscribe(name, start=0).close()
    with ticks.subscribe("other", start="earliest") as other:
        other.commit(60_000)
    stream = reader_of(ticks)
    start = {**stream.initialOffset(), "reader": name, "began": {"at": 0, "as": "another"}}
    spans = stream.partitions(start, {**start, "position": 50_000})
    assert (spans[0].start, spans[-1].stop, ticks.earliest) == (0, 50_000, 0)
    stream.stop()


def test_a_crowd_of_killed_queries_does_not_keep_the_next_one_out(queue_dir):
    with queueduct.EventQueue.create("few", item="i8", readers=4) as few:
        few.put_many(range(10))
        born = int(time.time()) - 100
        for number in range(4):
            few.subscribe(f"spark-{born:08x}{number:06x}-0", start=0).close()
        stream = reader_of(few)
        plan(stream)
        assert len(few.readers()) == 1
        stream.stop()
