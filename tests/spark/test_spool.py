"""The spool and its drainer, without Spark: each item once, killed at whichever step between claim and release."""

import contextlib
import os
import random
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from rows import TICK, check_each_once, numbered

import penstock
from penstock.spark import attachment, drainer
from penstock.spark.address import Address
from penstock.spark.drainer import Drainer
from penstock.spark.kinds import KINDS
from penstock.spark.options import SourceOptions
from penstock.spark.source import check_spooled
from penstock.spark.spool import READER, Spool, beside, packed, spool_directory, spool_item, unpacked
from penstock.spark.spooled import SpooledStreamReader

STEPS = ["before claim", "claimed", "appended", "synced", "before release", "released", "settled"]


class Query:
    """What a stream reader has of a queue and its spool."""

    def __init__(self, directory, name="jobs"):
        self.queue = penstock.open(name)
        self.address = Address(name).exactly(self.queue)
        self.spool = Spool.open(self.address, directory, self.queue.item, None)
        self.spool.note()
        self.reader = self.spool.log.subscribe(READER, start="earliest")
        self.drainer = Drainer(self.queue, self.spool, self.spool.log.subscribe(self.spool.drainer, start="earliest"))

    def positions(self):
        log = self.spool.log
        return unpacked(log.read(log.earliest, log.end))[1]

    def numbers(self):
        log = self.spool.log
        return unpacked(log.read(log.earliest, log.end))[0]["number"]

    def close(self):
        self.spool.close()
        self.queue.close()


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def dying(step, drainer):
    """The drainer's own calls, with a death at one of its steps."""
    take, append, log, reader = drainer.take, drainer.append, drainer.spool.log, drainer.reader

    def at(name, work):
        def call(*arguments):
            if step == f"before {name}":
                die()
            result = work(*arguments)
            if step in PAST[name]:
                die()
            return result

        return call

    def taken(rows):
        lease = at("claim", take)(rows)
        if lease is not None:
            lease.release = at("release", lease.release)
        return lease

    drainer.take = taken
    drainer.append = at("append", append)
    drainer.spool.log = Over(log, sync=at("sync", log.sync))
    drainer.reader = Over(reader, commit=at("settle", reader.commit))


class Over:
    """Something with some of its calls replaced."""

    def __init__(self, inner, **replaced):
        self.inner = inner
        self.__dict__ |= replaced

    def __getattr__(self, name):
        return getattr(self.inner, name)


PAST = {
    "claim": {"claimed"},
    "append": {"appended"},
    "sync": {"synced"},
    "release": {"released"},
    "settle": {"settled"},
}


def killed_at(step, directory, rows):
    """Drain in a process of its own that dies at the step."""
    child = os.fork()
    if child == 0:
        query = Query(directory)
        dying(step, query.drainer)
        query.drainer.drain(rows)
        os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


# Each kind that is drained: how a queue of a thousand jobs is made.
MAKERS = {
    "bounded": lambda: penstock.BoundedQueue.create("jobs", 1024, item=TICK),
    "growing": lambda: penstock.GrowingQueue.create("jobs", item=TICK, first_bytes=1024, steps=6),
    "slots": lambda: penstock.SlotQueue.create("jobs", 1024, item=TICK),
    "overwriting": lambda: penstock.OverwritingQueue.create("jobs", 1024, item=TICK),
}


@pytest.fixture(params=MAKERS)
def jobs(request):
    """A queue of each kind that is drained."""
    with MAKERS[request.param]() as queue:
        yield queue


def test_items_go_through_a_spool_with_their_positions(jobs, tmp_path):
    jobs.put_many(numbered(0, 100))
    query = Query(tmp_path)
    query.drainer.drain(30)
    assert (query.spool.log.end, jobs.qsize()) == (30, 70)
    query.drainer.drain(1000)
    assert query.numbers().tolist() == list(range(100))
    assert (np.diff(query.positions()) > 0).all()
    assert query.spool.behind() == 100
    query.close()


def test_byte_strings_and_arrays_keep_their_form():
    positions = np.array([3, 5])
    assert [
        each.tolist() if isinstance(each, np.ndarray) else each
        for each in unpacked(packed([b"", b"x\0"], positions, bytes))
    ] == [
        [b"", b"x\0"],
        [3, 5],
    ]
    pair = np.dtype(("f4", (2, 3)))
    given = np.arange(12, dtype="f4").reshape(2, 2, 3)
    items, places = unpacked(packed(given, positions, spool_item(pair)))
    assert items.tolist() == given.tolist()
    assert places.tolist() == [3, 5]


