"""Many records of four producers at once, streamed to Parquet: each exactly once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import queueduct
from tests.spark.rows import TICK, check_each_once, parquet_numbers
from tests.support.children import environment

HERE = Path(__file__).parent
PRODUCERS = 4


@pytest.mark.timeout(900)
def test_every_record_of_four_producers_is_in_parquet_once(spark, tmp_path, is_long):
    rows = 1_250_000 if is_long else 50_000  # of each
    with queueduct.EventQueue.create("ticks", item=TICK, max_bytes=32 << 20) as queue:
        stream = spark.readStream.format("queueduct").options(queue="ticks", reader="lake").load()
        writer = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.start(str(tmp_path / "lake"))
        producers = [
            subprocess.Popen([sys.executable, HERE / "producer.py", "ticks", str(number), str(rows)], env=environment())
            for number in range(PRODUCERS)
        ]
        for producer in producers:
            assert producer.wait(600) == 0
        assert queue.end == PRODUCERS * rows
        query.processAllAvailable()
        query.stop()
        assert queue.stats().used_bytes <= 32 << 20
    check_each_once(parquet_numbers(tmp_path / "lake"), PRODUCERS * rows)
