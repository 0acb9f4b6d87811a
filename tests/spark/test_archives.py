"""An archive and its checkpoint belong together: with another one nothing is lost in silence, and the remedies work."""

import contextlib
import json
import re
import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.datasource import ReadAllAvailable
from rich.console import Console

import queueduct
from queueduct.cli import main
from queueduct.monitoring.pipelines import read_pipelines
from queueduct.spark.address import Address
from queueduct.spark.checkpoint import HadoopDirectory, last_batch
from queueduct.spark.pipelines import archive, runner
from queueduct.spark.pipelines.lake import IN_CHECKPOINT, IN_LAKE, NotThisArchive, claim
from tests.spark.rows import TICK, check_each_once, numbered, parquet_numbers
from tests.spark.spooling import stream_of


def archived(spark, to, queue="ticks", **given):
    assert archive(spark, queue, to, available_now=True, **given).awaitTermination(200)


def recreated(first, count):
    """The queue as it is after a reboot: another one, with other items."""
    with contextlib.suppress(FileNotFoundError):
        queueduct.unlink("ticks")
    queue = queueduct.EventQueue.create("ticks", item=TICK)
    queue.put_many(numbered(first, first + count))
    return queue


def numbers_of(spark, *lakes):
    """As Spark reads them: each by its own log of files."""
    return [row.number for lake in lakes for row in spark.read.parquet(str(lake)).select("number").collect()]


def test_a_recreated_queue_is_archived_into_a_new_directory(spark, ticks, tmp_path):
    lake = tmp_path / "lake"
    ticks.put_many(numbered(0, 1000))
    archived(spark, lake)
    with recreated(1000, 500):
        with pytest.raises(StreamingQueryException, match=r"belongs to another queue.*into a new directory.*--to"):
            archive(spark, "ticks", lake, available_now=True).awaitTermination(200)
        shutil.rmtree(lake / "_checkpoint")
        with pytest.raises(NotThisArchive, match=r"its checkpoint is one that is no longer there") as caught:
            archive(spark, "ticks", lake, available_now=True)
        other = re.search(r"as in --to (\S+)", str(caught.value))[1]
        assert not Path(lake, "_checkpoint", "offsets").exists(), "and nothing was begun"
        archived(spark, other)
    check_each_once(numbers_of(spark, lake, other), 1500)


def test_archives_of_earlier_versions_go_on_and_are_refused_where_they_are_wrong(spark, ticks, tmp_path):
    lake, checkpoint = tmp_path / "lake", tmp_path / "state"
    ticks.subscribe("keeper", start="earliest").close()
    ticks.put_many(numbered(0, 1000))
    archived(spark, lake, checkpoint=checkpoint)
    (lake / IN_LAKE).unlink()
    (checkpoint / IN_CHECKPOINT).unlink()
    for name in ("0", ".0.crc"):  # killed when the batch was written, and before it was noted
        (checkpoint / "commits" / name).unlink()
    ticks.put_many(numbered(1000, 1500))
    archived(spark, lake, checkpoint=checkpoint)
    check_each_once(parquet_numbers(lake), 1500)
    assert (lake / IN_LAKE).exists()
    (lake / IN_LAKE).unlink()
    with pytest.raises(NotThisArchive, match="it has batches up to 1, and the checkpoint has done no batch"):
        archive(spark, "ticks", lake, checkpoint=tmp_path / "new", available_now=True)
    shutil.rmtree(lake)  # somebody takes the files away: the checkpoint goes on elsewhere only if it is told where
    ticks.put_many(numbered(1500, 1600))
    with pytest.raises(NotThisArchive, match="it has no batch, and the checkpoint has done batches up to 1") as caught:
        archive(spark, "ticks", lake, checkpoint=checkpoint, available_now=True)
    start = re.search(r"with --start (\d+)", str(caught.value))[1]
    given = {"checkpoint": tmp_path / "newer", "options": {"startingOffsets": start}}
    archived(spark, tmp_path / "lake-2", **given)
    check_each_once(parquet_numbers(tmp_path / "lake-2"), 1600, start=1500)


def refused(spark, to, queue="ticks", **given):
    with pytest.raises(NotThisArchive) as caught:
        archive(spark, queue, to, available_now=True, **given)
    return str(caught.value)


