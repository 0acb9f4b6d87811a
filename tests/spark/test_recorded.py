"""Spark and the recorder read each other's archives."""

import math

import pytest

import queueduct
from queueduct.recording import record, replay
from queueduct.spark.pipelines import archive
from tests.recording.ticks import MAKERS, TICK, ticks


def test_spark_reads_what_was_recorded(spark, tmp_path):
    with MAKERS["events"]() as q:
        q.put_many(ticks(300))
        record(q, tmp_path / "rec", available_now=True, rows_per_file=100)
    (tmp_path / "rec" / "_recording.tmp").write_bytes(b"no file yet")
    rows = spark.read.parquet(str(tmp_path / "rec"))
    assert rows.count() == 300
    sums = ("sum(n)", "sum(px)", "count(distinct position)", "min(sym)", "min(recorded_at) > timestamp '2026-01-01'")
    (found,) = rows.selectExpr(*sums).collect()
    assert tuple(found) == (sum(range(300)), sum(range(300)) / 4, 300, "ACME", True)


@pytest.mark.parametrize("partition_by", [(), ("sym",)])
def test_what_spark_has_archived_is_replayed(partition_by, spark, tmp_path):
    lake = tmp_path / "lake"
    with MAKERS["events"]("origin") as q, queueduct.EventQueue.create("again", item=TICK) as again:
        for first in (0, 150):
            q.put_many(ticks(150, first))
            query = archive(spark, "origin", lake, available_now=True, partition_by=partition_by)
            assert query.awaitTermination(60)
        assert replay(lake, again, speed=math.inf).rows == 300
        assert (again.read(0, 300) == ticks(300)).all()
