"""The spool and its drainer, without Spark: each item once, killed at whichever step between claim and release."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from rows import TICK, check_each_once, numbered

import penstock
from penstock.spark.address import Address
from penstock.spark.drainer import Drainer
from penstock.spark.spool import READER, Spool, packed, spool_item, unpacked

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
    take, append, log, settle = drainer.take, drainer.append, drainer.spool.log, drainer.settle

    def at(name, work):
        def call(*arguments):
            if step == f"before {name}":
                die()
            result = work(*arguments)
            if step in PAST[name]:
                die()
            return result

        return call

    class Dying:
        """The spool's log, with its sync."""

        sync = staticmethod(at("sync", log.sync))

        def __getattr__(self, name):
            return getattr(log, name)

    def taken(rows):
        lease = at("claim", take)(rows)
        if lease is not None:
            lease.release = at("release", lease.release)
        return lease

    drainer.take = taken
    drainer.append = at("append", append)
    drainer.spool.log = Dying()
    settled = iter([settle])  # the first is at the beginning of a drain
    drainer.settle = lambda: next(settled, at("settle", settle))()


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


@pytest.fixture
def jobs():
    with penstock.BoundedQueue.create("jobs", 1024, item=TICK) as queue:
        yield queue


def test_items_go_through_a_spool_with_their_positions(jobs, tmp_path):
    jobs.put_many(numbered(0, 100))
    query = Query(tmp_path)
    query.drainer.drain(30)
    assert (query.spool.log.end, jobs.qsize()) == (30, 70)
    query.drainer.drain(1000)
    assert query.numbers().tolist() == query.positions().tolist() == list(range(100))
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
