"""A history on disk: what its rows become, when it has its name, and what a kill or a full disk leaves."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import queueduct
from queueduct.verification.history import recorder
from queueduct.verification.history._rows import MOST_ITEMS, MOST_TICKETS, RowFile, RowReader, read_header
from queueduct.verification.stress.run import BATCH_LIMIT, OPS_LIMIT, Options, run
from tests.verification.stress.recorded import Recorded

pytest.importorskip("pyarrow")
from pyarrow import parquet

QUIET = Console(quiet=True)


@pytest.fixture
def target(tmp_path):
    return tmp_path / "history"


def test_the_parquet_files_have_the_documented_columns(target):
    run(Options("bounded", threads=True, ops=1_000, history=target), QUIET)
    assert sorted(path.name for path in target.iterdir()) == [
        "manifest.json",
        *[f"worker-{number:05}.parquet" for number in range(8)],
    ]
    schema = parquet.read_schema(target / "worker-00000.parquet")
    assert {field.name: str(field.type) for field in schema} == recorder.COLUMNS


def test_the_manifest_says_what_was_run(target):
    result = run(Options("slots", threads=True, ops=1_000, capacity=16, seed=7, batch=4, history=target), QUIET)
    manifest = json.loads((target / "manifest.json").read_text())
    assert (manifest["kind"], manifest["capacity"], manifest["seed"]) == ("slots", 16, 7)
    assert manifest["clock"].startswith("CLOCK_MONOTONIC")
    assert manifest["versions"]["queueduct"] == queueduct.__version__
    assert manifest["host"]["name"] == os.uname().nodename
    assert manifest["run"] == result.run
    assert manifest["options"]["batch"] == 4
    assert (manifest["interrupted"], manifest["drained"], manifest["workers"]) == (False, True, 8)


def test_a_log_and_an_overwriting_queue_say_whether_they_are_bounded(tmp_path):
    run(Options("events", threads=True, ops=500, history=tmp_path / "events"), QUIET)
    run(Options("overwriting", threads=True, ops=500, capacity=32, history=tmp_path / "overwriting"), QUIET)
    assert Recorded(tmp_path / "events").manifest["capacity"] is None
    assert Recorded(tmp_path / "overwriting").manifest["capacity"] == 32


def test_times_are_nanoseconds_of_the_monotonic_clock(target):
    before = time.monotonic_ns()
    run(Options("bounded", threads=True, ops=1_000, history=target), QUIET)
    after = time.monotonic_ns()
    found = Recorded(target)
    assert before <= found.invoke.min() <= found.returned.max() <= after


def test_what_a_worker_does_later_is_later(target):
    run(Options("bounded", threads=True, producers=1, consumers=1, ops=2_000, batch=1, history=target), QUIET)
    found = Recorded(target)
    for worker in (0, 1):
        mine = found.worker == worker
        assert (found.returned[mine][:-1] < found.invoke[mine][1:]).all()


def test_a_directory_that_exists_is_refused_before_anything_is_run(target):
    target.mkdir()
    (target / "something").touch()
    with pytest.raises(FileExistsError, match="directory of its own"):
        run(Options("bounded", history=target), QUIET)
    assert [path.name for path in target.parent.iterdir()] == ["history"]


def test_an_empty_directory_is_taken(target):
    target.mkdir()
    run(Options("bounded", threads=True, ops=500, history=target), QUIET)
    assert (target / "manifest.json").exists()


def test_a_history_has_its_name_only_when_its_manifest_is_there(target, monkeypatch):
    seen = []
    finish = recorder.UnfinishedHistory.finish

    def look(self, manifest):
        seen.append((target.exists(), sorted(path.name for path in self.folder.glob("*.json"))))
        finish(self, manifest)

    monkeypatch.setattr(recorder.UnfinishedHistory, "finish", look)
    run(Options("bounded", threads=True, ops=500, history=target), QUIET)
    assert seen == [(False, [])]
    assert [path.name for path in target.parent.iterdir()] == ["history"]


def test_a_run_that_fails_leaves_nothing(target, monkeypatch):
    def fail(self, timing, told):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(recorder.UnfinishedHistory, "convert", fail)
    with pytest.raises(OSError, match="No space left"):
        run(Options("bounded", threads=True, ops=500, history=target), QUIET)
    assert list(target.parent.iterdir()) == []
    assert queueduct.queues() == []


def test_a_full_disk_is_an_error_and_not_the_end_of_the_process(target):
    """The limit of a file's size stands for it: the kernel refuses to extend the rows just so."""
    target.parent.mkdir(exist_ok=True)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (9 << 20, before[1]))
    try:
        with pytest.raises(queueduct.QueueductError, match="no room for the rows"):
            run(
                Options("bounded", threads=True, producers=1, consumers=1, ops=2_000_000, batch=1, history=target),
                QUIET,
            )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert list(target.parent.iterdir()) == []
    assert queueduct.queues() == []


