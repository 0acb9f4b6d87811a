"""Handles: closing them while others are inside, using them afterwards, and what they say of themselves."""

from __future__ import annotations

import asyncio
import gc
import sys
import weakref
from functools import partial

import pytest

import queueduct
from queueduct import BoundedQueue, EventQueue, GrowingQueue, QueueClosed, SlotQueue
from tests.support.children import open_descriptors
from tests.support.deadline import until
from tests.support.lossless import Lossless
from tests.support.threads import parked, results

PUTS = {
    "put": lambda q, item: q.put(item),
    "put_nowait": lambda q, item: q.put_nowait(item),
    "try_put": lambda q, item: q.try_put(item),
    "put_many": lambda q, item: q.put_many([item]),
    "aput": lambda q, item: asyncio.run(q.aput(item)),
    "qsize": lambda q, item: q.qsize(),
    "empty": lambda q, item: q.empty(),
    "full": lambda q, item: q.full(),
    "len": lambda q, item: len(q),
    "capacity": lambda q, item: q.capacity,
    "stats": lambda q, item: q.stats(),
    "shutdown": lambda q, item: q.shutdown(),
}
GETS = {
    "get": lambda q: q.get(),
    "get_nowait": lambda q: q.get_nowait(),
    "try_get": lambda q: q.try_get(),
    "get_many": lambda q: q.get_many(1),
    "iteration": lambda q: next(iter(q)),
    "aget": lambda q: asyncio.run(q.aget()),
}
PRODUCERS = {
    "put_once": lambda q, item: q.put_once([item], "p", 1),
    "producers": lambda q, item: q.producers(),
    "forget_producer": lambda q, item: q.forget_producer("p"),
}
LEASES = {"lease": lambda q, item: q.lease(1), "unreleased": lambda q, item: q.unreleased([0])}
OWN = {
    BoundedQueue: PRODUCERS | LEASES,
    GrowingQueue: PRODUCERS | LEASES,
    Lossless: LEASES,
    SlotQueue: PRODUCERS
    | LEASES
    | {
        "loan": lambda q, item: q.loan(),
        "take": lambda q, item: q.take(),
        "set_capacity": lambda q, item: q.set_capacity(1),
    },
    EventQueue: PRODUCERS
    | {
        "subscribe": lambda q, item: q.subscribe(),
        "unsubscribe": lambda q, item: q.unsubscribe("d"),
        "readers": lambda q, item: q.readers(),
        "read": lambda q, item: q.read(0, 0),
        "end": lambda q, item: q.end,
        "earliest": lambda q, item: q.earliest,
        "clear": lambda q, item: q.clear(),
        "keep_last": lambda q, item: q.keep_last(1),
        "sync": lambda q, item: q.sync(),
        "is_shut_down": lambda q, item: q.is_shut_down,
    },
}


def calls_of(case, q, reader):
    """All calls of a queue and of what gets from it, by their names."""
    found = {name: partial(call, q, case.item(1)) for name, call in (PUTS | OWN[case.cls]).items()}
    return found | {name: partial(call, reader) for name, call in GETS.items()}


# -- closed, and never made --------------------------------------------------------------------------------


def test_a_closed_handle_refuses_everything(case):
    q = case.make(4)
    reader = case.consumer(q)
    calls = calls_of(case, q, reader)
    q.close()
    for call in calls.values():
        with pytest.raises(QueueClosed, match="is closed; open it again"):
            call()


def test_a_handle_that_was_never_initialised_refuses_everything(plain):
    class Forgetful(plain.cls):
        def __init__(self):
            pass

    for q in (Forgetful(), plain.cls.__new__(plain.cls)):
        calls = calls_of(plain, q, q)
        for name in GETS if plain.is_for_all else ():
            calls.pop(name)  # a reader comes of subscribe()
        for call in calls.values():
            with pytest.raises(QueueClosed):
                call()
        q.close()


def test_what_is_known_without_memory_is_still_told_after_close(case):
    q = case.make(4)
    name, item = q.name, q.item
    q.close()
    assert q.closed
    assert (q.name, q.item) == (name, item)
    assert "closed" in repr(q)


def test_close_may_be_called_again(plain):
    q = plain.make(4)
    q.close()
    q.close()
    with q:
        q.close()
    assert q.closed


def test_a_with_statement_closes_also_after_an_exception(plain):
    with plain.make(4) as q:
        assert not q.closed
    assert q.closed
    with pytest.raises(RuntimeError, match="ours"), plain.make(4, "other") as q:
        raise RuntimeError("ours")
    assert q.closed


def test_closing_one_handle_leaves_the_others_and_the_items_alone(plain_named):
    first = plain_named.make(4)
    second = queueduct.open("q")
    reader = plain_named.consumer(second)
    first.put(plain_named.item(1))
    first.close()
    assert plain_named.number(reader.get()) == 1
    second.put(plain_named.item(2))
    second.close()
    left = plain_named.consumer(queueduct.open("q")).get_many(9)
    assert plain_named.numbers(left)[-1:] == [2]


