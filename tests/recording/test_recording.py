"""What a recorder writes, when it completes a file, where it goes on, and what it refuses."""

import contextlib
import errno
import os
import subprocess
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import queueduct
from queueduct.recording import Recorded, Recording, create_for, record, replay
from queueduct.recording.archive import Archive, facts_of, footer
from queueduct.recording.columns import Shape
from queueduct.recording.files import FileWriter
from queueduct.recording.recorder import Limits, Recorder
from queueduct.recording.sources import source_of
from tests.recording.ticks import MAKERS, TICK, names_of, table_of, ticks
from tests.support.children import needs_root
from tests.support.preloading import needs_compiler, preload


def recorded_at_once(queue, folder, **options) -> Recorded:
    return record(queue, folder, available_now=True, **options)


@pytest.mark.parametrize("kind", MAKERS)
def test_every_kind_is_recorded_in_the_order_of_its_positions(kind, tmp_path):
    with MAKERS[kind]() as q:
        q.put_many(ticks(60))
        done = recorded_at_once(q, tmp_path / "rec")
        q.put_many(ticks(30, 60))
        again = recorded_at_once(q, tmp_path / "rec")
        assert (done.rows, again.rows, done.ended) == (60, 30, "everything that was there is recorded")
        assert kind == "events" or q.qsize() == 0
    found = table_of(tmp_path / "rec")
    assert (found["n"].to_numpy() == np.arange(90)).all()
    assert (found["px"].to_numpy() == np.arange(90) / 4).all()
    assert set(found["sym"].to_pylist()) == {"ACME", "IBM", "LONGNAME"}


@pytest.mark.parametrize("kind", ["bounded", "growing", "slots"])
def test_what_a_killed_consumer_had_is_recorded_with_what_waits(kind, tmp_path, children):
    with MAKERS[kind]() as q:
        q.put_many(ticks(40))
        told, tell = os.pipe()

        def hold():
            with queueduct.open("q") as mine, mine.lease(20):
                os.write(tell, b".")
                time.sleep(60)

        holder = children.fork(hold)
        assert os.read(told, 1) == b"."
        children.kill(holder)
        assert recorded_at_once(q, tmp_path / "rec").rows == 40
    assert sorted(table_of(tmp_path / "rec")["n"].to_pylist()) == list(range(40))


def test_the_names_have_the_positions_and_a_file_says_what_it_has(tmp_path):
    with MAKERS["events"]() as q:
        q.put_many(ticks(250))
        done = recorded_at_once(q, tmp_path, rows_per_file=100)
        queue_id = q.segment_id.hex()
    assert names_of(tmp_path) == [
        "0000000000000000-0000000000000099.parquet",
        "0000000000000100-0000000000000199.parquet",
        "0000000000000200-0000000000000249.parquet",
    ]
    path = tmp_path / names_of(tmp_path)[1]
    facts = facts_of(path, footer(path))
    assert (facts.queue, facts.queue_id, facts.kind, facts.epoch) == ("q", queue_id, "events", 0)
    assert (facts.first, facts.last, facts.rows, facts.reader) == (100, 199, 100, done.reader)
    assert facts.item.spec == TICK
    assert pq.read_schema(path).names == [*TICK.names, "position", "recorded_at"]
    assert done.files == 3
    assert done.bytes == sum(os.path.getsize(tmp_path / name) for name in names_of(tmp_path))


def test_an_item_says_when_it_was_taken(tmp_path):
    before = time.time()
    with MAKERS["events"]() as q:
        q.put_many(ticks(3))
        recorded_at_once(q, tmp_path)
    (*_, last) = table_of(tmp_path)["recorded_at"].to_pylist()
    assert before - 1e-6 <= last.timestamp() <= time.time()


ITEMS = {
    "bytes": (bytes, [b"a", b"", b"\xff\x00"]),
    "number": ("f8", np.array([1.5, np.nan, -0.0])),
    "big-endian": (">i4", np.array([1, -2], ">i4")),
    "nested": (
        np.dtype([("p", [("x", "f4"), ("k", "u1")]), ("v", "i4", (2, 3)), ("d", "m8[ms]"), ("f", "?")], align=True),
        [((1.5, 2), [[1, 2, 3], [4, 5, 6]], 7, True)],
    ),
    "half": (
        np.dtype([("h", "f2"), ("u", "u8"), ("t", "M8[s]"), ("w", "U3")]),
        [(0.5, 2**64 - 1, np.datetime64("2026-01-01", "s"), "é")],
    ),
}


