"""A stream of a queue that overwrites: what is lost is counted and reported; what comes is in order, and comes once."""

import json
import multiprocessing

import numpy as np

import queueduct
from tests.spark.rows import TICK, check_each_once, numbered, parquet_numbers
from tests.spark.test_stream import Stream
from tests.support.deadline import until

WRITERS = 4
ROWS = 50_000  # of each writer


def write_all(number):
    """As fast as it goes, whoever reads."""
    with queueduct.open("ticks") as queue:
        for start in range(number * ROWS, (number + 1) * ROWS, 1000):
            queue.put_many(numbered(start, start + 1000))


def test_writers_lap_a_running_query_and_every_loss_is_counted(spark, tmp_path):
    """Allowed: any rows are lost. Not: one comes twice, or out of its writer's order, or is missing uncounted."""
    stream = Stream(spark, tmp_path, spoolDir=str(tmp_path / "spool"))
    context = multiprocessing.get_context("spawn")
    with queueduct.OverwritingQueue.create("ticks", 4096, item=TICK) as ticks:
        query = stream.start(available_now=False, maxRowsPerTrigger=2000)
        ticks.put_many(numbered(WRITERS * ROWS, WRITERS * ROWS + 10))
        until(lambda: query.recentProgress or query.exception(), "the first batch")
        writers = [context.Process(target=write_all, args=(number,)) for number in range(WRITERS)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
            assert writer.exitcode == 0
        query.processAllAvailable()
        query.stop()
        stats = ticks.stats()
        reported = json.loads(query.recentProgress[-1].sources[0].latestOffset)["lost"]
    found, positions = stream.numbers(), parquet_numbers(stream.out, "position")
    assert len(np.unique(positions)) == len(positions), "none twice"
    in_order = found[np.argsort(positions)]
    for number in range(WRITERS):
        of_writer = in_order[in_order // ROWS == number]
        assert np.all(np.diff(of_writer) > 0), "in its writer's order, and none twice"
    assert stats.overwritten > 0, "they have lapped it"
    assert (stats.torn, stats.lost_with_consumer, stats.discarded, stats.size) == (0, 0, 0, 0)
    assert len(found) + reported == stats.puts == WRITERS * ROWS + 10
    assert reported == stats.overwritten


def test_an_overwriting_sink_keeps_the_latest_rows(spark, ticks, tmp_path):
    """At least once: it has no put_once."""
    ticks.subscribe("keeper", start="earliest").close()
    ticks.put_many(numbered(0, 3000))
    stream = Stream(spark, tmp_path)
    with queueduct.OverwritingQueue.create("out", 1024, item=TICK) as out:
        batch = spark.read.format("queueduct").option("queue", "ticks").load().where("number < 100")
        batch.write.format("queueduct").option("queue", "out").mode("append").save()
        check_each_once(out.get_many(9999)["number"], 100)

        def run():
            rows = spark.readStream.format("queueduct").option("queue", "ticks").load()
            writer = rows.writeStream.format("queueduct").option("queue", "out")
            writer = writer.option("checkpointLocation", str(stream.checkpoint)).trigger(availableNow=True)
            assert writer.start().awaitTermination(200)

        run()
        assert sorted(out.get_many(9999)["number"].tolist()) == list(range(3000 - 1024, 3000))
        assert (out.stats().puts, out.stats().overwritten) == (3100, 3000 - 1024)
        stream.forget_last_commit()
        run()
        assert out.stats().puts == 6100