def test_an_initialised_queue_cannot_be_initialised_again(plain):
    q = plain.make(4)
    capacity = q.capacity
    with pytest.raises(TypeError, match=r"initialised once|use (Slot|Overwriting)Queue\.create"):
        q.__init__()
    assert q.capacity == capacity


# -- waiting inside ----------------------------------------------------------------------------------------

WAITS = {
    "get": lambda q, reader, case: reader.get(),
    "get with timeout": lambda q, reader, case: reader.get(timeout=60),
    "get_many": lambda q, reader, case: reader.get_many(3),
    "iteration": lambda q, reader, case: list(reader),
    "put": lambda q, reader, case: q.put(case.item(7)),
    "put_many": lambda q, reader, case: q.put_many(case.items(7, 8)),
    "half a put_many": lambda q, reader, case: q.put_many(case.items(*range(3000))),
}


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("count", [1, 3])
def test_a_wait_in_a_handle_that_is_closed_raises_queue_closed(plain, wait, count):
    q = plain.make(4)
    readers = [plain.consumer(q) for _ in range(count)]
    if wait.startswith("put"):
        plain.fill(q)
    waiters = parked(partial(WAITS[wait], q, reader, plain) for reader in readers)
    q.close()
    assert results(waiters) == [QueueClosed] * count


def test_waits_in_other_handles_go_on(plain_named):
    first, second = plain_named.make(4), queueduct.open("q")
    waiters = parked([plain_named.consumer(second).get])
    first.close()
    with queueduct.open("q") as third:
        third.put(plain_named.item(1))
    assert plain_named.numbers(results(waiters)) == [1]


# -- what is left behind -----------------------------------------------------------------------------------


def held():
    """Descriptors and mappings of queues of this test."""
    gc.collect()  # what other tests have left
    with open("/proc/self/maps") as maps:
        return open_descriptors(), sum("queueduct-test" in line for line in maps)


def test_a_handle_closed_with_waiters_inside_leaves_nothing(plain):
    before = held()
    q = plain.make(4)
    waiters = parked(plain.consumer(q).get for _ in range(3))
    q.close()
    results(waiters)
    del waiters
    assert held() == before


def test_opening_and_closing_leaks_no_descriptor_and_no_mapping(plain_named):
    before = held()
    plain_named.make(4).close()
    for _ in range(50):
        with queueduct.open("q") as q:
            reader = plain_named.consumer(q)
            q.put(plain_named.item(1))
            reader.get()
        reader = q = None
        queueduct.open("q")
    assert held() == before


# -- in the middle of a call -------------------------------------------------------------------------------

CLOSE_IN_THE_MIDDLE = """
import sys, threading, time, numpy, queueduct
from tests.support.deadline import until
how, attempt = sys.argv[1], 0
length = 16 << 20
for attempt in range(20):
    if how in ("put", "get"):
        q = queueduct.BoundedQueue.create(f"q{attempt}", 32, slot_bytes=1 << 20)
        item = bytes(length)
    elif how == "put_many of bytes":
        q = queueduct.BoundedQueue.create(f"q{attempt}", 32, slot_bytes=1 << 20)
        item = [bytes(1 << 20)] * 16
    else:
        q = queueduct.BoundedQueue.create(f"q{attempt}", 32, item=numpy.dtype(("u1", (1 << 20,))))
        item = numpy.zeros((16, 1 << 20), "u1")
    outcome = []
    if how.startswith("get"):
        q.put_many(item) if how == "get_many of records" else q.put(item)
    started = threading.Event()
    def work():
        started.set()
        try:
            if how == "put":
                q.put(item)
            elif how == "get":
                assert q.get() == item
            elif how == "get_many of records":
                assert len(q.get_many(16)) == 16
            else:
                assert q.put_many(item) == 16
            outcome.append("done")
        except queueduct.QueueClosed:
            outcome.append("closed")
    thread = threading.Thread(target=work)
    thread.start()
    started.wait()
    if attempt % 4:
        time.sleep(attempt % 4 * 0.001)     # somewhere in the copy
    q.close()
    thread.join(60)
    with queueduct.open(f"q{attempt}") as again:
        # whoever was told "done" is right, and nothing that was got or refused is half there
        is_in = again.qsize() > 0
        assert is_in == ((outcome == ["done"]) ^ how.startswith("get")), (outcome, is_in)
    queueduct.unlink(f"q{attempt}")
"""


@pytest.mark.parametrize("how", ["put", "get", "put_many of bytes", "put_many of records", "get_many of records"])
def test_closing_in_the_middle_of_a_long_copy_lets_it_finish(children, how):
    """Allowed: the call is done before the close, or refused because of it. Either way the queue knows the same."""
    children.run(CLOSE_IN_THE_MIDDLE, how)