PAIRS = [(step, again) for step in STEPS for again in STEPS]
SOME = [(step, None) for step in STEPS] + [*zip(STEPS, STEPS[3:] + STEPS[:3], strict=True)]


@pytest.mark.parametrize(
    ("step", "again"), SOME + [pytest.param(*pair, marks=pytest.mark.long) for pair in PAIRS if pair not in SOME]
)
def test_killed_at_any_step_and_again_each_item_is_kept_once(jobs, tmp_path, step, again):
    jobs.put_many(numbered(0, 100))
    killed_at(step, tmp_path, 60)
    if again is not None:
        jobs.put_many(numbered(100, 120))
        killed_at(again, tmp_path, 60)
    query = Query(tmp_path)
    query.drainer.drain(1000)
    check_each_once(query.numbers(), 120 if again else 100)
    assert jobs.empty()
    assert query.drainer.reader.committed == query.spool.log.end
    assert jobs.put_many(numbered(0, 1024), block=False) == 1024, "no slot is left claimed"
    query.close()


@pytest.mark.parametrize("step", STEPS)
def test_what_a_killed_query_had_kept_is_not_kept_again_by_another(jobs, tmp_path, step):
    """Two queries share a queue: what one of them held when it was killed goes to the other, if it had not kept it."""
    jobs.put_many(numbered(0, 100))
    killed_at(step, tmp_path / "one", 60)
    other = Query(tmp_path / "other")
    other.drainer.drain(1000)
    one = Query(tmp_path / "one")
    one.drainer.drain(1000)
    check_each_once(np.concatenate([one.numbers(), other.numbers()]), 100)
    assert one.drainer.reader.committed == one.spool.log.end
    one.close()
    other.close()


def test_what_may_come_again_stays_in_the_spool_though_spark_is_done_with_it(jobs, tmp_path):
    """Another query holds what a killed one had kept, and is slow to look: it must still find it."""
    jobs.put_many(numbered(0, 100))
    killed_at("synced", tmp_path / "one", 60)
    slow = jobs.lease(1000)
    assert slow.is_redelivered
    one = Query(tmp_path / "one")
    one.drainer.drain(1000)
    one.reader.commit(one.spool.log.end)
    assert one.spool.log.earliest == 0
    slow.give_back()
    other = Query(tmp_path / "other")
    other.drainer.drain(1000)
    assert len(other.numbers()) == 0
    one.drainer.settle()
    assert one.drainer.reader.committed == one.spool.log.end
    one.close()
    other.close()


def test_frames_are_leased_few_at_a_time(tmp_path, monkeypatch):
    frames = np.arange(140, dtype="f4").reshape(7, 4, 5)
    monkeypatch.setattr(drainer, "LEASE_BYTES", 2 * (8 + 80))
    with penstock.SlotQueue.create("jobs", 8, item=np.dtype(("f4", (4, 5)))) as camera:
        camera.put_many(frames)
        query = Query(tmp_path)
        with query.drainer.take(100) as lease:
            assert len(lease) == 2
            lease.give_back()
        query.drainer.drain(100)
        items, positions = unpacked(query.spool.log.read(0, 7))
        np.testing.assert_array_equal(items, frames)
        assert positions.tolist() == list(range(7))
        query.close()


def test_a_full_spool_leaves_the_rest_in_the_queue(jobs, tmp_path):
    jobs.put_many(numbered(0, 1000))
    address = Address("jobs").exactly(jobs)
    spool = Spool.open(address, tmp_path, jobs.item, 1 << 14)
    spool.close()
    query = Query(tmp_path)
    found = []
    for _ in range(100):
        query.drainer.drain(1000)
        end = query.spool.log.end
        found += unpacked(query.spool.log.read(query.reader.committed, end))[0]["number"].tolist()
        query.reader.commit(end)
        if len(found) >= 1000:
            break
        assert 0 < end < 1000
    assert sorted(found) == list(range(1000))
    assert jobs.empty()
    query.close()


def test_a_spool_of_another_queue_is_refused(jobs, tmp_path):
    query = Query(tmp_path)
    query.close()
    jobs.unlink()
    with (
        penstock.BoundedQueue.create("jobs", 16, item=TICK),
        pytest.raises(ValueError, match="belongs to another queue"),
    ):
        Query(tmp_path)


def test_the_spools_of_a_queue_are_noted_beside_it_and_are_no_queues(jobs, tmp_path, queue_dir):
    query = Query(tmp_path)
    assert [info.name for info in penstock.queues()] == ["jobs"]
    (notes,) = queue_dir.glob(".spools-*")
    assert [Path(note.read_text()) for note in notes.glob("*.spool")] == [tmp_path]
    assert list(query.spool.others()) == []
    query.close()
    jobs.unlink()
    with penstock.BoundedQueue.create("others", 16, item=TICK):
        Query(tmp_path, "others").close()
    assert notes not in queue_dir.glob(".spools-*"), "those of a queue that is gone go with the next"


