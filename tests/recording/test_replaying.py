"""A replay: every item in order and in time, into any kind of queue, and once also if it is killed and repeated."""

import math
import random
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import queueduct
from queueduct.recording import Recording, create_for, reading, record, replay
from tests.recording.ticks import MAKERS, OPENING, TICK, ticks

COUNT = 500


@pytest.fixture
def recorded(tmp_path):
    """An archive of ticks a millisecond apart, in files of a hundred."""
    return archive_of(ticks(COUNT), tmp_path / "rec")


def archive_of(records, folder, rows_per_file=100):
    with queueduct.EventQueue.create("origin", item=records.dtype, replace=True) as q:
        q.put_many(records)
        record(q, folder, available_now=True, rows_per_file=rows_per_file)
    return folder


def numbers_in(queue):
    return queue.read(queue.earliest, queue.end)["n"].tolist()


@pytest.mark.parametrize("kind", MAKERS)
def test_items_go_into_every_kind_of_queue_in_their_order(kind, recorded):
    sizes = {} if kind in ("events", "growing") else {"capacity": 512}
    with create_for(Recording(recorded), "again", kind, **sizes) as q:
        reader = q.subscribe() if kind == "events" else q
        assert (q.item, q.kind) == (TICK, kind)
        done = replay(recorded, q, speed=math.inf)
        assert (done.rows, done.position, done.ended) == (COUNT, COUNT - 1, "everything is replayed")
        assert [reader.get()["n"] for _ in range(COUNT)] == list(range(COUNT))


def test_a_replay_takes_the_time_of_a_field_divided_by_the_speed(recorded):
    with create_for(Recording(recorded), "again", "events") as q:
        for speed, seconds in ((1, 0.499), (10, 0.0499), (0.5, 0.998)):
            began = time.monotonic()
            assert replay(recorded, q, speed=speed, time_field="ts").rows == COUNT
            assert time.monotonic() - began >= seconds


def test_no_item_comes_before_its_time_and_late_ones_are_told(recorded, children):
    """The consumer notes when each item came. How late is a figure of the machine: benchmarks measure it."""
    with create_for(Recording(recorded), "again", "bounded", capacity=1024) as q:
        came = []

        def consume():
            with queueduct.open("again") as consumer:
                for _ in range(COUNT):
                    consumer.get()
                    came.append(time.monotonic())

        consumer = threading.Thread(target=consume)
        consumer.start()
        began = time.monotonic()
        done = replay(recorded, q, time_field="ts")
        consumer.join()
    assert 0 < done.late_p99 <= done.late_max
    assert (np.array(came) - began >= np.arange(COUNT) / 1000).all()


def test_recorded_times_count_without_a_field(tmp_path):
    with queueduct.EventQueue.create("q", item=TICK) as q:
        stop = threading.Event()

        def on_progress(now):
            if now.open_rows + now.rows == q.end:
                q.put(ticks(1, q.end)[0]) if q.end < 3 else stop.set()

        q.put(ticks(1)[0])
        record(q, tmp_path / "rec", stop=stop, on_progress=on_progress)
    times = pq.read_table(tmp_path / "rec", use_threads=False)["recorded_at"].cast(pa.int64()).to_pylist()
    with create_for(Recording(tmp_path / "rec"), "again", "events") as q:
        began = time.monotonic()
        replay(tmp_path / "rec", q)
        assert time.monotonic() - began >= (times[-1] - times[0]) / 1e6 > 0.1


def test_a_full_queue_holds_a_replay_back_and_it_says_how_far(recorded, children):
    with create_for(Recording(recorded), "again", "bounded", capacity=64) as q:
        got, told = [], []

        def on_progress(now):
            told.append(now)
            while q.qsize():
                got.extend(q.get_many(64)["n"].tolist())

        done = replay(recorded, q, speed=10, time_field="ts", on_progress=on_progress)
        got.extend(q.get_many(64)["n"].tolist() if q.qsize() else [])
    assert got == list(range(COUNT))
    assert done.late_max > 0.1
    assert max(now.behind for now in told) > 0.05