@pytest.mark.parametrize("harm", ["lost", "an older copy"])
def test_a_lake_of_the_same_queue_is_gone_on_behind_as_the_error_says(spark, ticks, tmp_path, harm):
    """From the earliest on, what is in the old one would be in the new one again."""
    lake, checkpoint = tmp_path / "lake", tmp_path / "lake" / "_checkpoint"
    ticks.subscribe("keeper", start="earliest").close()
    for batch in range(3):
        ticks.put_many(numbered(batch * 100, batch * 100 + 100))
        archived(spark, lake)
        if batch == 0:
            shutil.copytree(checkpoint, tmp_path / "copy")
    ticks.put_many(numbered(300, 350))
    shutil.rmtree(checkpoint)
    if harm == "an older copy":
        shutil.copytree(tmp_path / "copy", checkpoint)
    said = refused(spark, lake)
    assert f"with --start and one more than the highest position in {lake} that goes on behind it" in said
    start = 1 + spark.read.parquet(str(lake)).agg({"position": "max"}).first()[0]
    archived(spark, tmp_path / "lake-2", options={"startingOffsets": start})
    check_each_once(numbers_of(spark, lake, tmp_path / "lake-2"), 350)


def test_an_older_copy_of_a_lake_is_gone_on_behind_as_the_error_says(spark, ticks, tmp_path):
    lake, checkpoint = tmp_path / "lake", tmp_path / "state"
    ticks.subscribe("keeper", start="earliest").close()
    for batch in range(2):
        ticks.put_many(numbered(batch * 100, batch * 100 + 100))
        archived(spark, lake, checkpoint=checkpoint)
        if batch == 0:
            shutil.copytree(lake, tmp_path / "copy")
    shutil.rmtree(lake)
    shutil.copytree(tmp_path / "copy", lake)
    said = refused(spark, lake, checkpoint=checkpoint)
    start = re.search(rf"with --start (\d+) that goes on where {lake} is", said)[1]
    archived(spark, tmp_path / "lake-2", options={"startingOffsets": start})
    check_each_once(numbers_of(spark, lake, tmp_path / "lake-2"), 200)


def test_what_a_spool_holds_is_taken_along_as_the_error_says(spark, queue_dir, tmp_path):
    lake = tmp_path / "lake"
    with queueduct.BoundedQueue.create("jobs", 1024, item=TICK) as jobs:
        jobs.put_many(numbered(0, 100))
        archived(spark, lake, "jobs")
        jobs.put_many(numbered(100, 150))
        stream = stream_of(jobs, lake / "_checkpoint.spool")  # a query that was killed when it had taken these
        start = stream.initialOffset()
        stream.latestOffset(start, ReadAllAvailable())
        stream.stop()
        assert jobs.qsize() == 0
        jobs.put_many(numbered(150, 160))
        shutil.rmtree(lake / "_checkpoint")
        said = refused(spark, lake, "jobs")
        assert "--start" not in said, "which is refused for such a queue"
        source, target = re.search(r"first move (\S+) to (\S+),", said).groups()
        Path(target).parent.mkdir()
        shutil.move(source, target)
        archived(spark, re.search(r"as in --to (\S+)", said)[1], "jobs")
        check_each_once(numbers_of(spark, lake, tmp_path / "lake-2"), 160)


def made(folder, names):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).touch()


MINE, OTHER = "a" * 32, "b" * 32
STATES = [
    # batches written, done and planned; the ids of the archive and of the checkpoint; whether they belong together
    ([], [], [], None, None, True),
    ([], [], [0], None, MINE, True),  # killed in the first batch
    ([0], [], [0], MINE, MINE, True),
    ([0], [0], [0], MINE, MINE, True),
    ([0, 1, "9.compact", 10], [9, 10], [9, 10, 11], MINE, MINE, True),
    (["9.compact"], [8], [8, 9], None, None, True),
    ([], [], [], None, MINE, True),  # killed between the two files
    ([], [], [], MINE, MINE, True),
    ([], [], [], MINE, None, False),
    ([], [], [], MINE, OTHER, False),
    ([0], [0], [0], MINE, OTHER, False),
    ([0], [], [], None, None, False),  # Spark would leave out the first batch
    ([0], [], [], None, MINE, False),
    ([0, 1, 2, 3], [1], [1, 2], MINE, MINE, False),  # a copy of the checkpoint from earlier
    ([0, 1, 2], [1], [1], MINE, MINE, False),
    ([0, 1], [2], [2], MINE, MINE, False),  # or of the archive
    ([], [2], [2], None, MINE, False),
    ([0, 1, 3], [3], [3], MINE, MINE, False),  # of the archive's log a part was removed
    (["9.compact", 11], [11], [11], MINE, MINE, False),
    ([10, 11], [11], [11], MINE, MINE, False),
    ([0, 1, 2], [2], [], MINE, MINE, False),  # of the checkpoint a part was removed: Spark would begin at batch 0
    ([0, 1, 2], [2], [1], MINE, MINE, False),
    ([0, 1, 2, 3], [3], [3, 4, 5], MINE, MINE, False),  # or leave out batch 4
    ([0, 1, 2, 3, 4], [3], [3, 4, 5], MINE, MINE, False),
]