@pytest.mark.parametrize("name", ITEMS)
def test_items_come_back_from_the_files_as_they_were(name, tmp_path):
    item, values = ITEMS[name]
    with queueduct.EventQueue.create("q", item=item) as q:
        q.put_many(values)
        put = q.read(0, q.end)
        recorded_at_once(q, tmp_path)
        with create_for(Recording(tmp_path), "again", "events") as again:
            assert again.item == q.item
            replay(tmp_path, again, speed=float("inf"))
            got = again.read(0, again.end)
    assert got == put if item is bytes else repr(got) == repr(put)


def test_fields_of_bytes_that_are_no_text_are_recorded_as_binary_and_else_named(tmp_path):
    with queueduct.EventQueue.create("q", item=[("raw", "S4")]) as q:
        q.put_many([(b"ok",), (b"\xff\xfe",)])
        with pytest.raises(ValueError, match="'raw' is not UTF-8"):
            recorded_at_once(q, tmp_path)
        assert names_of(tmp_path) == []
        assert recorded_at_once(q, tmp_path, strings="binary").rows == 2
    assert table_of(tmp_path)["raw"].to_pylist() == [b"ok", b"\xff\xfe"]


def test_a_file_is_complete_after_its_rows_its_bytes_or_its_seconds(tmp_path):
    with queueduct.EventQueue.create("q", item=TICK) as q:
        q.put_many(ticks(1000))
        assert recorded_at_once(q, tmp_path / "rows", rows_per_file=300).files == 4
        # a take has at most 65,536 rows, so a file may have more bytes, and never fewer
        big = np.zeros(200_000, TICK)
        q.put_many(big)
        assert recorded_at_once(q, tmp_path / "bytes", bytes_per_file=2 << 20).files == 4
        stop = threading.Event()
        seconds = {"seconds_per_file": 0.05, "stop": stop, "on_progress": lambda now: now.files and stop.set()}
        done = record(q, tmp_path / "seconds", **seconds)
        assert done.rows > 0
        assert done.ended == "stopped"


def test_low_traffic_is_in_a_file_in_time(tmp_path):
    """One item, and nothing after it."""
    with MAKERS["bounded"]() as q:
        q.put(ticks(1)[0])
        stop = threading.Event()
        done = record(q, tmp_path, seconds_per_file=0.2, stop=stop, on_progress=lambda now: now.rows and stop.set())
        assert (done.rows, q.stats().leased) == (1, 0)


def test_producers_of_a_small_queue_do_not_wait_for_a_big_file(tmp_path, children):
    """Nothing but the queue's size makes these files complete."""
    with queueduct.BoundedQueue.create("q", 16, item=TICK) as q:

        def produce():
            with queueduct.open("q") as opened:
                opened.put_many(ticks(200))
                opened.shutdown()

        producer = children.fork(produce)
        done = record(q, tmp_path, seconds_per_file=1000)
        assert (done.rows, children.wait(producer)) == (200, 0)
        assert done.ended == "the queue was shut down, and everything in it is recorded"


def test_single_items_do_not_use_up_the_participants_lines(tmp_path, children):
    with queueduct.BoundedQueue.create("q", 4096, item=TICK, participants=12) as q:

        def produce():
            with queueduct.open("q") as opened:
                for tick in ticks(500):
                    opened.put(tick)
                opened.shutdown()

        producer = children.fork(produce)
        assert record(q, tmp_path, seconds_per_file=0.5).rows == 500
        assert children.wait(producer) == 0


def test_a_recorder_ends_after_so_many_items_and_leaves_the_others(tmp_path):
    for kind in ("events", "bounded"):
        with MAKERS[kind](kind) as q:
            q.put_many(ticks(100))
            assert record(q, tmp_path / kind, max_rows=70).rows == 70
            assert record(q, tmp_path / kind, seconds=0.05).rows == 30
            assert table_of(tmp_path / kind)["n"].to_pylist() == list(range(100))


def test_where_a_new_reader_starts_is_chosen(tmp_path):
    with MAKERS["events"]() as q:
        q.put_many(ticks(10))
        assert recorded_at_once(q, tmp_path / "a", start="latest").rows == 0
        assert recorded_at_once(q, tmp_path / "b", start=7, reader="mine").position == 10
        assert table_of(tmp_path / "b")["position"].to_pylist() == [7, 8, 9]
        assert [reader.name for reader in q.readers()].count("mine") == 1