def stream_of(jobs, directory, **options):
    """The stream reader, as Spark makes and calls it."""
    given = {"queue": "jobs", "spoolDir": str(directory), **options}
    return SpooledStreamReader(SourceOptions.of(given), Address("jobs").exactly(jobs), None)


def test_a_stream_takes_no_more_than_a_batch_may_have(jobs, tmp_path):
    jobs.put_many(numbered(0, 1000))
    stream = stream_of(jobs, tmp_path)
    start = stream.initialOffset()
    end = stream.latestOffset(start, ReadMaxRows(300))
    assert (start["position"], end["position"], jobs.qsize()) == (0, 300, 700)
    assert stream.reportLatestOffset()["position"] == 1000
    assert [(span.start, span.stop) for span in stream.partitions(start, end)] == [(0, 300)]
    stream.stop()


def test_available_now_counts_what_the_dead_have_left(jobs, tmp_path):
    jobs.put_many(numbered(0, 100))
    killed_at("claimed", tmp_path, 60)
    assert 0 < jobs.qsize() < 100
    stream = stream_of(jobs, tmp_path)
    stream.prepareForTriggerAvailableNow()
    end = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    jobs.put_many(numbered(100, 200))
    assert end["position"] == stream.latestOffset(end, ReadAllAvailable())["position"] == 100
    stream.stop()


def test_a_spool_that_another_query_fills_is_a_clear_error(jobs, tmp_path, monkeypatch):
    monkeypatch.setattr(attachment, "BUSY_SECONDS", 0.0)
    one = stream_of(jobs, tmp_path)
    one.initialOffset()
    with pytest.raises(penstock.ReaderInUse, match=r"filled by another query.*option spoolDir"):
        stream_of(jobs, tmp_path).initialOffset()
    stream_of(jobs, tmp_path / "other").initialOffset()
    one.stop()
    stream_of(jobs, tmp_path).initialOffset()


def test_a_checkpoint_whose_spool_is_gone_is_an_error_and_takes_nothing(jobs, tmp_path):
    jobs.put_many(numbered(0, 100))
    stream = stream_of(jobs, tmp_path)
    end = stream.latestOffset(stream.initialOffset(), ReadMaxRows(50))
    stream.stop()
    shutil.rmtree(tmp_path)
    again = stream_of(jobs, tmp_path)
    again.prepareForTriggerAvailableNow()
    with pytest.raises(ValueError, match=r"the checkpoint's spool of the queue 'jobs' is not in .* new checkpoint"):
        again.latestOffset(end, ReadAllAvailable())
    assert jobs.qsize() == 50


def test_a_checkpoint_that_another_query_has_overtaken_is_an_error(jobs, tmp_path):
    jobs.put_many(numbered(0, 100))
    one = stream_of(jobs, tmp_path)
    start = one.initialOffset()
    end = one.latestOffset(start, ReadMaxRows(50))
    one.stop()
    other = stream_of(jobs, tmp_path)
    other.commit(other.latestOffset(other.initialOffset(), ReadAllAvailable()))
    other.stop()
    with pytest.raises(ValueError, match=r"has been read by another query .* spoolDir of its own"):
        stream_of(jobs, tmp_path).partitions(start, end)


@pytest.mark.parametrize("option", [{"startingOffsets": "latest"}, {"startingOffsets": "5"}, {"reader": "mine"}])
def test_options_of_a_log_are_refused(option):
    with pytest.raises(ValueError, match="leave it out"):
        check_spooled(SourceOptions.of({"queue": "jobs", **option}))


def test_a_query_finds_its_spool_again_without_being_told(jobs):
    address = Address("jobs").exactly(jobs)
    assert spool_directory(None, address) == spool_directory(None, Address("jobs").exactly(jobs))
    assert spool_directory(None, address).name == address.segment[:16]
    assert beside("/lake/_checkpoint/") == {"spoolDir": "/lake/_checkpoint.spool"}
    assert beside("s3://lake/_checkpoint") == {}


