"""Handles: closing them while others are inside, using them afterwards, and what they say of themselves."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading

import pytest

import queueduct
from queueduct import BoundedQueue, QueueClosed
from tests.support.children import open_descriptors
from tests.support.deadline import until, until_parked

MAKERS = {
    "local": lambda: BoundedQueue(4),
    "bytes": lambda: BoundedQueue.create("q", 4),
    "records": lambda: BoundedQueue.create("q", 4, item="S8"),
    "objects": lambda: BoundedQueue.create("q", 4, item=object),
}


@pytest.fixture(params=list(MAKERS))
def q(request):
    return MAKERS[request.param]()


CALLS = {
    "put": lambda q: q.put(b"1"),
    "put_nowait": lambda q: q.put_nowait(b"1"),
    "try_put": lambda q: q.try_put(b"1"),
    "put_many": lambda q: q.put_many([b"1"]),
    "get": lambda q: q.get(),
    "get_nowait": lambda q: q.get_nowait(),
    "try_get": lambda q: q.try_get(),
    "get_many": lambda q: q.get_many(1),
    "iteration": lambda q: next(iter(q)),
    "qsize": lambda q: q.qsize(),
    "empty": lambda q: q.empty(),
    "full": lambda q: q.full(),
    "len": lambda q: len(q),
    "capacity": lambda q: q.capacity,
    "stats": lambda q: q.stats(),
    "shutdown": lambda q: q.shutdown(),
    "aput": lambda q: asyncio.run(q.aput(b"1")),
    "aget": lambda q: asyncio.run(q.aget()),
}


@pytest.mark.parametrize("call", list(CALLS))
def test_a_closed_handle_refuses_everything(q, call):
    q.close()
    with pytest.raises(QueueClosed, match="is closed; open it again"):
        CALLS[call](q)


@pytest.mark.parametrize("call", list(CALLS))
def test_a_handle_that_was_never_initialised_refuses_everything(call):
    class Forgetful(BoundedQueue):
        def __init__(self):
            pass

    with pytest.raises(QueueClosed):
        CALLS[call](Forgetful())


def test_what_is_known_without_memory_is_still_told_after_close(q):
    name, item = q.name, q.item
    q.close()
    assert q.closed
    assert (q.name, q.item) == (name, item)
    assert "closed" in repr(q)
    assert bool(q) is True


def test_close_may_be_called_again(q):
    q.close()
    q.close()
    with q:
        q.close()
    assert q.closed


def test_a_with_statement_closes(q):
    with q as entered:
        assert entered is q
        assert not q.closed
    assert q.closed


def test_a_with_statement_closes_after_an_exception(q):
    with pytest.raises(RuntimeError, match="ours"), q:
        raise RuntimeError("ours")
    assert q.closed


def test_closing_one_handle_leaves_the_others_and_the_items_alone():
    first = BoundedQueue.create("q", 4)
    second = BoundedQueue.open("q")
    first.put(b"1")
    first.close()
    assert second.get() == b"1"
    second.put(b"2")
    second.close()
    assert BoundedQueue.open("q").get() == b"2"


def test_an_initialised_queue_cannot_be_initialised_again(q):
    with pytest.raises(TypeError, match="initialised once"):
        q.__init__(8)
    assert q.capacity == 4


def outcome_of(work):
    """A thread that does the work, and where its result or error will stand."""
    found = []

    def note():
        try:
            found.append(work())
        except BaseException as error:
            found.append(type(error))

    thread = threading.Thread(target=note)
    thread.start()
    return thread, found


WAITS = {
    "get": lambda q: q.get(),
    "get with timeout": lambda q: q.get(timeout=60),
    "get_many": lambda q: q.get_many(3),
    "iteration": lambda q: list(q),
    "put": lambda q: q.put(b"x"),
    "put_many": lambda q: q.put_many([b"x", b"y"]),
}


@pytest.mark.parametrize("wait", list(WAITS))
@pytest.mark.parametrize("count", [1, 3])
def test_whoever_waits_in_a_handle_that_is_closed_gets_queue_closed(q, wait, count):
    if wait.startswith("put"):
        q.put_many([b"1"] * 4)
    waiters = [outcome_of(lambda: WAITS[wait](q)) for _ in range(count)]
    until_parked(*(thread for thread, _ in waiters))
    q.close()
    for thread, found in waiters:
        thread.join(30)
        assert found == [QueueClosed]


def test_a_batch_of_which_a_part_is_in_when_the_handle_is_closed_raises_too(q):
    thread, found = outcome_of(lambda: q.put_many([b"x"] * 9))
    until_parked(thread)
    q.close()
    thread.join(30)
    assert found == [QueueClosed]


def test_others_who_wait_in_handles_of_their_own_wait_on():
    first, second = BoundedQueue.create("q", 4), BoundedQueue.open("q")
    thread, found = outcome_of(second.get)
    until_parked(thread)
    first.close()
    with BoundedQueue.open("q") as third:
        third.put(b"1")
    thread.join(30)
    assert found == [b"1"]


def test_a_handle_closed_with_waiters_inside_gives_its_descriptors_up(q):
    gc.collect()  # what other tests have left
    before = open_descriptors()
    threads = [outcome_of(q.get)[0] for _ in range(3)]
    until_parked(*threads)
    q.close()
    for thread in threads:
        thread.join(30)
    assert open_descriptors() == before - (1 if q.name else 0)  # the locks'


def test_opening_and_closing_leaks_no_descriptor_and_no_mapping():
    BoundedQueue.create("q", 4).close()

    def held():
        with open("/proc/self/maps") as maps:
            return open_descriptors(), sum("queueduct-test" in line for line in maps)

    gc.collect()  # what other tests have left
    before = held()
    for _ in range(50):
        with BoundedQueue.open("q") as q:
            q.put(b"1")
            q.get()
        queueduct.open("q")
    assert held() == before


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


def test_stats_of_a_local_queue():
    q = BoundedQueue(8)
    q.put_many([1, 2, 3])
    q.get()
    stats = q.stats()
    assert stats._fields == queueduct.BoundedStats._fields
    assert (stats.capacity, stats.size, stats.slots_pushed, stats.slots_popped) == (8, 2, 3, 1)
    assert (stats.slot_bytes, stats.participants, stats.participants_limit) == (0, 0, 0)
    assert (stats.tombstones, stats.redelivered, stats.is_shut_down) == (0, 0, False)
    assert stats.total_bytes > 0


def test_stats_of_a_named_queue(queue_dir):
    q = BoundedQueue.create("q", 8, slot_bytes=100, participants=7)
    assert q.stats().participants == 0  # nobody has done anything yet
    q.put_many([b"1", b"2", bytes(150)])
    q.get()
    stats = q.stats()
    assert (stats.capacity, stats.size, stats.slots_pushed, stats.slots_popped) == (8, 2, 4, 1)
    assert (stats.slot_bytes, stats.participants, stats.participants_limit) == (100, 1, 7)
    assert stats.total_bytes == (queue_dir / "q").stat().st_size
    with BoundedQueue.open("q") as other:
        other.get()
        assert q.stats().participants == 2
    assert q.stats().participants == 1


def test_sizes_agree(q):
    for n in range(5):
        assert (q.qsize(), len(q), q.stats().size) == (n, n, n)
        assert q.empty() is (n == 0)
        assert q.full() is (n == 4)
        q.try_put(b"x")


def test_a_queue_is_true_even_when_it_is_empty(q):
    assert q.empty()
    assert q


def test_repr_names_the_queue(q):
    q.put(b"x")
    assert repr(q).startswith("<queueduct.BoundedQueue ")
    assert "capacity=4, size=1" in repr(q)
    assert ("'q'" in repr(q)) == (q.name == "q")


class Counting(BoundedQueue):
    """A subclass with attributes and an initialiser of its own."""

    def __init__(self, capacity=8, label=""):
        super().__init__(capacity)
        self.label = label

    def put(self, item, block=True, timeout=None):
        super().put(item, block, timeout)
        self.__dict__["puts"] = self.__dict__.get("puts", 0) + 1


def test_a_subclass_works_without_a_name():
    q = Counting(4, label="mine")
    q.put(1)
    q.put(2)
    assert (q.puts, q.label, q.capacity, q.get()) == (2, "mine", 4, 1)


def test_a_subclass_works_by_name():
    made = Counting.create("q", 4)
    assert type(made) is Counting
    made.put(b"1")
    opened = Counting.open("q")
    assert type(opened) is Counting
    assert opened.get() == b"1"
    assert made.puts == 1


def test_a_queue_can_be_watched_by_a_weak_reference(q):
    import weakref

    watch = weakref.ref(q)
    assert watch() is q


def test_many_handles_at_once_in_one_thread():
    handles = [BoundedQueue.create("q", 64)] + [BoundedQueue.open("q") for _ in range(40)]
    for i, handle in enumerate(handles):
        handle.put(b"%d" % i)
    assert handles[0].stats().participants == 41
    assert handles[-1].get_many(64) == [b"%d" % i for i in range(41)]
    for handle in handles[1:]:
        handle.close()
    until(lambda: handles[0].stats().participants == 1, "the locks' release")
