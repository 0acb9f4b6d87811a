"""The commands ``record`` and ``replay``: what a person and a script see."""

import json
import os
import pty
import signal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import queueduct
from tests.recording.ticks import MAKERS, TICK, names_of, table_of, ticks
from tests.support.children import environment
from tests.support.deadline import until

QUEUEDUCT = (sys.executable, "-W", "error", "-c", "from queueduct_program import main; main()")


def run(*arguments, code=0):
    done = subprocess.run(
        [*QUEUEDUCT, *map(str, arguments)], capture_output=True, text=True, timeout=60, env=environment(), check=False
    )
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.fixture
def log():
    with queueduct.EventQueue.create("ticks", item=TICK) as q:
        q.put_many(ticks(300))
        yield q


def test_a_queue_is_recorded_and_replayed(log, tmp_path):
    folder = tmp_path / "rec"
    told = run("record", "ticks", "--to", folder, "--available-now", "--rows-per-file", "200")
    assert told.startswith(f"ticks to {folder}: 300 rows in 2 files, ")
    assert told.endswith("; everything that was there is recorded\n")
    assert told.count("\n") == 1
    told = run("replay", folder, "--to", "again", "--create", "events", "--time", "ts", "--speed", "10")
    assert told.startswith(f"{folder} to again: 300 rows, ")
    assert told.endswith(" (p99); everything is replayed\n")
    with queueduct.open("again") as again:
        assert (again.read(0, 300) == ticks(300)).all()


def test_a_script_gets_json(log, tmp_path):
    row = json.loads(run("record", "ticks", "--to", tmp_path, "--available-now", "--json"))
    assert (row["rows"], row["files"], row["position"], row["missed"]) == (300, 1, 300, 0)
    row = json.loads(run("replay", tmp_path, "--to", "ticks", "--speed", "max", "--json"))
    assert (row["rows"], row["position"], row["rounds"], log.end) == (300, 299, 1, 600)


def test_exactly_once_needs_a_name_and_repeats_nothing(log, tmp_path):
    run("record", "ticks", "--to", tmp_path, "--available-now")
    assert "go together" in run("replay", tmp_path, "--to", "ticks", "--exactly-once", code=2)
    once = ("replay", tmp_path, "--to", "jobs", "--speed", "max", "--exactly-once", "--producer", "p")
    run(*once, "--create", "growing", "--until", "100")
    assert "; 100 were in already" in run(*once)
    with queueduct.open("jobs") as jobs:
        assert [jobs.get()["n"] for _ in range(jobs.qsize())] == list(range(300))


def test_a_time_that_is_up_before_all_items_came_is_exit_code_3(log, tmp_path):
    run("record", "ticks", "--to", tmp_path, "-n", "400", "--duration", "0.2", code=3)
    assert table_of(tmp_path).num_rows == 300
    run("record", "ticks", "--to", tmp_path, "--duration", "0.2")


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (("record", "nothing", "--to", "rec"), 1, "there is no queue named 'nothing'"),
        (("record", "ticks"), 2, "Missing option '--to'"),
        (("record", "ticks", "--to", "rec", "--from", "here"), 2, "neither earliest nor latest"),
        (("record", "ticks", "--to", "rec", "--rows-per-file", "0"), 2, "is less than 1"),
        (("record", "ticks", "--to", "rec", "--position-column", "px"), 1, "--position-column"),
        (("replay", "nothing", "--to", "ticks"), 1, "an archive is a directory"),
        (("replay", ".", "--to", "ticks"), 1, "there is none in"),
        (("replay", ".", "--to", "ticks", "--speed", "0"), 2, "is no speed"),
        (("replay", ".", "--to", "ticks", "--from", "noon"), 2, "neither a position nor a time"),
        (("replay", ".", "--to", "q", "--capacity", "3"), 2, "give --create a kind"),
    ],
)
def test_what_cannot_be_done_is_one_line(arguments, code, why, log, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = run(*arguments, code=code)
    assert why in told
    assert "Traceback" not in told


@pytest.mark.parametrize(
    ("kind", "number", "more"),
    [
        ("events", signal.SIGINT, ()),
        ("bounded", signal.SIGTERM, ()),
        ("events", signal.SIGTERM, ("-n", "100")),
        ("bounded", signal.SIGINT, ("--duration", "1h")),
    ],
)
def test_a_signal_completes_the_open_file_and_is_the_end_if_there_is_no_other(kind, number, more, tmp_path):
    folder = tmp_path / "rec"
    with MAKERS[kind]("jobs") as q:
        q.put_many(ticks(60))
        process = subprocess.Popen(
            [*QUEUEDUCT, "record", "jobs", "--to", folder, *more], env=environment(), stdout=-1, stderr=-1, text=True
        )
        waiting = (lambda: q.stats().leased == 60) if kind == "bounded" else (lambda: q.stats().items_got == 60)
        until(waiting, "the recorder has taken the items")
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (128 + number if more else 0, "")
        assert out.endswith("; stopped\n")
        assert (q.qsize() if kind == "bounded" else q.readers()[0].lag) == 0
    assert table_of(folder)["n"].to_pylist() == list(range(60))


def test_a_signal_ends_a_replay_between_items(log, tmp_path):
    run("record", "ticks", "--to", tmp_path, "--available-now")
    again = queueduct.EventQueue.create("again", item=TICK)
    process = subprocess.Popen(
        [*QUEUEDUCT, "replay", tmp_path, "--to", "again", "--time", "ts", "--speed", "0.01"],
        env=environment(), stdout=-1, stderr=-1, text=True,
    )  # fmt: skip
    until(lambda: again.end, "the replay has begun")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "")
    assert out.endswith("; stopped\n")
    assert 0 < again.end < 300


def test_in_a_terminal_a_line_tells_of_the_progress(log, tmp_path):
    master, terminal = pty.openpty()
    process = subprocess.Popen(
        [*QUEUEDUCT, "record", "ticks", "--to", tmp_path, "--duration", "1"],
        env=environment(), stdout=-1, stderr=terminal, text=True,
    )  # fmt: skip
    os.close(terminal)
    out, _ = process.communicate(timeout=60)
    told = os.read(master, 1 << 16).decode()
    os.close(master)
    assert f"\r\x1b[Kticks to {tmp_path}: 300 rows, " in told
    assert "0 to go; Ctrl-C ends it" in told
    assert told.endswith("\r\x1b[K")
    assert "300 rows in 1 files" in out


def test_of_two_recorders_the_second_says_what_to_do(log, tmp_path):
    first = subprocess.Popen([*QUEUEDUCT, "record", "ticks", "--to", tmp_path], env=environment(), stdout=-1)
    until(lambda: log.readers(), "the first recorder is there")
    assert "record into another directory" in run("record", "ticks", "--to", tmp_path, code=1)
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=60)
    assert first.returncode == 0


def test_an_archive_without_the_items_type_wants_a_queue(tmp_path):
    pq.write_table(pa.table({"value": [1.5], "position": [0]}), tmp_path / "part-0.parquet")
    assert "create the queue first" in run("replay", tmp_path, "--to", "q", "--create", "events", code=1)
    with queueduct.EventQueue.create("q", item="f8") as q:
        run("replay", tmp_path, "--to", "q", "--speed", "max")
        assert np.array_equal(q.read(0, 1), [1.5])
    assert names_of(tmp_path) == ["part-0.parquet"]