@pytest.mark.parametrize(
    ("span", "numbers"),
    [
        ({"start": 120}, range(120, COUNT)),
        ({"end": 120}, range(120)),
        ({"start": 99, "end": 101}, (99, 100)),
        ({"start": 480, "end": np.datetime64("2026-01-05T09:30:00.485")}, range(480, 485)),
        ({"start": OPENING + 200_000, "end": OPENING + 300_000}, range(200, 300)),
        ({"start": 1000}, ()),
        ({"start": np.datetime64("2027-01-01")}, ()),
    ],
)
def test_a_part_is_chosen_by_positions_or_by_times(span, numbers, recorded):
    with create_for(Recording(recorded), "again", "events") as q:
        done = replay(recorded, q, speed=math.inf, time_field="ts", **span)
        assert done.rows == len(numbers)
        assert numbers_in(q) == list(numbers)


def test_a_loop_begins_anew_until_it_is_stopped(recorded):
    with create_for(Recording(recorded), "again", "events") as q:
        stop = threading.Event()
        done = replay(
            recorded, q, speed=100, time_field="ts", loop=True, stop=stop,
            on_progress=lambda now: now.rounds >= 2 and stop.set(),
        )  # fmt: skip
        assert (done.ended, done.rows) == ("stopped", q.end)
        assert done.rounds >= 2
        assert numbers_in(q)[: 2 * COUNT] == [*range(COUNT)] * 2


@pytest.mark.parametrize("producer", [None, "me"])
@pytest.mark.parametrize("kind", ["bounded", "slots"])
def test_a_replay_that_is_stopped_at_a_full_queue_counts_what_is_in(kind, producer, recorded):
    stop = threading.Event()
    with create_for(Recording(recorded), "again", kind, capacity=64) as q:
        done = replay(recorded, q, speed=math.inf, producer=producer, stop=stop, on_progress=lambda _: stop.set())
        assert (done.rows, done.position, done.ended) == (64, 63, "stopped")
        assert q.get_many(64)["n"].tolist() == list(range(64))
        if producer is None:  # as its report says
            done = replay(recorded, q, speed=math.inf, start=done.position + 1, end=100)
        else:
            done = replay(recorded, q, speed=math.inf, end=100, producer=producer)
        assert q.get_many(64)["n"].tolist() == list(range(64, 100))
        assert (done.rows, done.position) == (36, 99)


@pytest.mark.parametrize("piece_rows", [1, 7, reading.PIECE_ROWS])
@pytest.mark.parametrize("is_sorted", [True, False])
def test_rows_come_by_position_whatever_file_they_are_in(is_sorted, piece_rows, tmp_path, monkeypatch):
    """As leases that were delivered again leave them, and as Spark's tasks do."""
    monkeypatch.setattr(reading, "PIECE_ROWS", piece_rows)
    folder = tmp_path / "rec"
    folder.mkdir()
    rng = random.Random(5)
    left = list(range(300))
    rng.shuffle(left)
    while left:
        mine, left = left[:70], left[70:]
        if is_sorted:
            mine.sort()
        table = pa.table({"n": mine, "position": pa.array(mine, pa.int64())})
        pq.write_table(table, folder / f"part-{len(left)}.parquet", row_group_size=20)
    with queueduct.EventQueue.create("again", item=np.dtype([("n", "i8")])) as q:
        assert replay(folder, q, speed=math.inf).rows == 300
        assert numbers_in(q) == list(range(300))


def test_a_position_that_is_there_twice_is_refused(recorded):
    table = pq.ParquetFile(recorded / "0000000000000100-0000000000000199.parquet").read(use_threads=False)
    pq.write_table(table.slice(50, 1), recorded / "again.parquet")
    with (
        create_for(Recording(recorded), "again", "events") as q,
        pytest.raises(ValueError, match="position 150 is there twice"),
    ):
        replay(recorded, q, speed=math.inf)


def test_exactly_once_goes_on_where_the_producers_record_ends(recorded):
    with create_for(Recording(recorded), "again", "events") as q:
        assert replay(recorded, q, speed=math.inf, producer="p", end=230).rows == 230
        again = replay(recorded, q, speed=math.inf, producer="p")
        assert (again.rows, replay(recorded, q, speed=math.inf, producer="p").rows) == (COUNT - 230, 0)
        assert numbers_in(q) == list(range(COUNT))