def test_an_archive_and_a_checkpoint_go_together_by_their_ids_and_their_batches(spark, tmp_path):
    for number, (written, done, planned, theirs, mine, is_right) in enumerate(STATES):
        lake, checkpoint = tmp_path / f"{number}" / "lake", tmp_path / f"{number}" / "state"
        made(lake / "_spark_metadata", map(str, written))
        made(checkpoint / "commits", map(str, done))
        made(checkpoint / "offsets", map(str, planned))
        if theirs:
            (lake / IN_LAKE).write_text(json.dumps({"id": theirs, "checkpoint": "there"}))
        if mine:
            (checkpoint / IN_CHECKPOINT).write_text(json.dumps({"id": mine, "archive": str(lake)}))
        if not is_right:
            with pytest.raises(NotThisArchive):
                claim(spark, lake, checkpoint)
            continue
        for _ in range(2):
            claim(spark, lake, checkpoint)
        assert (
            json.loads((lake / IN_LAKE).read_text())["id"] == json.loads((checkpoint / IN_CHECKPOINT).read_text())["id"]
        )


def test_a_checkpoint_belongs_to_one_archive_and_hides_no_files(spark, tmp_path):
    checkpoint = tmp_path / "state"
    claim(spark, tmp_path / "one", checkpoint)
    made(checkpoint / "offsets", ["0"])
    with pytest.raises(NotThisArchive, match=f"belongs to the archive {tmp_path / 'one'}"):
        claim(spark, tmp_path / "two", checkpoint)
    made(tmp_path / "table", ["part-0.parquet"])
    with pytest.raises(NotThisArchive, match=r"files that no archive has written, part-0\.parquet"):
        claim(spark, tmp_path / "table", tmp_path / "new")
    made(tmp_path / "lakes" / "ticks", [])
    claim(spark, f"file:{tmp_path}/lakes", tmp_path / "newer")  # a folder of archives may be one itself


@pytest.mark.parametrize("how", ["moved", "copied", "a link"])
def test_an_archive_under_a_name_that_spark_hides_is_refused(spark, ticks, tmp_path, how):
    lake, other = tmp_path / "lake", tmp_path / "other"
    ticks.put_many(numbered(0, 100))
    archived(spark, lake)
    if how == "moved":
        lake.rename(other)
    elif how == "copied":
        shutil.copytree(lake, other)
    else:
        other.symlink_to(lake)
    ticks.put_many(numbered(100, 150))
    assert f"{other} was begun as {lake}; name it so, after moving it back" in refused(spark, other)
    if how == "moved":
        other.rename(lake)
    archived(spark, f"file://{lake}/")
    check_each_once(numbers_of(spark, lake), 150)


def test_a_mark_that_is_damaged_is_refused_and_the_remedy_works(spark, tmp_path):
    lake, checkpoint = tmp_path / "lake", tmp_path / "state"
    claim(spark, lake, checkpoint)
    for mark in (lake / IN_LAKE, checkpoint / IN_CHECKPOINT):
        for text in ("", "[]"):
            mark.write_text(text)
            remedy = f"remove {IN_LAKE} .* and {IN_CHECKPOINT}"
            with pytest.raises(NotThisArchive, match=f"{mark} .* is damaged; .* {remedy}"):
                claim(spark, lake, checkpoint)
        (lake / IN_LAKE).unlink()
        (checkpoint / IN_CHECKPOINT).unlink()
        claim(spark, lake, checkpoint)


def test_of_two_who_mark_a_directory_at_once_one_is_first(spark, tmp_path):
    place = HadoopDirectory(spark, tmp_path / "lake")
    assert place.write_first("mark", "mine") == "mine"
    assert place.write_first("mark", "theirs") == "mine"
    assert place.names() == ["mark"], "nothing unfinished is left"
    assert place.text("nothing") is None
    assert last_batch(["0", "9.compact", ".10.crc", "10.tmp", "8"]) == 9