def test_a_second_recorder_of_a_directory_is_refused(tmp_path, children):
    with MAKERS["events"]() as q, MAKERS["bounded"]("jobs") as jobs:
        holder = children.start(
            "import sys, queueduct; from queueduct.recording import record\n"
            "record(queueduct.open('q'), sys.argv[1], on_progress=lambda now: print('on', flush=True))",
            tmp_path / "rec",
        )
        assert holder.stdout.readline() == "on\n"
        for queue, options in ((q, {}), (q, {"reader": "another"}), (jobs, {})):
            with pytest.raises(queueduct.ReaderInUse, match="one recorder at a time fills a directory"):
                recorded_at_once(queue, tmp_path / "rec", **options)
        (reader,) = (info.name for info in q.readers())
        with pytest.raises(queueduct.ReaderInUse):
            recorded_at_once(q, tmp_path / "other", reader=reader)
        holder.kill()
        holder.wait()
        assert recorded_at_once(q, tmp_path / "rec").rows == 0


def test_another_queue_of_the_name_does_not_go_into_an_archive(tmp_path):
    for _ in range(2):
        with MAKERS["events"]() as q:
            q.put_many(ticks(5))
            if names := names_of(tmp_path):
                with pytest.raises(queueduct.QueueReplaced, match="record into a new directory"):
                    recorded_at_once(q, tmp_path)
                assert names_of(tmp_path) == names
            else:
                recorded_at_once(q, tmp_path)
            q.unlink()


def test_files_may_be_taken_away_and_the_reader_goes_on(tmp_path):
    with MAKERS["events"]() as q:
        q.put_many(ticks(10))
        recorded_at_once(q, tmp_path, rows_per_file=5)
        for path in tmp_path.glob("*.parquet"):
            path.unlink()
        q.put_many(ticks(5, 10))
        assert recorded_at_once(q, tmp_path).missed == 0
    assert table_of(tmp_path)["position"].to_pylist() == list(range(10, 15))


def test_what_the_log_has_dropped_is_counted(tmp_path):
    with MAKERS["events"]() as q:
        q.put_many(ticks(10))
        recorded_at_once(q, tmp_path)
        q.put_many(ticks(20, 10))
        q.keep_last(5)
        assert recorded_at_once(q, tmp_path).missed == 15
    assert table_of(tmp_path)["n"].to_pylist() == [*range(10), *range(25, 30)]


def test_what_a_queue_overwrites_is_counted(tmp_path):
    with queueduct.OverwritingQueue.create("q", 4, item=TICK) as q:
        stop = threading.Event()
        seen = []

        def on_progress(now):
            if not seen:
                q.put_many(ticks(10))
            seen.append(now)
            if now.lag == 0 and now.rows + now.open_rows:
                stop.set()

        done = record(q, tmp_path, stop=stop, on_progress=on_progress, seconds_per_file=0.1)
    assert (done.rows, done.missed) == (4, 6)


@needs_root
def test_a_full_disk_leaves_no_half_file_and_nothing_is_lost(tmp_path, small_disk):
    with queueduct.BoundedQueue.create("q", 1 << 17, item=TICK) as q:
        noise = ticks(40_000)
        noise["px"] = np.random.default_rng(1).random(len(noise))
        q.put_many(noise)
        with pytest.raises(OSError, match="make room and record again") as failed:
            recorded_at_once(q, small_disk / "rec", compression="none")
        assert failed.value.errno == errno.ENOSPC
        assert names_of(small_disk / "rec") == []
        assert (q.qsize(), q.stats().leased) == (40_000, 0)
        (small_disk / "ballast").unlink()
        assert recorded_at_once(q, small_disk / "rec", compression="none").rows == 40_000
    assert table_of(small_disk / "rec")["n"].to_pylist() == list(range(40_000))


