"""Batch reads: the right rows, in parallel, of the right range, and clear errors."""

import numpy as np
import pytest
from pyspark.errors import PySparkException

import queueduct
from tests.spark.rows import TICK, check_each_once, numbered
from tests.spark.test_types import TYPES, records_of


def load(spark, queue="ticks", **options):
    return spark.read.format("queueduct").option("queue", queue).options(**options).load()


def numbers(frame):
    return np.array([row.number for row in frame.select("number").collect()])


def test_every_row_comes_once_with_its_position_and_without_registration(spark, ticks):
    ticks.put_many(numbered(0, 100_000))
    frame = load(spark)
    assert frame.dtypes == [
        ("sym", "string"),
        ("px", "double"),
        ("ts", "timestamp"),
        ("number", "bigint"),
        ("position", "bigint"),
    ]
    assert frame.rdd.getNumPartitions() == min(4, 2) or frame.rdd.getNumPartitions() > 1
    table = frame.toArrow()
    check_each_once(table["number"].to_numpy(), 100_000)
    assert table["position"].to_pylist() == table["number"].to_pylist()
    assert table.slice(99_999).to_pylist()[0]["sym"] == numbered(99_999, 100_000)["sym"][0].decode()


def test_a_range_of_positions_is_cut_into_the_partitions_that_were_asked_for(spark, ticks):
    ticks.put_many(numbered(0, 1000))
    frame = load(spark, startPosition=100, endPosition=200, partitions=7)
    assert frame.rdd.getNumPartitions() == 7
    check_each_once(numbers(frame), 200, start=100)
    check_each_once(numbers(load(spark, startingOffsets=990)), 1000, start=990)


def test_a_filter_of_one_action_does_not_stick_to_the_next(spark, ticks):
    ticks.put_many(numbered(0, 1000))
    frame = load(spark)
    assert frame.filter("number < 10").count() == 10
    assert frame.count() == 1000


def test_an_empty_queue_is_an_empty_frame(spark, ticks):
    assert load(spark).count() == 0
    ticks.put_many(numbered(0, 10))
    assert load(spark, startPosition=5, endPosition=5).count() == 0


def test_byte_strings_are_one_binary_column(spark):
    with queueduct.EventQueue.create("lines") as queue:
        queue.put_many([b"", b"\xff\0", b"x" * 100_000])
        rows = load(spark, "lines").orderBy("position").collect()
    assert [bytes(row.value) for row in rows] == [b"", b"\xff\0", b"x" * 100_000]


def test_every_type_passes_through_spark_and_back_into_a_queue(spark):
    fields, values = [], {}
    for index, (dtype, some, _) in enumerate(TYPES.values()):
        records = records_of(dtype, some)
        fields.append((f"f{index}", records.dtype["x"]))
        values[f"f{index}"] = records["x"]
    every = np.zeros(2, np.dtype(fields))
    for name, column in values.items():
        every[name] = column
    with (
        queueduct.EventQueue.create("from", item=every.dtype) as source,
        queueduct.EventQueue.create("to", item=every.dtype) as target,
    ):
        source.put_many(every)
        frame = load(spark, "from")
        assert [kind for _, kind in frame.dtypes[:-1]] == [spark_name for _, _, spark_name in TYPES.values()]
        frame.repartition(1).sortWithinPartitions("position").write.format("queueduct").option("queue", "to").mode(
            "append"
        ).save()
        assert target.read(0, 2).tobytes() == every.tobytes()


def fails(work, *parts):
    with pytest.raises(PySparkException) as caught:
        work()
    for part in parts:
        assert part in str(caught.value)


def test_a_missing_queue_is_named_with_its_host(spark):
    fails(lambda: load(spark, "nowhere"), "'nowhere'", "looked for on host", "option directory")


def test_unsupported_fields_are_refused_at_load_by_name(spark):
    with queueduct.EventQueue.create("waves", item=np.dtype([("ok", "i4"), ("phase", "c16")])):
        fails(lambda: load(spark, "waves"), "field 'phase'", "complex128")
    with queueduct.EventQueue.create("things", item=object):
        fails(lambda: load(spark, "things"), "object")


def test_a_schema_of_the_users_own_is_refused(spark, ticks):
    ticks.put_many(numbered(0, 3))
    reader = spark.read.format("queueduct").option("queue", "ticks").schema("sym string")
    fails(lambda: reader.load().collect(), "leave out .schema")


def test_positions_that_are_gone_are_an_error_or_left_out_as_asked(spark, ticks):
    ticks.put_many(numbered(0, 1000))
    ticks.keep_last(100)
    earliest = ticks.earliest
    assert earliest > 0
    fails(lambda: load(spark, startPosition=0).count(), "no longer has position 0", f"earliest={earliest}")
    check_each_once(numbers(load(spark, startPosition=0, failOnDataLoss="false")), 1000, start=earliest)
    check_each_once(numbers(load(spark)), 1000, start=earliest)


def test_a_range_beyond_the_end_is_an_error(spark, ticks):
    ticks.put_many(numbered(0, 10))
    fails(lambda: load(spark, endPosition=11).count(), "endPosition=11, end=10")
    fails(lambda: load(spark, startPosition=12).count(), "startPosition=12")
    fails(lambda: load(spark, startingOffsets="latest").count(), "latest")


def test_a_queue_of_another_directory_is_found_by_the_option(spark, tmp_path, monkeypatch):
    monkeypatch.setenv("QUEUEDUCT_DIR", str(tmp_path / "elsewhere"))
    with queueduct.EventQueue.create("ticks", item=TICK) as queue:
        queue.put_many(numbered(0, 10))
        monkeypatch.undo()
        check_each_once(numbers(load(spark, directory=str(tmp_path / "elsewhere"))), 10)
