"""A durable reader keeps its committed place: over close, over the end of its process, over kill -9."""

from __future__ import annotations

import os
import signal

import pytest

import queueduct
from queueduct import EventQueue
from tests.support.ticks import drain, fill, numbers


@pytest.fixture
def q():
    with EventQueue.create("q", item="<u8") as made:
        made.put_many(numbers(100))
        yield made


def test_position_is_what_comes_next_and_committed_what_will_not_come_again(q):
    reader = q.subscribe("d", start="earliest")
    assert (reader.position, reader.committed, reader.lag) == (0, 0, 100)
    reader.get_many(30)
    assert (reader.position, reader.committed, reader.lag) == (30, 0, 70)
    reader.commit(20)
    assert (reader.position, reader.committed, reader.lag) == (30, 20, 70)
    reader.commit()
    assert (reader.position, reader.committed, reader.lag) == (30, 30, 70)
    q.put(1)
    assert reader.lag == 71


def test_what_was_not_committed_comes_again(q):
    with q.subscribe("d", start="earliest") as reader:
        reader.get_many(50)
        reader.commit(20)
        reader.get_many(10)
    with q.subscribe("d") as reader:
        assert (reader.position, reader.lag) == (20, 80)
        assert reader.get() == 20


def test_start_counts_only_the_first_time(q):
    q.subscribe("d", start=40).close()
    for start in ("latest", "earliest", 0, 77):
        with q.subscribe("d", start=start) as reader:
            assert reader.position == 40


def test_a_commit_never_goes_back(q):
    reader = q.subscribe("d", start="earliest")
    reader.commit(50)
    reader.commit(20)
    assert reader.committed == 50


def test_a_commit_ahead_of_the_reader_takes_it_along(q):
    reader = q.subscribe("d", start="earliest")
    reader.get()
    reader.commit(70)
    assert reader.position == 70
    assert reader.get() == 70
    reader.commit(100)
    assert reader.try_get() is None


@pytest.mark.parametrize("position", [-1, 101, 2**52, 2**70])
def test_a_commit_outside_the_log_is_refused(q, position):
    reader = q.subscribe("d", start="earliest")
    with pytest.raises(ValueError, match=f"position must be between 0 and the end, 100: position={position}"):
        reader.commit(position)
    assert reader.committed == 0


@pytest.mark.parametrize("position", [1.0, "1", True])
def test_a_commit_of_no_number_is_a_type_error(q, position):
    with pytest.raises(TypeError, match="position must be an int"):
        q.subscribe("d").commit(position)


def test_an_ephemeral_reader_has_nothing_to_commit(q):
    with pytest.raises(ValueError, match="only a durable reader commits: subscribe with a name"):
        q.subscribe().commit()


def test_a_place_outlives_every_handle(q):
    reader = q.subscribe("d", start="earliest")
    reader.get_many(30)
    reader.commit()
    q.close()
    with EventQueue.open("q") as again, again.subscribe("d") as reader:
        assert reader.get() == 30


def test_an_iteration_commits_as_it_goes(q):
    reader = q.subscribe("d", start="earliest")
    for item in reader:
        reader.commit()
        if item == 60:
            break
    assert reader.committed == 61


ENDS = {
    "exit": "sys.exit(0)",
    "_exit": "os._exit(0)",
    "an exception": "raise SystemExit(0)",
    "kill": "os.kill(os.getpid(), 9)",
    "kill in an iteration": "[os.kill(os.getpid(), 9) for item in reader]",
    "kill in a view": "reader.view().__enter__(); os.kill(os.getpid(), 9)",
}


@pytest.mark.parametrize("end", list(ENDS))
def test_a_place_outlives_its_process_however_that_ends(q, children, end):
    child = children.start(
        f"""
import os, sys, queueduct
q = queueduct.open("q")
reader = q.subscribe("d", start="earliest")
reader.get_many(40)
reader.commit(30)
other = q.subscribe(start="earliest")
{ENDS[end]}
"""
    )
    assert child.wait(30) == (-signal.SIGKILL if "kill" in end else 0)
    assert [each.name for each in q.readers()] == ["d"]
    with q.subscribe("d") as reader:
        assert drain(reader) == list(range(30, 100))


def test_a_killed_ephemeral_reader_frees_what_it_held(children):
    with EventQueue.create("q", item="<u8", max_bytes=8192) as q:
        child = children.start(
            "import queueduct; q = queueduct.open('q'); r = q.subscribe(); print(1, flush=True); input()"
        )
        child.stdout.readline()
        fill(q)
        with pytest.raises(queueduct.Full):
            q.put(1, timeout=0.05)
        reader = q.subscribe()
        child.kill()
        child.wait(30)
        q.put_many(numbers(100), timeout=30)
        assert len(drain(reader)) >= 100
        assert q.stats().readers == 1


def test_items_are_processed_once_by_a_worker_that_is_killed_again_and_again(children, queue_dir):
    """It commits after each item that it has noted; so at most the one under way is noted twice."""
    q = EventQueue.create("q", item="<u8")
    q.subscribe("worker").close()
    q.put_many(numbers(200))
    log = queue_dir / "log"

    def work():
        with open(log, "ab", buffering=0) as file, EventQueue.open("q") as mine:
            reader = mine.subscribe("worker")
            start = reader.position
            while reader.position < 200:
                item = int(reader.get(timeout=30))
                file.write(b"%d\n" % item)
                reader.commit()
                if item == start + 25:
                    reader.get()
                    os.kill(os.getpid(), 9)

    while children.wait(children.fork(work)) != 0:
        pass
    assert [int(line) for line in log.read_bytes().split()] == list(range(200))


def test_places_of_many_durable_readers_are_independent(q):
    for n in range(20):
        with q.subscribe(f"reader {n}", start="earliest") as reader:
            reader.commit(5 * n)
    for n in reversed(range(20)):
        with q.subscribe(f"reader {n}") as reader:
            assert reader.get() == 5 * n
