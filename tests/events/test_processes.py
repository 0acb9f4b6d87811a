"""Processes and a log: forks in the middle of things, exits with everything open, and what is left behind: nothing."""

from __future__ import annotations

import os
import signal

import pytest

import queueduct
from queueduct import EventQueue, QueueClosed
from tests.support.children import open_descriptors
from tests.support.deadline import until


@pytest.fixture
def q():
    with EventQueue.create("q", max_bytes=1 << 16) as made:
        yield made


@pytest.mark.parametrize("name", [None, "durable"])
def test_a_reader_stays_with_its_process_and_a_childs_end_does_it_no_harm(q, children, name):
    reader = q.subscribe(name, "earliest")

    def work():
        for call in (reader.get, reader.try_get, lambda: reader.position, reader.commit, lambda: next(reader)):
            with pytest.raises(QueueClosed, match="stays with the process that subscribed"):
                call()
        reader.close()

    assert children.wait(children.fork(work)) == 0
    assert [(info.name, info.is_attached) for info in q.readers()] == [(name, True)]
    q.put(b"1")
    assert reader.get() == b"1"


def test_a_child_that_only_exits_frees_nothing_of_its_parents(q, children):
    reader = q.subscribe(start="earliest")
    q.put(b"1")
    assert children.wait(children.fork(lambda: None)) == 0
    with EventQueue.open("q") as other:
        assert [info.is_attached for info in other.readers()] == [True]
    assert reader.get() == b"1"


def test_a_durable_reader_of_a_parent_is_not_a_childs_to_take(q, children):
    reader = q.subscribe("mine")

    def work():
        with pytest.raises(queueduct.ReaderInUse):
            q.subscribe("mine")

    assert children.wait(children.fork(work)) == 0
    reader.close()
    assert children.wait(children.fork(lambda: q.subscribe("mine").get_many)) == 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_readers_of_a_process_that_dies_go_or_stay_as_they_should(q, children, number):
    read_end, write_end = os.pipe()

    def work():
        kept = [q.subscribe(start="earliest"), q.subscribe("durable", "earliest")]
        kept[1].get()
        kept[1].commit()
        os.write(write_end, b"x")
        signal.pause()

    q.put_many([b"1", b"2"])
    pid = children.fork(work)
    assert os.read(read_end, 1) == b"x"
    assert [info.is_attached for info in q.readers()] == [True, True]
    os.kill(pid, number)
    assert children.wait(pid) == -number
    assert [(info.name, info.committed, info.is_attached) for info in q.readers()] == [("durable", 1, False)]
    with q.subscribe("durable") as again:
        assert again.get() == b"2"
    os.close(read_end)
    os.close(write_end)


def test_handles_and_readers_leave_no_descriptor(queue_dir):
    def use():
        with EventQueue.create("q", exist_ok=True) as q, EventQueue.open("q") as other:
            with q.subscribe() as reader, other.subscribe("durable"):
                q.put(b"1")
                assert reader.get() == b"1"
            other.subscribe()  # and is forgotten

    before = open_descriptors()
    for _ in range(20):
        use()
    assert open_descriptors() == before
    queueduct.unlink("q")
    assert list(queue_dir.iterdir()) == []


def test_a_log_on_a_disk_writes_itself_down_in_a_child_too(children, disk):
    """The thread that does so is the parent's; a fork starts its own."""
    with EventQueue.create("q", sync="interval", sync_interval=0.01) as kept:
        kept.put(b"1")

        def work():
            kept.put(b"2")
            until(lambda: kept.stats().synced == 2, "the child's sync")

        assert children.wait(children.fork(work)) == 0