KILLED = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    import queueduct
    from queueduct.verification.history.recorder import ticking
    from queueduct.verification.stress.crew import Plan, Post, run_process
    queue = queueduct.open("victim")
    plan = Plan(puts=sys.argv[2] == "put", items=1 << 40, batch=3, item_bytes=64, seed=1, waits=1, tries=0, group=1,
                reads=False, first_value=7 << 40)
    folder = Path(sys.argv[1])
    run_process(Post(queue, "bounded", folder, folder, ticking()), plan, 7)
    """
)


@pytest.mark.parametrize("op", ["put", "get"])
def test_a_worker_that_is_killed_leaves_its_operation_pending(op, tmp_path):
    from queueduct.verification.stress._worker import RUN, Board
    from queueduct.verification.stress.crew import BOARD_LINES
    from queueduct.verification.stress.run import item_of

    board = Board(tmp_path / "board", BOARD_LINES, create=True)
    board.signal = RUN
    with queueduct.BoundedQueue.create("victim", 4, item=item_of(64)) as queue:
        worker = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path), op])
        # full, or empty from the start: the worker waits inside its operation
        while (queue.qsize() < 4) if op == "put" else not board.is_ready(7):
            assert worker.poll() is None
            time.sleep(0.001)
        words = np.memmap(tmp_path / "worker-00007.rows", dtype=np.uint64, mode="r")
        while not is_waiting(words, done=4 if op == "put" else 0):
            assert worker.poll() is None
            time.sleep(0.001)
        worker.kill()
        worker.wait()
        queue.unlink()
    assert read_header(words) == (7, -1)
    op_code, outcome, _, value, ticket, _, returned = RowReader(words).read(100)
    pending = outcome == 3
    assert pending[-1]
    assert returned[pending].tolist() == [0] * pending.sum()
    if op == "put":
        assert (op_code == 0).all()
        assert value.tolist() == [(7 << 40) + i for i in range(len(value))]
        assert ticket[~pending].tolist() == [0, 1, 2, 3]
    else:
        assert op_code.tolist() == [1]
        assert value.tolist() == [2**64 - 1]


def is_waiting(words, done: int) -> bool:
    """So many operations are over, and another one is under way."""
    found = RowReader(words).read(100) if read_header(words) else None
    return found is not None and found[1][-1] == 3 and int((found[1] != 3).sum()) == done


def test_a_row_has_room_for_the_largest_batch_and_the_last_ticket(target):
    assert BATCH_LIMIT <= MOST_ITEMS
    assert OPS_LIMIT < MOST_TICKETS
    batch = BATCH_LIMIT
    run(Options("bounded", 1, 1, ops=8 * batch, capacity=batch, batch=batch, threads=True, history=target), QUIET)
    found = Recorded(target)
    for op in ("put", "get"):
        is_done = (found.op == op) & (found.outcome == "ok")
        assert sorted(found.ticket[is_done]) == list(range(4 * batch))


def test_rows_that_cannot_be_are_an_error(tmp_path):
    RowFile(tmp_path / "rows", 3)
    words = np.memmap(tmp_path / "rows", dtype=np.uint64, mode="r+")
    assert read_header(words) == (3, -1)
    assert RowReader(words).read(10) is None
    words[8] = 1 << 9 | 1 << 2 | 1  # a get of one item
    words[9] = 1 << 56 | 7  # which were two
    with pytest.raises(ValueError, match="a row cannot be, at byte 64"):
        RowReader(words).read(10)
    words[8] = 3  # neither a row nor a mark
    with pytest.raises(ValueError, match=r"a row cannot be, at byte 64 of \d+: 0x3"):
        RowReader(words).read(10)
    words[0] = 5
    with pytest.raises(ValueError, match="no rows of a history"):
        read_header(words)
    words[0] = 0
    assert read_header(words) is None
    with pytest.raises(ValueError, match="killed before there was a header"):
        RowReader(words)


def test_ctrl_c_ends_a_run_early_and_its_history_is_complete(tmp_path):
    target = tmp_path / "history"
    command = [str(Path(sys.executable).parent / "queueduct"), "stress", "bounded", "--ops", "1G", "--producers", "1"]
    command += ["--consumers", "1", "--capacity", "2", "--batch", "1", "--history", str(target), "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    # it is at work when a consumer has rows beyond those that were made ready
    while not any(is_at_work(path) for path in tmp_path.glob(".history.unfinished-*/rows/worker-*.rows")):
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    result = json.loads(output)
    assert result["interrupted"]
    assert result["left"] == 0
    assert Recorded(target).manifest["interrupted"]
    assert [path.name for path in tmp_path.iterdir()] == ["history"]


def is_at_work(path: Path) -> bool:
    try:
        words = np.memmap(path, dtype=np.uint64, mode="r")
    except ValueError:  # just made, and still empty
        return False
    return bool(words[8] != 0)
