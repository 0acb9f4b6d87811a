"""The pipelines, as functions and as commands; and the demo's own account."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

import queueduct
from queueduct.cli import main
from queueduct.spark.address import Address
from queueduct.spark.pipelines import aggregate, archive
from queueduct.spark.pipelines.progress import Progress, fields_of
from queueduct.spark.pipelines.runner import cause, run
from queueduct.spark.times import duration
from tests.spark.rows import TICK, check_each_once, numbered, parquet_numbers
from tests.support.deadline import until


def test_archive_writes_every_item_once_and_goes_on_where_it_stopped(spark, ticks, tmp_path):
    ticks.put_many(numbered(0, 3000))
    assert archive(spark, "ticks", tmp_path / "lake", available_now=True).awaitTermination(200)
    ticks.put_many(numbered(3000, 4000))
    assert archive(spark, "ticks", tmp_path / "lake", available_now=True).awaitTermination(200)
    check_each_once(parquet_numbers(tmp_path / "lake"), 4000)
    read = spark.read.parquet(str(tmp_path / "lake"))
    assert read.count() == 4000, "the checkpoint beside the files does not disturb who reads them"


def test_an_archive_of_a_queue_that_forgets_goes_through_a_spool(spark, tmp_path):
    lake = tmp_path / "lake"
    with queueduct.BoundedQueue.create("jobs", 4096, item=TICK) as jobs:
        jobs.put_many(numbered(0, 3000))
        assert archive(spark, "jobs", lake, available_now=True).awaitTermination(200)
        jobs.put_many(numbered(3000, 4000))
        assert archive(spark, "jobs", lake, available_now=True).awaitTermination(200)
        assert (lake / "_checkpoint.spool" / "jobs.spool").exists()
    check_each_once(parquet_numbers(lake), 4000)
    assert spark.read.parquet(str(lake)).count() == 4000, "the spool does not disturb who reads the files either"


def test_an_archive_ends_after_a_shutdown_when_all_is_archived(spark, tmp_path):
    lake = tmp_path / "lake"
    with queueduct.BoundedQueue.create("jobs", 4096, item=TICK) as jobs:
        jobs.put_many(numbered(0, 3000))
        jobs.shutdown()
        options = {"maxRowsPerTrigger": 1000}
        summary = run(
            spark,
            lambda: archive(spark, "jobs", lake, options=options),
            Address("jobs"),
            "archive",
            Console(quiet=True),
            str(lake / "_checkpoint.spool"),
        )
    assert (summary.rows, summary.batches, summary.lag, summary.position) == (3000, 3, 0, 3000)
    assert summary.ended == "the queue was shut down, and everything in it is done"
    check_each_once(parquet_numbers(lake), 3000)


def test_archive_makes_a_directory_for_each_value(spark, ticks, tmp_path):
    ticks.put_many(numbered(0, 30))
    query = archive(spark, "ticks", tmp_path / "lake", available_now=True, partition_by=["sym"])
    assert query.awaitTermination(200)
    assert {path.name for path in (tmp_path / "lake").glob("sym=*")} == {"sym=ACME", "sym=BOLT", "sym=CORE"}
    with pytest.raises(ValueError, match="partition_by must name columns of the queue: symbol"):
        archive(spark, "ticks", tmp_path / "other", partition_by=["symbol"])


def test_aggregate_puts_each_window_once_into_a_queue_that_it_makes(spark, ticks, tmp_path):
    ticks.put_many(numbered(0, 6000))  # a tick a millisecond: six seconds
    query = aggregate(
        spark,
        "ticks",
        "candles",
        window="1s",
        by=["sym"],
        aggregates=["max(px) as high", "count(*) as trades", "min(number)"],
        checkpoint=tmp_path / "state",
        available_now=True,
        options={"maxRowsPerTrigger": 4000},
    )
    assert query.awaitTermination(200)
    with queueduct.EventQueue.open("candles") as candles:
        found = candles.read(0, candles.end)
    assert found.dtype.names == ("start", "sym", "high", "trades", "min_number")
    assert found.dtype["sym"] == np.dtype("S8")
    complete = numbered(0, 4000)  # the watermark is a second behind, and so is the last window
    assert len(np.unique(found[["start", "sym"]])) == len(found) >= 12
    for candle in found:
        inside = complete["ts"].astype("M8[s]") == candle["start"]
        mine = complete[inside & (complete["sym"] == candle["sym"])]
        if len(mine):
            assert (candle["trades"], candle["high"]) == (len(mine), mine["px"].max())
            assert candle["min_number"] == mine["number"].min()


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"aggregates": []}, "something to compute"),
        ({"window": "soon"}, "a number and a unit: 'soon'"),
        ({"time": "px"}, "must be a field of type M8: time=px; there is ts"),
    ],
)
def test_an_aggregate_that_cannot_be_says_why(spark, ticks, tmp_path, changed, why):
    given = {"window": "1s", "aggregates": ["max(px)"], "checkpoint": tmp_path, **changed}
    with pytest.raises(ValueError, match=why):
        aggregate(spark, "ticks", "candles", **given)


def test_durations_are_written_short():
    assert [duration(text) for text in ("1s", "500ms", "2 m")] == ["1 seconds", "500 milliseconds", "2 minutes"]
    assert duration("3 hours") == "3 hours"


def test_the_cause_of_sparks_error_is_one_line():
    text = (
        "[STREAM_FAILED] Query terminated: Traceback (most recent call last):\n"
        '  File "x.py", line 3, in partitions\n'
        "queueduct.errors.DataLost: the queue 'ticks' no longer has position 5\n"
        " SQLSTATE: 38000\n=== Streaming Query ===\nIdentifier: [id = 1]\nCurrent State: ACTIVE\n"
    )
    assert cause(text) == "the queue 'ticks' no longer has position 5"
    assert cause("[UNRESOLVED] no column x;\n'Project 'x\n") == "[UNRESOLVED] no column x;"


@pytest.mark.parametrize("command", ["archive", "aggregate", "demo"])
def test_help_has_examples_and_needs_no_spark(command, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    result = CliRunner().invoke(main, [command, "--help"])
    assert result.exit_code == 0
    assert "Example" in result.output


def test_a_missing_queue_is_one_clear_line_before_spark_is_started():
    result = CliRunner().invoke(main, ["archive", "nowhere", "--to", "lake"])
    assert result.exit_code != 0
    assert result.output.startswith("Error: ")
    assert "nowhere" in result.output


@pytest.mark.timeout(400)
def test_the_command_archives_until_ctrl_c_and_sums_up(ticks, tmp_path):
    """One process from start to end, since each start of Spark takes long."""
    ticks.put_many(numbered(0, 5000))
    program = Path(sys.executable).with_name("queueduct")
    process = subprocess.Popen(
        [program, "archive", "ticks", "--to", tmp_path / "lake", "--json", "--master", "local[1]", "--reader", "lake"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until(
        lambda: any(reader.committed == 5000 for reader in ticks.readers()) or process.poll() is not None,
        "the archive",
        300,
    )
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, without_sparks_own(err)) == (0, "")
    summary = json.loads(out)
    assert (summary["rows"], summary["lag"], summary["ended"], summary["reader"]) == (5000, 0, "stopped", "lake")
    check_each_once(parquet_numbers(tmp_path / "lake"), 5000)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", ["archive", "aggregate"])
def test_a_command_finds_its_queues_in_the_directory_that_it_is_given(ticks, tmp_path, name):
    """QUEUEDUCT_DIR names another one, with a queue of the same name."""
    ticks.put_many(numbered(9000, 9100))
    elsewhere, lake = tmp_path / "queues", tmp_path / "lake"
    given = {
        "archive": ["--to", str(lake)],
        "aggregate": ["--to", "candles", "--window", "1s", "--agg", "count(*) as n", "--checkpoint", str(lake)],
    }[name]
    with queueduct.EventQueue.create("ticks", item=TICK, directory=elsewhere) as there:
        there.put_many(numbered(0, 6000))  # a tick a millisecond: six seconds
        given += ["--directory", str(elsewhere), "--available-now", "--json", "--master", "local[1]"]
        done = subprocess.run(
            [Path(sys.executable).with_name("queueduct"), name, "ticks", *given],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert (done.returncode, without_sparks_own(done.stderr)) == (0, "")
        assert json.loads(done.stdout)["rows"] == 6000
        assert ([reader.committed for reader in there.readers()], ticks.readers()) == ([6000], [])
    if name == "archive":
        check_each_once(parquet_numbers(lake), 6000)
    else:
        with queueduct.EventQueue.open("candles", directory=elsewhere) as candles:
            counts = candles.read(0, candles.end)["n"].tolist()
        assert set(counts) == {1000}
        assert [info.name for info in queueduct.queues()] == ["ticks"]


def without_sparks_own(err: str) -> str:
    """Spark's Python daemon says so when a process that it serves has gone."""
    lines = [line for line in err.splitlines() if "pyspark" not in line and "Broken pipe" not in line]
    return "\n".join(line for line in lines if not line.startswith("Traceback"))


