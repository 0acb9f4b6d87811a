"""The files in which Spark queries tell of their progress. No Spark here: tests/spark has real queries."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

import queueduct
from queueduct.monitoring import Monitor
from queueduct.monitoring.pipelines import FOLDER, SILENCE_SECONDS, PipelineFile, read_pipelines


def file_of(directory: Path, *, checkpoint: str = "state") -> PipelineFile:
    return PipelineFile(directory, "ticks", "archive ticks to lake", "lake", None, checkpoint)


def change(directory: Path, **fields: object) -> None:
    (path,) = (directory / FOLDER).iterdir()
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def test_what_a_query_tells_is_seen_beside_its_queue(queue_dir):
    with queueduct.EventQueue.create("ticks", item="f8"), queueduct.EventQueue.create("candles", item="f8"):
        file = PipelineFile(queue_dir, "ticks", "aggregate ticks to candles", "candles", "candles", "state")
        file.tell(rows=10, batches=2, lag=5, position=10, reader="r")
        with Monitor() as monitor:
            snapshot = monitor.look()
    (seen,) = read_pipelines(queue_dir)
    assert (seen.queue, seen.title, seen.state, seen.pid) == (
        "ticks",
        "aggregate ticks to candles",
        "running",
        os.getpid(),
    )
    assert (seen.rows, seen.batches, seen.lag, seen.position, seen.reader, seen.ended) == (10, 2, 5, 10, "r", None)
    assert [each.pipelines for each in snapshot.queues] == [(seen,), (seen,)], "at the queue that it fills, too"


def test_the_files_are_no_queues_and_stand_in_no_queues_way(queue_dir):
    file_of(queue_dir).tell()
    assert queueduct.queues() == []
    with Monitor() as monitor:
        assert monitor.look().queues == ()


def test_a_query_that_ends_says_why_and_one_that_starts_again_takes_its_place(queue_dir):
    file_of(queue_dir).end("the queue was shut down")
    file_of(queue_dir, checkpoint="other").end("disk full", is_failure=True)
    assert [(each.state, each.ended) for each in read_pipelines(queue_dir)] == [
        ("ended", "the queue was shut down"),
        ("failed", "disk full"),
    ]
    file_of(queue_dir).tell(rows=1)
    assert sorted(each.state for each in read_pipelines(queue_dir)) == ["failed", "running"]


def test_a_query_whose_process_was_killed_is_gone(queue_dir, children):
    pid = children.fork(lambda: [file_of(queue_dir).tell(), time.sleep(60)])
    while not read_pipelines(queue_dir):
        time.sleep(0.001)
    children.kill(pid)
    assert read_pipelines(queue_dir)[0].state == "running", "another container's process cannot be seen, either"
    change(queue_dir, written=time.time() - SILENCE_SECONDS - 1)
    assert read_pipelines(queue_dir)[0].state == "gone"


def test_a_silent_query_whose_process_lives_is_running_and_another_with_its_pid_is_not_meant(queue_dir):
    file_of(queue_dir).tell()
    change(queue_dir, written=time.time() - 3600)
    assert read_pipelines(queue_dir)[0].state == "running"
    change(queue_dir, start_ticks=1)
    assert read_pipelines(queue_dir)[0].state == "gone"
    change(queue_dir, boot="00" * 16)
    assert read_pipelines(queue_dir)[0].state == "gone"


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "null", '{"version": 1}', "\x00\xff", "[" * 1000, '{"version": 2, "queue": "ticks"}']
)
def test_a_file_of_something_else_is_left_out(queue_dir, text):
    file_of(queue_dir).tell()
    (queue_dir / FOLDER / "other.json").write_text(text, encoding="latin-1")
    (queue_dir / FOLDER / "folder.json").mkdir()
    assert len(read_pipelines(queue_dir)) == 1


@pytest.mark.parametrize("field", ["rows", "pid", "written", "start_ticks", "boot", "state"])
def test_a_file_with_a_field_of_another_type_is_left_out_or_read_as_text(queue_dir, field):
    file_of(queue_dir).tell()
    change(queue_dir, **{field: ["nonsense"]})
    assert [each.queue for each in read_pipelines(queue_dir)] in ([], ["ticks"])


def test_old_files_go_when_the_next_query_starts(queue_dir):
    file_of(queue_dir).end("done")
    (path,) = (queue_dir / FOLDER).iterdir()
    os.utime(path, (time.time() - 90000,) * 2)
    file_of(queue_dir, checkpoint="other").tell()
    assert path not in (queue_dir / FOLDER).iterdir()
    assert len(read_pipelines(queue_dir)) == 1


def test_a_directory_that_cannot_be_written_stops_no_query(tmp_path):
    (tmp_path / FOLDER).write_text("a file in the way")
    file = file_of(tmp_path)
    file.tell(rows=1)
    file.end("done")
    assert read_pipelines(tmp_path) == []
