"""A queue that was shut down ends when nothing is on lease any more: what a holder drops or dies with is still done."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import threading
import time

import pytest

import queueduct
from queueduct import Empty, QueueEmpty, ShutDown
from tests.edges.kinds import KINDS, item, number_of
from tests.support.deadline import until, until_parked

LEASING = {name: kind for name, kind in KINDS.items() if kind.has_leases}
LOOKS_SECONDS = 0.25  # two looks for the dead


@pytest.fixture(params=LEASING)
def q(request):
    with LEASING[request.param].create("q") as made:
        yield made


def leased_numbers(q, **options):
    with q.lease(9, **options) as lease:
        return [number_of(got) for got in lease.items]


# Every call by which a consumer gets, as a list of numbers.
GETS = {
    "get": lambda q: [number_of(q.get())],
    "get with a timeout": lambda q: [number_of(q.get(timeout=20))],
    "get_many": lambda q: [number_of(got) for got in q.get_many(9)],
    "iteration": lambda q: [number_of(got) for got in q],
    "lease": leased_numbers,
    "lease with a timeout": lambda q: leased_numbers(q, timeout=20),
    "aget": lambda q: [number_of(asyncio.run(q.aget()))],
    "take": lambda q: [taken_number(q)],
}


def taken_number(q):
    with q.take() as slot:
        return number_of(slot.copy())


def gets_of(q):
    return [name for name in GETS if name != "take" or hasattr(q, "take")]


class Consumer(threading.Thread):
    """Gets by one call until the queue is over; what it got, and how it ended."""

    def __init__(self, q, get):
        super().__init__(name=get)
        self.q, self.get = q, GETS[get]
        self.got, self.end, self.ended_at = [], None, 0.0
        self.start()

    def run(self):
        try:
            while True:
                got = self.get(self.q)
                self.got += got
                if not got:
                    self.end = ShutDown
                    break
        except BaseException as error:
            self.end = type(error)
        self.ended_at = time.monotonic()


@pytest.mark.parametrize("get", GETS)
def test_a_consumer_waits_for_what_is_on_lease_and_gets_what_is_given_back(q, get):
    if get not in gets_of(q):
        return
    q.put(item(7))
    held = q.lease(1)
    q.shutdown()
    consumer = Consumer(q, get)
    until(lambda: consumer.is_alive() and q.stats().leased == 1)
    if get != "aget":
        until_parked(consumer)
    held.give_back()
    consumer.join(20)
    assert (consumer.got, consumer.end) == ([7], ShutDown)
    assert q.stats().leased == 0


@pytest.mark.parametrize("get", GETS)
def test_a_consumer_that_waits_for_a_lease_is_woken_by_its_release(q, get):
    if get not in gets_of(q):
        return
    q.put(item(7))
    held = q.lease(1)
    q.shutdown()
    consumers = [Consumer(q, get) for _ in range(3)]
    if get != "aget":
        for _ in range(4):  # after its first looks one sleeps long
            until_parked(*consumers)
    released_at = time.monotonic()
    held.release()
    for consumer in consumers:
        consumer.join(20)
        assert (consumer.got, consumer.end) == ([], ShutDown)
        assert consumer.ended_at - released_at < 5
    with pytest.raises(ShutDown):
        q.get(timeout=5)


def test_the_release_itself_wakes_all_who_wait(q):
    """Not the clock: of many releases the slowest end comes before a look would have found it."""
    waits = []
    for _ in range(5):
        with type(q).create("r", **({"message_bytes": 64} if q.kind == "overwriting" else {})) as r:
            r.put(item(1))
            held = r.lease(1)
            r.shutdown()
            consumers = [Consumer(r, "get") for _ in range(2)]
            time.sleep(0.03)  # beyond the first looks, which come soon after each other
            until_parked(*consumers)
            released_at = time.monotonic()
            held.release()
            for consumer in consumers:
                consumer.join(20)
            waits.append(max(c.ended_at for c in consumers) - released_at)
            r.unlink()
    assert min(waits) < 0.02


@pytest.mark.parametrize("get", ["get", "lease", "get_many"])
def test_a_holder_that_is_killed_leaves_its_item_to_who_waits(q, get, children):
    q.put(item(7))
    q.put(item(8))

    def hold():
        lease = q.lease(2)
        lease_is_kept.append(lease)
        signal.pause()

    lease_is_kept = []
    pid = children.fork(hold)
    until(lambda: q.empty() and q.stats().leased == 2)
    q.shutdown()
    consumers = [Consumer(q, get) for _ in range(3)]
    until_parked(*consumers)
    os.kill(pid, signal.SIGKILL)
    children.wait(pid)
    killed_at = time.monotonic()
    for consumer in consumers:
        consumer.join(20)
    assert sorted(number for c in consumers for number in c.got) == [7, 8]
    assert [c.end for c in consumers] == [ShutDown] * 3
    assert max(c.ended_at for c in consumers) - killed_at < 2 + 3 * LOOKS_SECONDS


def test_with_a_timeout_it_is_empty_until_the_last_lease_ends(q):
    q.put(item(7))
    q.put(item(8))
    outcomes = []

    def ask():
        for call in (
            lambda: q.get(timeout=0.05),
            q.get_nowait,
            lambda: q.get_many(5, block=False),
            lambda: q.lease(1, block=False),
            lambda: q.lease(1, timeout=0.02),
            lambda: asyncio.run(q.aget(timeout=0.05)),
        ):
            try:
                outcomes.append(call())
            except (Empty, ShutDown) as error:
                outcomes.append(type(error))
        try:
            outcomes.append(q.try_get("nothing"))
        except ShutDown as error:
            outcomes.append(type(error))

    held = q.lease(2)
    q.shutdown()
    run(ask)
    assert outcomes == [QueueEmpty] * 6 + ["nothing"]
    outcomes.clear()
    held.release()
    run(ask)
    assert outcomes == [ShutDown] * 7


def run(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()


def test_who_has_a_lease_itself_is_told_at_once_and_may_ask_again(q):
    """It would wait for itself, or two such for each other."""
    q.put(item(7))
    q.put(item(8))
    mine = q.lease(1)
    theirs = []
    run(lambda: theirs.append(q.lease(1)))
    q.shutdown()
    for call in (q.get, q.get_nowait, lambda: q.lease(1), lambda: q.get_many(3)):
        with pytest.raises(ShutDown):
            call()
    mine.release()
    with pytest.raises(Empty):
        q.get(timeout=0.01)  # now the other one's is waited for
    theirs.pop().give_back()
    assert number_of(q.get()) == 8
    with pytest.raises(ShutDown):
        q.get()


OTHERS = {"opened": lambda q: queueduct.open(q.name), "unpickled": lambda q: pickle.loads(pickle.dumps(q))}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("get", GETS)
def test_who_has_a_lease_by_one_handle_is_told_at_once_by_another(q, get, other):
    """It would wait for itself."""
    if get not in gets_of(q):
        return
    q.put(item(7))
    outcomes = []

    def work():
        held = q.take() if get == "take" else q.lease(1)
        with OTHERS[other](q) as again:
            try:
                outcomes.append(GETS[get](again))
            except ShutDown:
                outcomes.append([])
        with queueduct.open(q.name) as again, pytest.raises(ShutDown):
            again.get_nowait()
        held.release()
        with queueduct.open(q.name) as again, pytest.raises(ShutDown):
            again.get()

    q.shutdown()
    run(work)
    assert outcomes == [[]]


def test_who_has_a_lease_of_another_queue_waits(q):
    with type(q).create("r", **({"message_bytes": 64} if q.kind == "overwriting" else {})) as r:
        r.put(item(1))
        q.put(item(7))
        theirs = []
        run(lambda: theirs.append(q.lease(1)))
        with r.lease(1):
            q.shutdown()
            with pytest.raises(Empty):
                q.get(timeout=0.01)
        theirs.pop().release()
        r.unlink()


def test_two_who_hold_and_ask_for_more_do_not_wait_for_each_other(q):
    for number in (1, 2):
        q.put(item(number))
    ready = threading.Barrier(3)
    ends = []

    def work():
        with q.lease(1):
            ready.wait(20)
            ready.wait(20)
            try:
                q.get()
            except ShutDown:
                ends.append(ShutDown)

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    ready.wait(20)
    q.shutdown()
    ready.wait(20)
    for worker in workers:
        worker.join(20)
    assert ends == [ShutDown] * 2


def test_after_a_fork_the_parents_lease_is_not_the_childs(q, children):
    q.put(item(7))
    held = q.lease(1)
    q.shutdown()

    def ask():
        with pytest.raises(Empty):
            q.get(timeout=0.05)  # the thread that has forked had it, and we are another process

    assert children.wait(children.fork(ask)) == 0
    held.release()


def test_at_once_means_at_once_whatever_is_on_lease(q):
    q.put(item(7))
    q.put(item(8))
    held = q.lease(1)
    consumer_ends = []

    def ask():
        with pytest.raises(ShutDown):
            q.get()
        with pytest.raises(ShutDown):
            q.lease(1)
        consumer_ends.append(True)

    q.shutdown(immediate=True)
    run(ask)
    assert consumer_ends == [True]
    assert number_of(held.items[0]) == 7
    held.give_back()  # dropped with the rest
    run(ask)


def test_stats_tell_how_many_items_are_on_lease(q):
    for number in range(10):
        q.put(item(number))
    assert q.stats().leased == 0
    first = q.lease(4)
    second = q.lease(3)
    assert (q.stats().leased, q.qsize()) == (7, 3)
    first.release(1)  # three go back, and wait for another
    assert (q.stats().leased, q.stats().size, q.qsize()) == (3, 6, 6)
    second.release()
    while q.stats().leased or q.qsize():
        leased_numbers(q, timeout=5)
    assert (q.stats().leased, q.qsize()) == (0, 0)


@pytest.mark.parametrize("kind", ["bounded", "growing"])
def test_long_items_on_lease_count_once(kind):
    with {"bounded": queueduct.BoundedQueue, "growing": queueduct.GrowingQueue}[kind].create(
        "long", slot_bytes=16
    ) as long:
        long.put_many([b"a" * 100, b"b", b"c" * 50])
        with long.lease(3):
            assert long.stats().leased == 3
        assert long.stats().leased == 0


def test_what_is_taken_over_again_and_again_is_counted_once(q):
    for number in range(4):
        q.put(item(number))
    for _ in range(3):
        q.lease(4).give_back()
    held = q.lease(4)
    assert len(held) == 4
    assert held.is_redelivered
    assert q.stats().leased == 4
    held.release()
    assert q.stats().leased == 0


def test_a_taken_slot_is_waited_for_as_a_lease_is():
    with queueduct.SlotQueue.create("s", capacity=4) as s:
        s.put(item(7))
        taken = s.take()
        s.shutdown()
        consumer = Consumer(s, "take")
        until_parked(consumer)
        taken.give_back()
        consumer.join(20)
        assert (consumer.got, consumer.end) == ([7], ShutDown)


def test_every_consumer_ends_when_many_get_the_last_items(q):
    """A get that is just copying is waited for as well, and its end wakes nobody: that must not take long."""
    for number in range(60):
        q.put(item(number))
    consumers = [Consumer(q, "get") for _ in range(4)]
    q.shutdown()
    for consumer in consumers:
        consumer.join(20)
    assert sorted(number for c in consumers for number in c.got) == list(range(60))
    assert [c.end for c in consumers] == [ShutDown] * 4
