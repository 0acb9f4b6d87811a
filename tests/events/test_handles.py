"""Names, handles and looks of an event queue: open by kind, pickle by name, close, unlink, stats."""

from __future__ import annotations

import copy
import gc
import multiprocessing
import pickle

import numpy as np
import pytest

import queueduct
from queueduct import BoundedQueue, EventQueue, EventStats, QueueClosed, QueueExists, QueueInfo, QueueNotFound
from tests.support.children import open_descriptors
from tests.support.ticks import TICK, numbers


class Tagged(EventQueue):
    """A subclass: it must come back as one."""


def test_open_finds_the_kind_by_itself():
    EventQueue.create("events", item=TICK).close()
    BoundedQueue.create("bounded", 4).close()
    assert type(queueduct.open("events")) is EventQueue
    assert type(queueduct.open("bounded")) is BoundedQueue
    assert type(EventQueue.open("events")) is EventQueue
    assert type(Tagged.open("events")) is Tagged
    assert queueduct.open("events").item == TICK


def test_a_queue_of_another_kind_is_refused_by_its_name():
    EventQueue.create("events").close()
    BoundedQueue.create("bounded", 4).close()
    with pytest.raises(TypeError, match="'bounded' is a queue of kind 'bounded', not 'events'"):
        EventQueue.open("bounded")
    with pytest.raises(TypeError, match="'events' is a queue of kind 'events', not 'bounded'"):
        BoundedQueue.open("events")
    with pytest.raises(TypeError, match="of kind 'bounded'"):
        EventQueue.create("bounded", exist_ok=True)


def test_queues_lists_them_with_their_kind():
    EventQueue.create("b").close()
    BoundedQueue.create("a", 4).close()
    assert queueduct.queues() == [QueueInfo("a", "bounded"), QueueInfo("b", "events")]
    queueduct.unlink("b")
    assert queueduct.queues() == [QueueInfo("a", "bounded")]
    with pytest.raises(QueueNotFound):
        EventQueue.open("b")


SHAPE = {
    "item": "<u8",
    "max_bytes": 1 << 20,
    "on_full": "raise",
    "first_items": 8,
    "chunk_bytes": 8192,
    "readers": 5,
    "producers": 6,
    "participants": 7,
    "sync": "never",
    "sync_interval": 2.0,
}


def test_exist_ok_opens_a_queue_of_the_same_shape():
    with EventQueue.create("q", **SHAPE) as q:
        q.put(5)
        with EventQueue.create("q", **SHAPE, exist_ok=True) as again:
            assert again.segment_id == q.segment_id
            assert again.subscribe(start="earliest").get() == 5
        with pytest.raises(QueueExists, match="open it, or unlink it first"):
            EventQueue.create("q", **SHAPE)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("item", "<i8"),
        ("max_bytes", 1 << 21),
        ("on_full", "wait"),
        ("first_items", 9),
        ("chunk_bytes", 16384),
        ("readers", 6),
        ("producers", 7),
        ("participants", 8),
        ("sync", "always"),
        ("sync_interval", 1.0),
    ],
)
def test_exist_ok_refuses_another_shape(field, value):
    EventQueue.create("q", **SHAPE).close()
    descriptors = open_descriptors()
    with pytest.raises(QueueExists, match="exists and is of another shape"):
        EventQueue.create("q", **SHAPE | {field: value}, exist_ok=True)
    assert open_descriptors() == descriptors


def test_a_segment_id_tells_a_queue_from_its_successor():
    with EventQueue.create("q") as q:
        first = q.segment_id
        assert type(first) is bytes
        assert len(first) == 16
        assert queueduct.open("q").segment_id == first
        q.unlink()
    assert EventQueue.create("q").segment_id != first
    assert EventQueue().segment_id is None


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickled_queue_is_the_same_queue(protocol):
    q = EventQueue.create("q", item=object)
    again = pickle.loads(pickle.dumps(q, protocol))
    reader = again.subscribe()
    q.put({"a": 1})
    assert reader.get() == {"a": 1}
    assert type(pickle.loads(pickle.dumps(Tagged.create("t")))) is Tagged


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_is_another_handle_of_the_same_queue(copied):
    q = EventQueue.create("q")
    again = copied(q)
    q.put(b"1")
    q.close()
    assert again.subscribe(start="earliest").get() == b"1"


def test_a_recreated_queue_is_not_the_one_that_was_pickled():
    q = EventQueue.create("q")
    data = pickle.dumps(q)
    q.unlink()
    with pytest.raises(QueueNotFound):
        pickle.loads(data)
    EventQueue.create("q")
    with pytest.raises(queueduct.QueueReplaced):
        pickle.loads(data)


@pytest.mark.parametrize("dump", [pickle.dumps, copy.copy])
def test_a_queue_without_a_name_cannot_be_pickled(dump):
    with pytest.raises(TypeError, match=r"use EventQueue\.create"):
        dump(EventQueue())


