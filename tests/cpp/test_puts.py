"""What a C++ program puts, Python gets, and the other way round: the right records, in order, on every kind."""

from __future__ import annotations

import struct
import subprocess
import threading

import numpy as np
import pytest

import queueduct
from tests.spark.rows import TICK, numbered
from tests.support.compiled import error_of, run
from tests.support.deadline import until, until_parked
from tests.support.raw import RawEvents, RawOverwriting, RawSegment

BOOK = np.dtype(
    {
        "names": ["id", "side", "is_firm", "venue", "note", "flags", "levels", "age"],
        "formats": ["u4", "u1", "?", "S6", "U3", "i2", (np.dtype([("price", "f8"), ("sizes", "f4", 2)]), 2), "m8[ns]"],
        "offsets": [0, 4, 5, 6, 12, 24, 32, 64],
        "itemsize": 72,
    }
)


def bounded(**sizes):
    return queueduct.BoundedQueue.create("q", capacity=sizes.pop("capacity", 4096), item=TICK, **sizes)


def overwriting(capacity=4096):
    return queueduct.OverwritingQueue.create("q", capacity, item=TICK)


class Log:
    """An event queue with a reader from its start: it gets what was put."""

    def __init__(self, **sizes):
        self.queue = queueduct.EventQueue.create("q", item=TICK, **sizes)
        self.reader = self.queue.subscribe("test", start="earliest")
        self.get_many = self.reader.get_many
        self.stats, self.shutdown = self.queue.stats, self.queue.shutdown


KINDS = {"bounded": bounded, "overwriting": overwriting, "events": Log}


@pytest.fixture(params=KINDS)
def q(request):
    return KINDS[request.param]()


def gotten(q, count):
    found = q.get_many(4096, timeout=10)
    while len(found) < count:
        found = np.concatenate([found, q.get_many(4096, timeout=10)])
    return found


def test_records_that_cpp_puts_one_by_one_are_those_that_python_gets(peer, q):
    run(peer, "put", "q", 0, 100)
    assert np.array_equal(gotten(q, 100), numbered(0, 100))
    stats = q.stats()
    assert (stats.items_put, stats.participants) == (100, 1 if isinstance(q, Log) else stats.participants)


def test_records_that_cpp_puts_in_a_batch_are_those_that_python_gets(peer, q):
    assert run(peer, "put_many", "q", 5, 3000) == "3000\n"
    assert np.array_equal(gotten(q, 3000), numbered(5, 3005))
    assert q.stats().items_put == 3000


def test_threads_of_a_cpp_program_share_a_handle(peer, q):
    run(peer, "put_by_threads", "q", 4, 500)
    found = gotten(q, 2000)
    assert np.array_equal(np.sort(found["number"]), np.arange(2000))
    for first in range(0, 2000, 500):
        own = found["number"][(found["number"] >= first) & (found["number"] < first + 500)]
        assert np.array_equal(own, np.arange(first, first + 500)), "each thread's are in order"


def test_a_forked_child_of_a_cpp_program_puts_by_the_same_handle(peer, q):
    run(peer, "put_by_fork", "q", 300)
    found = gotten(q, 599)["number"]
    assert np.array_equal(np.sort(found), np.r_[0:300, 301:600])


def test_a_cpp_consumer_gets_what_python_puts(peer):
    q = bounded()
    for batch in (1, 64):
        q.put_many(numbered(0, 200))
        assert run(peer, "get", "q", 200, 1000, batch) == "".join(f"{i}\n" for i in range(200))
    assert (q.stats().items_got, q.stats().bytes_got) == (400, 400 * TICK.itemsize)


@pytest.mark.parametrize("batch", [1, 7])
def test_a_cpp_consumer_gets_and_peeks_at_the_newest_messages(peer, batch):
    with overwriting(10) as q:
        q.put_many(numbered(0, 25))
        assert run(peer, "get_newest", "q", 10, 1000, batch).split() == ["newest", "24", *map(str, range(15, 25))]
        assert q.stats().gets == 10


RAW = {"bounded": (RawSegment, 256), "overwriting": (RawOverwriting, 0), "events": (RawEvents, 256)}


def test_a_sleeping_python_consumer_is_woken_by_a_cpp_producer(peer, q):
    """It would look again within 100 ms; the event word tells that it was woken."""
    raw_of, at = RAW[getattr(q, "queue", q).kind]
    got = []
    getter = threading.Thread(target=lambda: got.extend(q.get_many(9, timeout=30)["number"].tolist()))
    getter.start()
    until_parked(getter)
    with raw_of("q") as raw:
        word = raw.field("control_offset") + at
        before = struct.unpack_from("<I", raw.memory, word)[0]
        run(peer, "put", "q", 7, 1)
        getter.join(30)
        assert (struct.unpack_from("<I", raw.memory, word)[0] >> 1) - (before >> 1) >= 1
    assert got == [7]