@pytest.fixture
def small_disk(tmp_path):
    """A file system of two megabytes, most of which a file takes."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "small", folder], check=False)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    (folder / "ballast").write_bytes(bytes(1_900_000))
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_the_completion_of_a_file_tells_why_it_was_not_written(tmp_path):
    """The writer's thread fails while the recorder looks away: either call may be asked first."""
    shape = Shape(TICK, strings="string", position_column="position", recorded_column=None)
    limits = Limits(100, 1 << 20, 10.0, None, None, True)
    with MAKERS["events"]() as q, Archive(tmp_path) as archive:
        bad = ticks(10)
        bad["sym"][7] = b"\xff"
        q.put_many(bad)
        source = source_of(q, archive, None, None, "earliest", 10.0)
        with contextlib.closing(source), Recorder(q, source, FileWriter(archive, shape, "snappy"), limits) as recorder:
            recorder.add(source.take(10, 1.0))
            recorder.complete()
            for call in (recorder.completing[0], recorder.writing[0]):
                with pytest.raises(ValueError, match="field 'sym' is not UTF-8"):
                    call.result(timeout=30)
    assert names_of(tmp_path) == []


@needs_compiler
def test_a_disk_that_refuses_to_sync_ends_it_with_nothing_committed(tmp_path, children, monkeypatch):
    with MAKERS["events"]() as q:
        q.put_many(ticks(10))
        with monkeypatch.context() as patch:
            preload(patch, "refuse", REFUSE_FSYNC=errno.EIO)
            children_told = children.start(
                "import sys, queueduct; from queueduct.recording import record\n"
                "record(queueduct.open('q'), sys.argv[1], available_now=True)",
                tmp_path,
            )
            _, err = children_told.communicate(timeout=60)
        assert "Input/output error" in err
        assert names_of(tmp_path) == []
        assert [reader.committed for reader in q.readers()] == [0]
        assert recorded_at_once(q, tmp_path).rows == 10


def test_a_log_is_on_its_disk_before_its_archive(disk):
    """Else a crash of the machine would cut it behind what the archive has."""
    with queueduct.EventQueue.create("q", item=TICK, sync="never") as q:
        q.put_many(ticks(10))
        assert q.stats().synced == 0
        recorded_at_once(q, disk / "rec")
        assert q.stats().synced == 10


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"rows_per_file": 0}, "rows_per_file must be an int of at least 1"),
        ({"bytes_per_file": 1.5}, "bytes_per_file must be an int"),
        ({"max_rows": True}, "max_rows must be an int"),
        ({"seconds_per_file": 0}, "seconds_per_file must be positive"),
        ({"seconds": float("nan")}, "seconds must be positive"),
        ({"compression": "rar"}, "compression must be one of snappy"),
        ({"strings": "text"}, "strings must be 'string' or 'binary'"),
        ({"position_column": "n"}, "n is there twice.*--position-column"),
        ({"recorded_column": "position"}, "position is there twice"),
    ],
)
def test_options_that_make_no_sense_are_refused_before_anything_is_made(options, why, tmp_path):
    with MAKERS["events"]() as q, pytest.raises(ValueError, match=why):
        record(q, tmp_path / "rec", **options)
    assert not (tmp_path / "rec").exists()


def test_a_queue_that_cannot_be_recorded_says_why(tmp_path):
    with pytest.raises(TypeError, match="no columns"):
        record(queueduct.EventQueue.create("objects", item=object), tmp_path)
    with pytest.raises(ValueError, match="only a queue with a name"):
        record(queueduct.BoundedQueue.create(None, item="f8"), tmp_path)
    with MAKERS["bounded"]() as q, pytest.raises(ValueError, match="only an event queue has readers"):
        record(q, tmp_path, reader="me")
    (tmp_path / "file").touch()
    with MAKERS["slots"]("frames") as q, pytest.raises(NotADirectoryError, match="an archive is a directory"):
        record(q, tmp_path / "file")


def test_a_foreign_file_in_the_place_of_a_recorded_one_is_refused(tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "0000000000000000-0000000000000000.parquet")
    with MAKERS["events"]() as q, pytest.raises(ValueError, match="another program has written"):
        recorded_at_once(q, tmp_path)
    (tmp_path / "0000000000000000-0000000000000000.parquet").write_bytes(b"PAR1")
    with queueduct.open("q") as q, pytest.raises(ValueError, match="must be Parquet"):
        recorded_at_once(q, tmp_path)


def test_pandas_is_not_imported(tmp_path, children):
    with MAKERS["events"]() as q:
        q.put_many(ticks(10))
    told = children.run(
        "import sys, math, queueduct; from queueduct.recording import record, replay\n"
        "q = queueduct.open('q'); record(q, sys.argv[1], available_now=True); replay(sys.argv[1], q, speed=math.inf)\n"
        "print('pandas' in sys.modules)",
        tmp_path,
    )
    assert told == "False\n"