def test_what_a_queue_overwrites_before_it_is_drained_is_lost_and_reported(tmp_path):
    with penstock.OverwritingQueue.create("jobs", 64, item=TICK) as jobs:
        jobs.put_many(numbered(0, 100))
        stream = stream_of(jobs, tmp_path)
        end = stream.latestOffset(stream.initialOffset(), ReadMaxRows(20))
        jobs.put_many(numbered(100, 200))
        assert stream.reportLatestOffset() == {**end, "position": 84, "lost": 36 + 80}
        stream.latestOffset(end, ReadAllAvailable())
        stream.stop()
        query = Query(tmp_path)
        assert query.numbers().tolist() == [*range(36, 56), *range(136, 200)]
        assert query.positions().tolist() == query.numbers().tolist(), "what is missing between positions was lost"
        assert query.drainer.reader.committed == query.spool.log.end
        query.close()


@pytest.mark.parametrize("step", STEPS)
def test_what_a_killed_drainer_had_claimed_survives_that_the_queue_is_lapped(tmp_path, step):
    """Delivered and lost make up all that was put, to the unit, whenever the drainer is killed."""
    with penstock.OverwritingQueue.create("jobs", 64, item=TICK) as jobs:
        jobs.put_many(numbered(0, 64))
        killed_at(step, tmp_path, 60)
        jobs.put_many(numbered(64, 1000))
        query = Query(tmp_path)
        query.drainer.drain(1000)
        found = query.numbers()
        stats = jobs.stats()
        assert len(np.unique(found)) == len(found)
        claimed = 0 if step == "before claim" else 60
        assert sorted(found.tolist()) == [*range(claimed), *range(936, 1000)]
        assert len(found) + stats.overwritten == stats.puts == 1000
        assert (stats.torn, stats.lost_with_reader, stats.size) == (0, 0, 0)
        query.close()


def drain_until_all_is_done(directory):
    """As a query does, batch by batch, until the queue was shut down and has nothing left."""
    with contextlib.closing(Query(directory)) as query:
        while True:
            is_over = query.queue.stats().is_shut_down
            before = query.spool.log.end
            query.drainer.drain(300)
            if is_over and query.queue.empty() and query.spool.log.end == before:
                os._exit(0)


def put_slowly(first, rows):
    """Where puts overwrite, they wait a moment for room, so that something is left for who reads."""
    with penstock.open("jobs") as jobs:
        for start in range(first, first + rows, 50):
            batch, done = numbered(start, start + 50), 0
            if jobs.kind == "overwriting":
                with contextlib.suppress(penstock.Full):
                    done = jobs.put_many(batch, timeout=0.002, overwrite=False)
            jobs.put_many(batch[done:])
    os._exit(0)


@pytest.fixture
def start():
    """Forks processes; those that nobody has waited for are killed at the end."""
    running = []

    def started(work, *arguments):
        child = os.fork()
        if child == 0:
            try:
                work(*arguments)
            finally:
                os._exit(1)
        running.append(child)
        return child

    yield started
    for child in running:
        with contextlib.suppress(ChildProcessError):  # it was waited for: its number may be another's
            if os.waitpid(child, os.WNOHANG) == (0, 0):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 5))])
def test_killed_at_random_moments_each_item_is_kept_once_or_counted(jobs, tmp_path, start, seed, is_long, capsys):
    """Two drainers share the queue, and are killed and started again while four producers put."""
    rows, kills = (20_000, 50) if is_long else (2000, 8)
    rng = random.Random(seed)
    folders = [tmp_path / "one", tmp_path / "two"]
    drainers = [start(drain_until_all_is_done, folder) for folder in folders]
    producers = [start(put_slowly, number * rows, rows) for number in range(4)]
    for _ in range(kills):
        time.sleep(rng.uniform(0, 0.05))
        victim = rng.randrange(2)
        os.kill(drainers[victim], signal.SIGKILL)
        os.waitpid(drainers[victim], 0)
        drainers[victim] = start(drain_until_all_is_done, folders[victim])
    for producer in producers:
        assert os.waitstatus_to_exitcode(os.waitpid(producer, 0)[1]) == 0
    jobs.shutdown()
    for child in drainers:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    queries = [Query(folder) for folder in folders]
    for query in queries:
        query.drainer.drain(1000)  # what the other one left when it had seen the end
    found = np.concatenate([query.numbers() for query in queries])
    positions = np.concatenate([query.positions() for query in queries])
    lost = KINDS[jobs.kind].count_lost(jobs)
    with capsys.disabled():
        print(f"\n  {jobs.kind}: {kills} kills, {len(found):,} kept, {lost:,} lost")
    assert len(np.unique(positions)) == len(positions)
    assert len(np.unique(found)) == len(found), "none twice"
    assert len(found) + lost == 4 * rows
    assert jobs.unreleased(positions.tolist()) == []
    for query in queries:
        query.close()
