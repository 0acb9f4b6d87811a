"""A log that a C++ program writes, Spark reads: the right rows, each once, also over a restart of the stream."""

from __future__ import annotations

import numpy as np
import pyarrow.dataset

from tests.spark.rows import check_each_once, numbered, parquet_numbers
from tests.support.compiled import peer, run


def test_spark_archives_what_a_cpp_program_puts(spark, ticks, tmp_path):
    for start, stop in ((0, 5000), (5000, 8000)):
        run(peer(), "put_many", "ticks", start, stop - start)
        rows = spark.readStream.format("queueduct").options(queue="ticks").load()
        lake = rows.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        assert lake.trigger(availableNow=True).start(str(tmp_path / "lake")).awaitTermination(200)
        check_each_once(parquet_numbers(tmp_path / "lake"), stop)
    files = list((tmp_path / "lake").glob("*.parquet"))
    found = pyarrow.dataset.dataset(files, format="parquet").to_table().sort_by("position")
    assert found["sym"].to_pylist() == [sym.decode() for sym in numbered(0, 8000)["sym"]]
    assert np.array_equal(found["px"].to_numpy(), numbered(0, 8000)["px"])