CLOSE_WHILE_CONVERTING = """
import sys, numpy, queueduct
kind, call = sys.argv[1:]
item = {"objects": object, "records": "f8", "bytes": bytes}[kind]
q = queueduct.BoundedQueue.create("q", 4, item=item)
class Closing:
    def close(self):
        q.close()
        return 1.5
    def __reduce__(self):
        return float, (self.close(),)
    __float__ = close
    def __array__(self, dtype=None, copy=None):
        return numpy.array(self.close(), dtype=dtype)
class Lending(Closing):
    def __buffer__(self, flags):
        self.close()
        return memoryview(b"1")
if kind == "bytes":
    Closing = Lending
def generator():
    yield from (b"1", b"2") if kind == "bytes" else (1.0, 2.0)
    q.close()
count = 0
try:
    if call == "put":
        q.put(Closing())
        count = 1
    elif call == "put_many":
        count = q.put_many([Closing()])
    else:
        count = q.put_many(generator())
except queueduct.QueueClosed:
    pass
assert q.closed
print(count == queueduct.open("q").qsize())
"""


@pytest.mark.parametrize("call", ["put", "put_many", "generator"])
@pytest.mark.parametrize("kind", ["objects", "records", "bytes"])
def test_an_item_that_closes_the_queue_while_it_is_converted_does_no_harm(children, kind, call):
    """Allowed: what was said to be in is in, or the call was refused."""
    if kind == "bytes" and call != "generator" and sys.version_info < (3, 12):
        pytest.skip("only from Python 3.12 on a class can be a buffer")
    assert children.run(CLOSE_WHILE_CONVERTING, kind, call) == "True\n"


def test_a_thread_that_closes_while_another_one_pickles_does_no_harm(children):
    out = children.run(
        """
import threading, queueduct
q = queueduct.BoundedQueue.create("q", 4, item=object)
pickling, closed = threading.Event(), threading.Event()
class Slow:
    def __reduce__(self):
        pickling.set()
        closed.wait(30)
        return int, ()
def close():
    pickling.wait(30)
    q.close()
    closed.set()
threading.Thread(target=close).start()
count = 0
try:
    q.put(Slow())
    count = 1
except queueduct.QueueClosed:
    pass
print(count == queueduct.open("q").qsize())
"""
    )
    assert out == "True\n"


# -- what it says of itself --------------------------------------------------------------------------------


def test_stats_of_a_local_queue():
    q = BoundedQueue(8)
    q.put_many([1, 2, 3])
    q.get()
    stats = q.stats()
    assert stats._fields == queueduct.BoundedStats._fields
    assert (stats.capacity, stats.size, stats.push_position, stats.pop_position) == (8, 2, 3, 1)
    assert (stats.slot_bytes, stats.participants, stats.participants_limit) == (0, 0, 0)
    assert (stats.tombstones, stats.redelivered, stats.is_shut_down) == (0, 0, False)
    assert stats.resident_bytes > 0


def test_stats_of_a_named_queue(queue_dir):
    q = BoundedQueue.create("q", 8, slot_bytes=100, participants=7)
    assert q.stats().participants == 0  # nobody has done anything yet
    q.put_many([b"1", b"2", bytes(150)])
    q.get()
    stats = q.stats()
    assert (stats.capacity, stats.size, stats.push_position, stats.pop_position) == (8, 2, 4, 1)
    assert (stats.slot_bytes, stats.participants, stats.participants_limit) == (100, 1, 7)
    assert stats.resident_bytes == (queue_dir / "q").stat().st_blocks * 512 > 8 * 100
    with BoundedQueue.open("q") as other:
        other.get()
        assert q.stats().participants == 2
    assert q.stats().participants == 1


def test_sizes_agree(counted):
    q = counted.make(4)
    for n in range(5):
        assert (q.qsize(), len(q), q.stats().size) == (n, n, n)
        assert q.empty() is (n == 0)
        assert q.full() is (n == 4)
        q.try_put(counted.item(n))


def test_repr_names_the_queue(plain):
    q = plain.make(4)
    q.put(plain.item(1))
    assert repr(q).startswith(f"<queueduct.{plain.cls.__name__} ")
    assert f"capacity={q.capacity}, size=1" in repr(q)
    assert ("'q'" in repr(q)) == (q.name == "q")


def test_a_queue_can_be_watched_by_a_weak_reference(plain):
    q = plain.make(4)
    assert weakref.ref(q)() is q


def test_many_handles_at_once_in_one_thread():
    handles = [BoundedQueue.create("q", 64)] + [BoundedQueue.open("q") for _ in range(40)]
    for i, handle in enumerate(handles):
        handle.put(b"%d" % i)
    assert handles[0].stats().participants == 41
    assert handles[-1].get_many(64) == [b"%d" % i for i in range(41)]
    for handle in handles[1:]:
        handle.close()
    until(lambda: handles[0].stats().participants == 1, "the locks' release")
