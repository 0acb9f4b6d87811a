"""What is an overwriting queue's own about leases: no put takes from them, and every loss is counted."""

import os
import signal
import threading

import numpy as np
import pytest

import queueduct
from queueduct import OverwritingQueue
from tests.support.published import Published


def check_sum(queue):
    stats = queue.stats()
    gone = stats.gets + stats.overwritten + stats.torn + stats.lost_with_consumer + stats.discarded
    assert stats.puts == gone + stats.size


@pytest.fixture
def feed():
    with OverwritingQueue.create("feed", 4, item="i8") as queue:
        yield queue


def test_what_is_on_lease_is_not_overwritten_and_puts_do_not_wait(feed):
    feed.put_many(range(6))
    with feed.lease(3) as lease:
        feed.put_many(range(6, 1000))
        assert lease.items.tolist() == [2, 3, 4]
        assert lease.positions.tolist() == [2, 3, 4], "how many were put before"
        assert feed.unreleased(range(1000)) == [2, 3, 4]
    assert feed.get_many(9).tolist() == [996, 997, 998, 999]
    assert feed.stats().overwritten == 2 + 1000 - 5 - 4
    check_sum(feed)


def test_given_back_items_are_leased_first_but_got_last(feed):
    feed.put_many(range(3))
    feed.lease(2).give_back()
    with feed.lease(9) as lease:
        assert (lease.items.tolist(), lease.is_redelivered) == ([0, 1], True)
        lease.give_back()
    assert [feed.get_nowait() for _ in range(3)] == [2, 0, 1]
    with pytest.raises(queueduct.Empty):
        feed.get_nowait()
    assert feed.stats().redelivered == 4
    check_sum(feed)


def test_a_get_that_waits_is_woken_by_what_is_given_back(feed):
    feed.put(7)
    lease = feed.lease(1)
    found = []
    getter = threading.Thread(target=lambda: found.append(feed.get(timeout=10)))
    getter.start()
    lease.give_back()
    getter.join()
    assert found == [7]


def test_leases_wait_for_a_place_and_gets_and_puts_do_not():
    with OverwritingQueue.create("narrow", 1, item="i8") as queue:
        held = []
        for number in range(4):
            queue.put(number)
            held.append(queue.lease(9))
        queue.put(4)
        with pytest.raises(queueduct.Empty):
            queue.lease(1, block=False)
        with pytest.raises(queueduct.Empty):
            queue.lease(1, timeout=0.01)
        queue.put(5)
        assert queue.get() == 5
        queue.put(6)
        found = []
        waiter = threading.Thread(target=lambda: found.append(queue.lease(1, timeout=10).items.tolist()))
        waiter.start()
        held.pop().release()
        waiter.join()
        assert found == [[6]]
        check_sum(queue)


def test_a_lease_is_at_most_what_the_shelf_has_room_for():
    with OverwritingQueue.create("wide", 3, item=np.dtype("V2097152")) as queue:
        queue.put_many(np.zeros(3, "V2097152"))
        with queue.lease(100) as lease:
            assert len(lease) == 3
    with OverwritingQueue.create("long", 100_000, item="i8") as queue:
        queue.put_many(range(100_000))
        with queue.lease(1 << 70) as lease:
            assert len(lease) == 65_536
            assert np.array_equal(lease.items, np.arange(65_536))
            assert queue.unreleased(range(65_535, 65_537)) == [65_535]
            lease.give_back()
        with queue.lease(40_000) as lease:
            assert np.array_equal(lease.positions, np.arange(40_000))


def test_a_queue_takes_memory_for_leases_with_its_first_one():
    with OverwritingQueue.create("frames", 4, message_bytes=1 << 20) as queue:
        path = queueduct.segments.names.directory_of() / "frames"
        before = path.stat().st_blocks * 512
        assert before < 5 << 20
        queue.put(bytes(1 << 20))
        with queue.lease(1) as lease:
            assert lease.items == [bytes(1 << 20)]
        assert path.stat().st_blocks * 512 >= before + (4 << 20)


def test_a_shutdown_at_once_ends_leases_and_what_was_given_back(feed):
    feed.put_many(range(3))
    feed.lease(1).give_back()
    feed.shutdown(immediate=True)
    with pytest.raises(queueduct.ShutDown):
        feed.lease(1)
    with pytest.raises(queueduct.ShutDown):
        feed.get()
    assert feed.stats().discarded == 2
    check_sum(feed)


def test_positions_rise_and_are_never_given_twice_though_a_stranger_takes_part(feed):
    stranger = Published(queueduct.segments.names.directory_of() / "feed")
    seen = []
    try:
        for number in range(40):
            feed.put(number)
            if number % 3 == 0:
                stranger.put(np.int64(1000 + number).tobytes())
            if number % 5 == 0:
                stranger.get()
            if number % 7 == 0 and not feed.empty():
                with feed.lease(2) as lease:
                    seen += lease.positions.tolist()
    finally:
        stranger.close()
    assert seen == sorted(set(seen))
    assert len(seen) > 5


@pytest.mark.parametrize("released", [0, 2])
def test_what_a_killed_holder_had_is_delivered_though_the_queue_was_lapped(feed, released):
    feed.put_many(range(4))
    child = os.fork()
    if child == 0:
        lease = feed.lease(3)
        if released:
            lease._holding.release(released)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    feed.put_many(range(4, 100))
    with feed.lease(9, timeout=10) as lease:
        assert (lease.items.tolist(), lease.is_redelivered) == ([0, 1, 2][released:], True)
        assert lease.positions.tolist() == [0, 1, 2][released:]
    check_sum(feed)
    assert feed.stats().lost_with_consumer == 0