@pytest.mark.timeout(400)
def test_the_demo_accounts_for_every_tick_after_a_kill_of_a_producer_and_of_a_planner(spark, tmp_path):
    from queueduct.demo.flow import Demonstration, queues
    from queueduct.demo.on_spark import SparkConsumers

    console = Console(quiet=True)
    with queues() as (source, candles):
        consumers = SparkConsumers(spark, source, candles.name, tmp_path, first_batches=1)
        account = Demonstration(consumers, source, candles, tmp_path, console).run(5, 2000)
    assert account.problems == []
    assert account.rows == sum(symbol.put for symbol in account.symbols) > 40
    assert account.candles > 0
    assert account.latency_p50 > 0
    assert [name for _, name in account.killed] == ["the producer 3", "the process that plans Spark's archive"]


def test_the_progress_of_other_sources_in_the_session_is_left_alone(spark, tmp_path):
    progress = Progress(spark)
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    query = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    try:
        until(lambda: any(report.numInputRows for report in query.recentProgress), "a batch")
    finally:
        query.stop()
        progress.close()
    assert progress.settled(query) == []


@pytest.mark.parametrize("offset", [None, "", "null", "-", "none", "7", "[1]", '"x"'])
def test_an_offset_that_is_not_ours_has_no_fields(offset):
    assert fields_of(offset) == {}
    assert fields_of('{"position": 7}') == {"position": 7}