def test_a_run_that_passes_items_over_or_leaves_some_is_told(spark, ticks, tmp_path, monkeypatch):
    """As a query of one's own does it, with a new checkpoint in an old directory: without the check it goes through."""
    lake = tmp_path / "lake"

    def run():
        def start():
            return archive(spark, "ticks", lake, available_now=True)

        console = Console(quiet=True)
        return runner.run(spark, start, Address("ticks"), "archive", console, checkpoint=lake / "_checkpoint")

    ticks.put_many(numbered(0, 1000))
    first = run()
    assert (first.rows, first.lag, first.left, first.passed_over, first.position) == (1000, 0, 0, 0, 1000)
    told = read_pipelines(ticks.directory)[-1]
    assert (told.queue, told.title, told.state, told.ended) == ("ticks", "archive", "ended", first.ended)
    assert (told.rows, told.batches, told.position, told.lag) == (1000, first.batches, 1000, 0)
    assert told.reader == first.reader
    again = run()
    assert (again.rows, again.lag, again.left, again.passed_over, again.position) == (0, 0, 0, 0, 1000)
    shutil.rmtree(lake / "_checkpoint")
    monkeypatch.setattr(sys.modules["queueduct.spark.pipelines.queries"], "claim", lambda *_: None)
    lost = run()
    assert (lost.rows, lost.left, lost.passed_over) == (0, 0, 1000)


def run_to_the_end(spark, lake, **given):
    return runner.run(
        spark,
        lambda: archive(spark, "ticks", lake, **given),
        Address("ticks"),
        "archive",
        Console(quiet=True),
        checkpoint=lake / "_checkpoint",
        available_now=given.get("available_now", False),
    )


@pytest.mark.parametrize("options", [{"startingOffsets": "latest"}, {"startingOffsets": 1000}, {"reader": "mine"}])
@pytest.mark.parametrize("available_now", [False, True])
def test_a_query_that_begins_at_the_end_has_no_lag_and_ends_with_its_queue(
    spark, ticks, tmp_path, options, available_now
):
    ticks.put_many(numbered(0, 1000))
    ticks.subscribe("mine", start=1000).close()
    ticks.shutdown()
    summary = run_to_the_end(spark, tmp_path / "lake", options=options, available_now=available_now)
    assert (summary.rows, summary.position, summary.lag, summary.left, summary.passed_over) == (0, 1000, 0, 0, 0)


def test_a_query_that_fails_tells_those_who_watch_its_queue_why(spark, ticks, tmp_path):
    def fail():
        raise ValueError("no such lake")

    with pytest.raises(ValueError, match="no such lake"):
        runner.run(spark, fail, Address("ticks"), "archive", Console(quiet=True), checkpoint=tmp_path / "state")
    found = [each for each in read_pipelines(ticks.directory) if each.state == "failed"]
    assert [each.ended for each in found] == ["no such lake"]


def test_one_that_is_to_do_what_is_there_and_is_stopped_says_what_is_left(spark, ticks, tmp_path, monkeypatch):
    ticks.put_many(numbered(0, 1000))
    monkeypatch.setattr(runner, "watch", lambda *_: "stopped")
    given = {"available_now": True, "options": {"maxRowsPerTrigger": 1}}
    summary = run_to_the_end(spark, tmp_path / "lake", **given)
    assert (summary.ended, summary.passed_over) == ("stopped", 0)
    assert summary.left == 1000 - summary.position > 0


@pytest.mark.parametrize(("left", "passed_over", "code"), [(0, 0, 0), (7, 0, 1), (0, 7, 1)])
def test_the_command_fails_if_it_leaves_anything(ticks, tmp_path, monkeypatch, left, passed_over, code):
    summary = runner.Summary("ticks", 5, 1, 1.0, 5.0, 12, left, left, passed_over, "lake", "ended")
    monkeypatch.setattr(runner, "started_spark", lambda *_: contextlib.nullcontext())
    monkeypatch.setattr(runner, "run", lambda *_, **__: summary)
    result = CliRunner().invoke(main, ["archive", "ticks", "--to", str(tmp_path), "--available-now", "--json"])
    assert result.exit_code == code
    assert json.loads(result.stdout)["left"] == left
    assert ("7 " in result.stderr) == bool(code)
