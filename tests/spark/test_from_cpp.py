"""A log that a C++ program writes, Spark reads: the right rows, each once, also over a restart of the stream."""

from __future__ import annotations

import numpy as np

import queueduct
from tests.spark.rows import TICK, check_each_once, numbered, parquet_numbers
from tests.support.compiled import peer, run


def test_spark_archives_what_a_cpp_program_puts(spark, spark_queue_dir, tmp_path, monkeypatch):
    monkeypatch.setenv("QUEUEDUCT_DIR", str(spark_queue_dir))
    producer = peer()
    with queueduct.EventQueue.create("ticks", item=TICK, replace=True) as log:
        run(producer, "put_many", "ticks", 0, 5000)
        rows = spark.read.format("queueduct").options(queue="ticks").load().orderBy("position").toArrow()
        assert rows["sym"].to_pylist() == [sym.decode() for sym in numbered(0, 5000)["sym"]]
        assert np.array_equal(rows["px"].to_numpy(), numbered(0, 5000)["px"])
        for stop in (5000, 8000):
            rows = spark.readStream.format("queueduct").options(queue="ticks").load()
            lake = rows.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
            query = lake.trigger(availableNow=True).start(str(tmp_path / "lake"))
            assert query.awaitTermination(200)
            check_each_once(parquet_numbers(tmp_path / "lake"), stop)
            run(producer, "put", "ticks", 5000, 3000)
        assert log.end == 11000
