"""join and task_done: every item that was put is done, and what a dead consumer had is not."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

import queueduct
from queueduct import BoundedQueue, EventQueue, GrowingQueue, QueueClosed
from tests.support.cases import CASES, EACH_ONCE, NAMED
from tests.support.deadline import PATIENCE_SECONDS, until

LEASED = [name for name in NAMED if name in EACH_ONCE]
PLAIN_LEASED = [name for name in LEASED if name.endswith(", bytes")]


@pytest.fixture(params=LEASED)
def leased(request):
    """A row with leases."""
    return CASES[request.param]


@pytest.fixture(params=PLAIN_LEASED)
def plain(request):
    return CASES[request.param]


@pytest.fixture(params=[BoundedQueue, GrowingQueue])
def local(request):
    return request.param()


def test_nothing_put_is_nothing_to_wait_for(leased):
    q = leased.make(4)
    assert q.join() is True
    assert q.join(timeout=0) is True


def test_join_waits_for_items_and_for_leases(leased):
    q = leased.make(4)
    q.put_many(leased.items(1, 2))
    assert q.join(timeout=0) is False
    assert leased.number(q.get()) == 1
    assert q.join(timeout=0.01) is False
    with q.lease(1) as lease:
        assert q.empty()
        assert q.join(timeout=0.01) is False
        lease.give_back()
        assert q.join(timeout=0.01) is False
    assert leased.number(q.get()) == 2
    assert q.join() is True


def test_join_ends_soon_after_the_last_release(plain):
    q = plain.make(4)
    q.put(plain.item(1))
    lease = q.lease(1)
    thread = threading.Timer(0.05, lease.release)
    thread.start()
    start = time.monotonic()
    assert q.join(timeout=PATIENCE_SECONDS)
    assert time.monotonic() - start >= 0.04
    thread.join(PATIENCE_SECONDS)


@pytest.mark.parametrize("workers", [1, 3])
def test_an_item_that_follows_from_another_keeps_join_waiting(plain, workers):
    """Each item puts the next before it is released: no join may end in between."""
    q = plain.make(8)
    last = 150
    done = []

    def work():
        try:
            while True:
                with q.lease(1) as lease:
                    number = plain.number(lease.items[0])
                    if number % last != last - 1:
                        q.put(plain.item(number + 1))
                    else:
                        done.append(number)
        except queueduct.ShutDown:
            pass

    threads = [threading.Thread(target=work, daemon=True) for _ in range(workers)]  # a failure must not wait for them
    for thread in threads:
        thread.start()
    for round_ in range(4):
        q.put(plain.item(round_ * last))
        while not q.join(timeout=0):
            assert len(done) <= round_ + 1
        assert len(done) == round_ + 1
    q.shutdown()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()
    assert q.join(timeout=0)


def test_the_task_of_a_killed_holder_is_delivered_again_before_join_ends(plain, children):
    q = plain.make(4)
    q.put(plain.item(1))

    def hold():
        kept = q.lease(1)
        assert kept.is_held
        signal.pause()

    pid = children.fork(hold)
    until(lambda: q.stats().leased == 1, "the lease")
    assert not q.join(timeout=0.02)
    os.kill(pid, signal.SIGKILL)
    assert children.wait(pid) == -signal.SIGKILL
    assert not q.join(timeout=0.05)
    with q.lease(1, timeout=PATIENCE_SECONDS) as lease:
        assert lease.is_redelivered
        assert not q.join(timeout=0.02)
    assert q.join(timeout=PATIENCE_SECONDS)


def test_a_shut_down_queue_is_joined_when_all_is_done_and_a_discarded_one_at_once(plain):
    q = plain.make(4)
    q.put_many(plain.items(1, 2))
    q.shutdown()
    assert not q.join(timeout=0.01)
    assert plain.numbers(q.get_many(2)) == [1, 2]
    assert q.join()
    q = plain.make(4, "other")
    q.put(plain.item(1))
    q.shutdown(immediate=True)
    assert q.join()


def test_a_closed_handle_ends_its_joins(plain):
    q = plain.make(4)
    q.put(plain.item(1))
    thread = threading.Timer(0.05, q.close)
    thread.start()
    with pytest.raises(QueueClosed):
        q.join()
    thread.join(PATIENCE_SECONDS)
    with pytest.raises(QueueClosed):
        q.join()
    with pytest.raises(QueueClosed):
        q.task_done()


def test_a_handler_that_raises_ends_a_join(plain):
    class Interrupted(Exception):
        pass

    def handler(number, frame):
        raise Interrupted

    for q in (plain.make(4), BoundedQueue(4)):
        q.put(plain.item(1))
        before = signal.signal(signal.SIGALRM, handler)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(Interrupted):
                q.join()
        finally:
            signal.signal(signal.SIGALRM, before)
        assert plain.number(q.get()) == 1


def test_task_done_of_a_queue_in_shared_memory_changes_nothing(plain):
    """Code of the standard library calls it after each get, logging's QueueListener for example."""
    for q in (plain.make(4), GrowingQueue.create(None)):
        q.put_many(plain.items(1, 2))
        q.get()
        q.task_done()
        assert not q.join(timeout=0.01)
        with q.lease(1):
            q.task_done()
            assert not q.join(timeout=0.01)
        q.task_done()
        assert q.join()


@pytest.mark.parametrize("timeout", [-1, float("nan")])
def test_a_wrong_timeout_is_refused(plain, timeout):
    for q in (plain.make(4), BoundedQueue(4)):
        with pytest.raises(ValueError, match="timeout must be a non-negative number or None"):
            q.join(timeout)


def test_an_event_queue_has_no_tasks():
    assert not hasattr(EventQueue(), "task_done")


def test_a_local_queue_counts_its_tasks(local):
    assert local.join(timeout=0)
    with pytest.raises(ValueError, match="0 items were put, and all are done"):
        local.task_done()
    local.put_many(range(3))
    local.put(3)
    for _ in range(4):
        assert not local.join(timeout=0)
        local.get()
        assert not local.join(timeout=0)
        local.task_done()
    assert local.join()
    with pytest.raises(ValueError, match="4 items were put, and all are done"):
        local.task_done()


def test_levels_of_a_growing_queue_do_not_confuse_the_count():
    q = GrowingQueue()
    for _ in range(3):
        q.put_many(range(10_000))
        for _ in range(10_000):
            q.get()
            q.task_done()
        assert q.join(timeout=0)
        for _ in range(100):
            q.try_get()  # an empty queue shrinks
        with pytest.raises(ValueError, match="all are done"):
            q.task_done()


def test_threads_that_put_more_before_they_report_keep_join_waiting(local):
    last = 300
    done = []

    def work():
        try:
            while True:
                number = local.get()
                if number % last != last - 1:
                    local.put(number + 1)
                else:
                    done.append(number)
                local.task_done()
        except queueduct.ShutDown:
            pass

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for round_ in range(5):
        local.put(round_ * last)
        assert local.join(timeout=PATIENCE_SECONDS)
        assert len(done) == round_ + 1
    local.shutdown()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()


def test_an_immediate_shutdown_leaves_only_what_was_got(local):
    local.put_many(range(3))
    local.get()
    local.shutdown(immediate=True)
    assert not local.join(timeout=0)
    local.task_done()
    assert local.join()
    with pytest.raises(ValueError, match="all are done"):
        local.task_done()


def test_a_shutdown_at_once_wakes_a_joiner(local):
    local.put(1)
    thread = threading.Timer(0.05, local.shutdown, (True,))
    thread.start()
    assert local.join(timeout=PATIENCE_SECONDS)
    thread.join(PATIENCE_SECONDS)