def test_exactly_once_completes_a_batch_that_was_cut_off(recorded):
    with create_for(Recording(recorded), "again", "bounded", capacity=64) as q:
        with pytest.raises(queueduct.Full):
            q.put_once(ticks(250, 0), "p", 0, timeout=0)  # 64 of a batch that ends in the third file
        got = []
        on_progress = lambda now: got.extend(q.get_many(64)["n"].tolist() if q.qsize() else [])  # noqa: E731
        done = replay(recorded, q, speed=math.inf, producer="p", on_progress=on_progress)
        while q.qsize():
            got.extend(q.get_many(64)["n"].tolist())
    assert got == list(range(COUNT))
    assert (done.rows, done.skipped) == (COUNT - 64, 64)


def test_a_producers_record_of_another_replay_is_refused(recorded):
    with create_for(Recording(recorded), "again", "events") as q:
        q.put_once(ticks(3), "p", 10_000)
        with pytest.raises(ValueError, match="a producer of its own"):
            replay(recorded, q, speed=math.inf, producer="p")


@pytest.mark.parametrize("kind", ["events", "bounded", "growing", "slots"])
def test_a_killed_replay_that_is_repeated_puts_nothing_twice(kind, recorded, children):
    rng = random.Random(kind)
    sizes = {} if kind in ("events", "growing") else {"capacity": 600}

    def replay_at(speed):
        with queueduct.open("again") as opened:
            replay(recorded, opened, speed=speed, time_field="ts", producer="p")

    with create_for(Recording(recorded), "again", kind, **sizes) as q:
        reader = q.subscribe() if kind == "events" else q
        for _ in range(8):
            pid = children.fork(lambda: replay_at(0.2))  # it would take longer than all of them live
            time.sleep(rng.uniform(0.005, 0.05))
            children.kill(pid)
        pid = children.fork(lambda: replay_at(math.inf))
        assert children.wait(pid) == 0
        assert [reader.get(timeout=1)["n"] for _ in range(COUNT)] == list(range(COUNT))
        with pytest.raises(queueduct.Empty):
            reader.get_nowait()


@pytest.mark.parametrize(
    ("options", "error", "why"),
    [
        ({"speed": 0}, ValueError, "speed must be positive"),
        ({"speed": math.nan}, ValueError, "speed must be positive"),
        ({"time_field": "px"}, ValueError, "field of type M8: time='px'; there is ts"),
        ({"producer": "p", "loop": True}, ValueError, "exclude each other"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, error, why, recorded):
    with create_for(Recording(recorded), "again", "events") as q, pytest.raises(error, match=why):
        replay(recorded, q, **options)


def test_a_queue_that_does_not_fit_is_refused_before_anything_is_put(recorded, tmp_path):
    with queueduct.EventQueue.create("other", item=[("n", "i8")]) as other:
        with pytest.raises(TypeError, match="must have the items that were recorded"):
            replay(recorded, other, speed=math.inf)
        assert other.end == 0
    with create_for(Recording(recorded), "feed", "overwriting") as feed, pytest.raises(ValueError, match="no put_once"):
        replay(recorded, feed, producer="p")
    with pytest.raises(FileNotFoundError, match="there is none"):
        Recording(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="there is none in"):
        Recording(tmp_path / "empty")


def test_an_archive_without_recorded_times_needs_a_field_or_full_speed(tmp_path):
    with queueduct.EventQueue.create("q", item=TICK) as q:
        q.put_many(ticks(5))
        record(q, tmp_path, available_now=True, recorded_column=None)
        with pytest.raises(ValueError, match="does not say when its items were recorded"):
            replay(tmp_path, q)
        assert replay(tmp_path, q, speed=math.inf).rows == 5


def test_a_time_that_goes_back_is_due_at_once(tmp_path):
    records = ticks(3)
    records["ts"] = [OPENING, OPENING - np.timedelta64(1, "D"), OPENING + 1000]
    folder = archive_of(records, tmp_path / "rec")
    with create_for(Recording(folder), "again", "events") as q:
        assert replay(folder, q, time_field="ts").rows == 3