def total(queue, back):
    """What the other process does."""
    back.put(sum(int(item) for item in queue.subscribe("total")))


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_queue_goes_to_another_process_however_that_is_started(method):
    q, back = EventQueue.create("q", item="<u8"), EventQueue.create("back", item=object)
    q.subscribe("total").close()
    answer = back.subscribe()
    process = multiprocessing.get_context(method).Process(target=total, args=(q, back))
    process.start()
    q.put_many(numbers(1000))
    q.shutdown()
    assert answer.get(timeout=60) == 499_500
    process.join(60)
    assert process.exitcode == 0


CALLS = {
    "put": lambda q: q.put(b"1"),
    "try_put": lambda q: q.try_put(b"1"),
    "put_many": lambda q: q.put_many([b"1"]),
    "put_once": lambda q: q.put_once([b"1"], "p", 1),
    "producers": lambda q: q.producers(),
    "forget_producer": lambda q: q.forget_producer("p"),
    "subscribe": lambda q: q.subscribe(),
    "unsubscribe": lambda q: q.unsubscribe("d"),
    "readers": lambda q: q.readers(),
    "read": lambda q: q.read(0, 0),
    "end": lambda q: q.end,
    "earliest": lambda q: q.earliest,
    "clear": lambda q: q.clear(),
    "keep_last": lambda q: q.keep_last(1),
    "sync": lambda q: q.sync(),
    "stats": lambda q: q.stats(),
    "shutdown": lambda q: q.shutdown(),
    "is_shut_down": lambda q: q.is_shut_down,
    "qsize": lambda q: q.qsize(),
    "full": lambda q: q.full(),
    "capacity": lambda q: q.capacity,
}


@pytest.mark.parametrize("call", list(CALLS))
def test_a_closed_handle_refuses_everything(call):
    q = EventQueue.create("q")
    q.close()
    q.close()
    with pytest.raises(QueueClosed, match="this handle of the queue 'q' is closed; open it again"):
        CALLS[call](q)
    assert q.closed
    assert (q.name, q.item) == ("q", bytes)
    assert repr(q) == "<queueduct.EventQueue 'q' closed>"


def test_a_handle_that_was_never_made_refuses_everything():
    q = EventQueue.__new__(EventQueue)
    for call in CALLS.values():
        with pytest.raises(QueueClosed):
            call(q)
    q.close()


def test_a_queue_is_initialised_once():
    for q in (EventQueue(), EventQueue.create("q")):
        with pytest.raises(TypeError, match="initialised once"):
            q.__init__()


def test_close_and_gc_leave_no_descriptor_and_no_mapping(queue_dir):
    descriptors = open_descriptors()
    for i in range(20):
        with EventQueue.create(f"q{i}", item="<u8") as q:
            readers = [q.subscribe(), q.subscribe("d")]
            q.put_many(numbers(100))
            readers[0].get_many(10)
        with EventQueue.open(f"q{i}") as q:
            assert q.end == 100
    del q, readers
    gc.collect()
    assert open_descriptors() == descriptors
    with open("/proc/self/maps") as maps:
        assert str(queue_dir) not in maps.read()


def test_an_unlinked_queue_goes_on_for_those_who_have_it():
    q = EventQueue.create("q", item="<u8")
    reader = q.subscribe()
    q.unlink()
    q.put_many(numbers(50_000))
    assert int(reader.get_many(10**6).sum()) == sum(range(50_000))
    with pytest.raises(ValueError, match="nothing to unlink"):
        EventQueue().unlink()


def test_stats_say_what_there_is():
    with EventQueue.create("q", item="<u8", max_bytes=1 << 16, participants=9) as q:
        reader = q.subscribe()
        q.put_many(numbers(10))
        found = q.stats()
        assert isinstance(found, EventStats)
        assert found._replace(resident_bytes=0, repairs=0) == EventStats(
            end=10,
            earliest=0,
            chunk_items=(4, 4, 8),
            used_bytes=16 * 8,
            max_bytes=1 << 16,
            resident_bytes=0,
            readers=1,
            participants=1,
            participants_limit=9,
            is_shut_down=False,
            dropped=0,
            repairs=0,
            synced=0,
        )
        assert reader.lag == len(q) == q.qsize() == 10
        assert not q.empty()
        assert not q.full()
        assert bool(q)
        assert repr(q) == "<queueduct.EventQueue 'q' capacity=65536, size=10>"


def test_looks_need_no_numpy_item():
    """An opener learns the item type from the header."""
    dtype = np.dtype([("sym", "S8"), ("px", "<f8", (2,))])
    EventQueue.create("q", item=dtype).close()
    assert queueduct.open("q").item == dtype
    assert EventQueue().item is object
    assert EventQueue().name is None
