"""put_once: every item of a sequence is in exactly once, however often the call is repeated."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import queueduct
from queueduct import BoundedQueue, Full, ProducerInfo, QueueClosed, QueueductError, ShutDown, TooManyProducers
from tests.support.cases import CASES, LOCAL
from tests.support.put_once import COUNTED, KINDS, MAKERS, drained


@pytest.fixture(params=MAKERS)
def create(request):
    return MAKERS[request.param]


@pytest.fixture
def q(create):
    with create("q", 8) as made:
        yield made


@pytest.fixture(params=COUNTED)
def counted(request):
    """Of which 8 items are all that it takes."""
    with COUNTED[request.param]("q", 8) as made:
        yield made


# -- what it does ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_repeated_sequence_puts_nothing(create, kind):
    item, make = KINDS[kind]
    q = create("q", 64, item=item)
    items = [make(i) for i in range(7)]
    assert q.put_once(items, "p", 5) == 7
    assert q.put_once(items, "p", 5) == 0
    assert drained(q) == items
    assert q.put_once(items, "p", 5) == 0
    assert q.put_once(items, "p", 4) == 0
    assert q.put_once(items[:2], "p", 900) == 2  # gaps are fine
    assert drained(q) == items[:2]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("create", COUNTED.values(), ids=COUNTED)
def test_a_call_out_of_time_goes_on_where_it_stopped(create, kind):
    item, make = KINDS[kind]
    q = create("q", 32, item=item)
    items = [make(i) for i in range(50)]
    found, missing = [], 50
    while missing:
        try:
            assert q.put_once(items, "p", 1, block=False) == missing
            missing = 0
        except Full:
            missing = 50 - q.producers()[0].done
            found += drained(q)
            assert len(found) == 50 - missing
    assert len(found) >= 50 - 32
    assert found + drained(q) == items
    assert q.put_once(items, "p", 1) == 0


def test_an_array_is_put_as_its_records(create):
    q = create("q", 16, item=[("a", "<i4"), ("b", "<f8")])
    array = np.array([(1, 2.5), (3, 4.5)], dtype=q.item)
    assert q.put_once(array, "p", 0) == 2
    assert [tuple(record) for record in drained(q)] == [(1, 2.5), (3, 4.5)]


def test_it_waits_for_room_and_returns_when_all_are_in(q):
    items = [b"%d" % i for i in range(100)]
    found = []

    def consume():
        while len(found) < len(items):
            found.extend(drained(q))

    consumer = threading.Thread(target=consume)
    consumer.start()
    assert q.put_once(iter(items), "p", 0) == 100
    consumer.join()
    assert found == items


def test_a_timeout_is_kept_and_what_is_in_stays_in(counted):
    start = time.monotonic()
    with pytest.raises(Full, match="8 of 9 items of sequence 0 of the producer 'p' are in; repeat the call"):
        counted.put_once([b"x"] * 9, "p", 0, timeout=0.05)
    assert 0.05 <= time.monotonic() - start < 10
    assert counted.qsize() == 8
    assert counted.producers() == [ProducerInfo("p", 0, 8, 9)]
    drained(counted)
    assert counted.put_once([b"x"] * 9, "p", 0, timeout=0.05) == 1


def test_no_items_are_a_sequence_too(q):
    assert q.put_once([], "p", 3) == 0
    assert q.producers() == [("p", 3, 0, 0)]
    assert q.put_once([b"x"], "p", 2) == 0
    with pytest.raises(ValueError, match="begun with 0 items: 1 items"):
        q.put_once([b"x"], "p", 3)


def test_producers_do_not_know_of_each_other(q):
    assert q.put_once([b"a"], "one", 1) == 1
    assert q.put_once([b"b"], "two", 1) == 1
    assert q.put_once([b"c"], "ünï", 2**63 - 1) == 1
    q.put(b"d")
    assert drained(q) == [b"a", b"b", b"c", b"d"]
    assert q.producers() == [("one", 1, 1, 1), ("two", 1, 1, 1), ("ünï", 2**63 - 1, 1, 1)]


def test_an_item_of_many_slots_is_put_once():
    q = BoundedQueue.create("q", 8, slot_bytes=16)
    items = [b"a" * 100, b"b", b"c" * 128, b"", b"d" * 17]
    found = []
    for _ in range(9):
        try:
            q.put_once(items, "p", 1, timeout=0)
            break
        except Full:
            found += drained(q)
    assert found + drained(q) == items


def test_a_large_batch_leaves_the_gil_to_others(create):
    q = create("q", 4096, item="<u8")
    numbers = np.arange(100_000, dtype="<u8")
    found = []

    reader = q.subscribe() if hasattr(q, "subscribe") else q

    def consume():
        while sum(map(len, found)) < len(numbers):
            found.append(reader.get_many(5000))

    consumer = threading.Thread(target=consume)
    consumer.start()
    assert q.put_once(numbers, "p", 0) == len(numbers)
    consumer.join()
    assert (np.concatenate(found) == numbers).all()


# -- what it refuses ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "\0", "a\0b", "x" * 65, "é" * 33, "\ud800"])
def test_a_name_that_cannot_be_is_refused(q, name):
    with pytest.raises(ValueError, match=r"1 to 64 bytes|without lone surrogates"):
        q.put_once([b"x"], name, 0)
    with pytest.raises(ValueError, match=r"1 to 64 bytes|without lone surrogates"):
        q.forget_producer(name)
    assert q.producers() == []


@pytest.mark.parametrize("name", [None, b"p", 5])
def test_a_name_is_a_str(q, name):
    with pytest.raises(TypeError, match="must be a str"):
        q.put_once([b"x"], name, 0)


@pytest.mark.parametrize("sequence", [-1, 2**63, 2**64, 10**30])
def test_a_sequence_out_of_range_is_refused(q, sequence):
    with pytest.raises(ValueError, match=f"sequence={sequence}"):
        q.put_once([b"x"], "p", sequence)
    assert q.producers() == []


@pytest.mark.parametrize("sequence", [None, True, 1.0, "1"])
def test_a_sequence_is_an_int(q, sequence):
    with pytest.raises(TypeError, match="sequence must be an int"):
        q.put_once([b"x"], "p", sequence)


def test_another_number_of_items_is_refused(counted):
    with pytest.raises(Full):
        counted.put_once([b"x"] * 10, "p", 1, block=False)
    for count in (9, 11):
        with pytest.raises(ValueError, match=rf"begun with 10 items: {count} items"):
            counted.put_once([b"x"] * count, "p", 1, block=False)
    assert counted.producers() == [("p", 1, 8, 10)]


def test_a_later_sequence_is_refused_as_long_as_one_is_unfinished(counted):
    with pytest.raises(Full):
        counted.put_once([b"x"] * 10, "p", 1, block=False)
    with pytest.raises(ValueError, match=r"sequence 1 .* is not complete, 8 of 10 items are in: sequence=2"):
        counted.put_once([b"y"], "p", 2)
    drained(counted)
    assert counted.put_once([b"x"] * 10, "p", 1) == 2
    assert counted.put_once([b"y"], "p", 2) == 1


def test_a_bad_item_leaves_nothing_behind(q):
    for bad in ([b"x", 5], [b"x", b"y" * 10_000], 5):
        with pytest.raises((TypeError, ValueError)):
            q.put_once(bad, "p", 0)
    assert (q.qsize(), q.producers()) == (0, [])
    with pytest.raises(ValueError, match="timeout"):
        q.put_once([b"x"], "p", 0, timeout=-1)


def test_options_are_by_keyword_only(q):
    with pytest.raises(TypeError):
        q.put_once([b"x"], "p", 0, False)


@pytest.mark.parametrize("name", LOCAL)
def test_a_queue_without_a_name_has_no_producers(name):
    local = CASES[name].make(8)
    for use in (lambda: local.put_once([1], "p", 0), local.producers, lambda: local.forget_producer("p")):
        with pytest.raises(ValueError, match="without a name"):
            use()


def test_a_handle_opened_later_knows_what_was_put(q):
    q.put_once([b"x"] * 3, "p", 3)
    q.close()
    with queueduct.open("q") as again:
        assert again.put_once([b"x"] * 3, "p", 3) == 0
        assert again.put_once([b"y"], "p", 4) == 1


def test_a_closed_handle_refuses(q):
    q.close()
    for use in (lambda: q.put_once([b"x"], "p", 0), q.producers, lambda: q.forget_producer("p")):
        with pytest.raises(QueueClosed):
            use()


def test_after_a_shutdown_only_what_is_complete_is_no_error(counted):
    with pytest.raises(Full):
        counted.put_once([b"x"] * 10, "p", 1, block=False)
    counted.put_once([], "other", 1)
    counted.shutdown()
    with pytest.raises(ShutDown):
        counted.put_once([b"x"] * 10, "p", 1)
    assert counted.put_once([], "other", 1) == 0
    assert counted.producers()[0] == ("p", 1, 8, 10)
    assert len(list(counted)) == 8


# -- the table ------------------------------------------------------------------------------------------


def test_a_full_table_says_what_to_do_and_a_forgotten_name_makes_room(create):
    q = create("q", 8, producers=2)
    q.put_once([b"a"], "a", 1)
    q.put_once([b"b"], "b", 1)
    with pytest.raises(TooManyProducers, match=r"all 2 producers .* q\.forget_producer\(name\).* producers="):
        q.put_once([b"c"], "c", 1)
    assert issubclass(TooManyProducers, QueueductError)
    q.forget_producer("a")
    assert q.put_once([b"c"], "c", 1) == 1
    assert [info.name for info in q.producers()] == ["c", "b"]
    with pytest.raises(ValueError, match="no producer named 'a'"):
        q.forget_producer("a")


def test_a_forgotten_producer_begins_anew(q):
    assert q.put_once([b"a"], "p", 7) == 1
    q.forget_producer("p")
    assert q.put_once([b"a"], "p", 3) == 1
    assert drained(q) == [b"a", b"a"]


def test_a_table_of_none_keeps_no_names(create):
    q = create("q", 8, producers=0)
    assert q.producers() == []
    with pytest.raises(TooManyProducers):
        q.put_once([b"a"], "a", 1)
    q.put(b"works")
    assert drained(q) == [b"works"]


def test_32_producers_or_64_of_a_log_have_room_unless_asked_otherwise(q):
    room = 64 if q.kind == "events" else 32
    for i in range(room):
        q.put_once([], str(i), 0)
    with pytest.raises(TooManyProducers):
        q.put_once([], "one more", 0)
    assert len(q.producers()) == room


@pytest.mark.parametrize("producers", [-1, 4097, 2**40])
def test_a_size_of_the_table_that_cannot_be_is_refused(create, producers):
    with pytest.raises(ValueError, match=f"producers must be between 0 and 4096: producers={producers}"):
        create("q", 8, producers=producers)


def test_the_size_of_the_table_is_part_of_a_queues_shape(create):
    create("q", 8, producers=5).close()
    create("q", 8, producers=5, exist_ok=True).close()
    with pytest.raises(queueduct.QueueExists, match="another shape"):
        create("q", 8, exist_ok=True)