def test_a_cpp_handle_stays_open_between_its_puts(peer, q):
    with subprocess.Popen([peer, "put_twice", "q"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "put\n"
        assert q.get_many(1, timeout=10)["number"].tolist() == [0]
        other.communicate("go on\n")
        assert np.array_equal(gotten(q, 1000), numbered(1, 1001))
    assert other.returncode == 0


def test_a_cpp_consumer_waits_for_a_python_producer(peer):
    q = bounded()
    with subprocess.Popen([peer, "get", "q", "500", "30000", "16"], stdout=subprocess.PIPE, text=True) as other:
        until(lambda: q.stats().participants == 1, "the consumer joins")
        for part in range(0, 500, 50):
            q.put_many(numbered(part, part + 50))
        assert other.communicate(timeout=30)[0].split() == list(map(str, range(500)))


def test_a_full_queue_makes_a_cpp_producer_wait_until_its_time_is_up(peer):
    q = bounded(capacity=4)
    q.put_many(numbered(0, 4))
    assert run(peer, "put_within", "q", 0) == "full in time\n"
    assert run(peer, "put_within", "q", 60) == "full in time\n"
    assert run(peer, "put_many", "q", 0, 3, 20) == "0\n"
    q.get_many(3)
    assert run(peer, "put_many", "q", 4, 9, 20) == "3\n", "as many as fit"
    assert q.get_many(9)["number"].tolist() == [3, 4, 5, 6]
    assert q.stats().waits_for_room == 3


def test_a_full_log_makes_a_cpp_producer_wait_until_its_time_is_up(peer):
    q = Log(max_bytes=4096, first_items=8)
    held = int(run(peer, "put_many", "q", 0, 10_000, 50))
    assert 0 < held < 10_000
    assert run(peer, "put_within", "q", 50) == "full in time\n"
    assert np.array_equal(gotten(q, held), numbered(0, held))
    q.reader.commit()
    assert run(peer, "put_within", "q", 5000) == "in early\n"


def test_a_log_that_raises_when_it_is_full_refuses_at_once(peer):
    Log(max_bytes=4096, first_items=8, on_full="raise")
    run(peer, "put_many", "q", 0, 10_000, 5000)
    assert run(peer, "put_within", "q", 5000) == "full early\n"


def test_a_cpp_producer_waits_for_room_and_is_woken(peer):
    q = bounded(capacity=8)
    with subprocess.Popen([peer, "put", "q", "0", "1000"]) as other:
        found = gotten(q, 1000)
        assert other.wait(30) == 0
    assert np.array_equal(found, numbered(0, 1000))


def test_strings_of_bytes_of_any_length_pass(peer):
    items = ["", "a", "b" * 63, "c" * 64, "d" * 300]
    with queueduct.BoundedQueue.create("b", 64) as q:
        run(peer, "put_bytes", "b", *items)
        assert q.get_many(9) == [item.encode() for item in items]
        run(peer, "put_bytes", "b", items[-1])
        assert q.get() == items[-1].encode()
        q.put_many([item.encode() for item in items])
        assert run(peer, "get_bytes", "b", 9).split("\n") == [*items, ""]
        q.put(b"x" * 2000)
        assert run(peer, "get_bytes", "b") == "x" * 2000 + "\n"
        assert run(peer, "get_bytes", "b") == "(nothing)\n"
        assert error_of(peer, "put_bytes", "b", "e" * 5000).startswith(
            "invalid_argument: an item of 5000 bytes can never fit into 'b': the limit is 4096 bytes; create"
        )
    with queueduct.EventQueue.create("e") as log:
        run(peer, "put_bytes", "e", *items)
        assert log.read(0, 5) == [item.encode() for item in items]
    with queueduct.OverwritingQueue.create("o", 4, message_bytes=16) as newest:
        run(peer, "put_bytes", "o", "p" * 16, "q" * 16)
        assert newest.get_many(4) == [b"p" * 16, b"q" * 16]
        assert "exactly 16 bytes: got 3" in error_of(peer, "put_bytes", "o", "abc")


def test_every_kind_of_field_arrives_as_numpy_has_it(peer):
    with queueduct.BoundedQueue.create("books", 4, item=BOOK) as q:
        run(peer, "put_book", "books")
        book = q.get()
    assert book.tolist()[:6] == (7, 1, True, b"XPAR", "\u00e9", -5)
    assert book["levels"]["price"].tolist() == [1.5, 2.5]
    assert book["levels"]["sizes"].tolist() == [[2, 3], [4, 5]]
    assert book["age"] == np.timedelta64(12, "ns")


def test_a_record_is_filled_up_to_whole_words_of_a_message(peer):
    odd = np.dtype([("sym", "S8"), ("px", "f8"), ("ts", "M8[us]"), ("number", "i8"), ("side", "u1")])
    with queueduct.OverwritingQueue.create("o", 4, item=odd) as q:
        assert "has 32" in error_of(peer, "put", "o", 0, 1), "40 bytes a message are not the record's 33"
        assert q.empty()


def test_a_daemon_that_closes_its_descriptors_keeps_what_it_holds(peer):
    q = bounded()
    assert run(peer, "put_without_descriptors", "q") == "closed to another thread\n"
    assert q.get_many(9)["number"].tolist() == [0, 1]


def test_shutting_down_ends_producers_and_consumers_of_both_languages(peer, q):
    run(peer, "put", "q", 0, 3)
    q.shutdown()
    assert error_of(peer, "put", "q", 3, 1) == "ShutDown: the queue 'q' is shut down"
    assert len(gotten(q, 3)) == 3
    with pytest.raises(queueduct.ShutDown):
        q.get_many(1)


def test_cpp_shuts_a_queue_down_and_drains_it(peer):
    q = bounded()
    q.put_many(numbered(0, 3))
    run(peer, "shut_down", "q")
    with pytest.raises(queueduct.ShutDown):
        q.put(numbered(0, 1)[0])
    assert run(peer, "get", "q", 3, 1000, 1).split() == ["0", "1", "2"]
    assert error_of(peer, "get", "q", 1, 1000, 1) == "ShutDown: the queue 'q' is shut down"


def test_the_participants_of_a_cpp_program_are_listed_with_their_counters(peer, q):
    queue = getattr(q, "queue", q)
    with subprocess.Popen([peer, "put_twice", "q"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "put\n"
        (own,) = [line for line in queue.participants() if line.pid == other.pid]
        assert (own.alive, own.items_put, own.command.endswith("put_twice q")) == (True, 1, True)
        other.communicate("\n")
