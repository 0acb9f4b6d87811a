"""Whether something is true: no queue is, and none is false, since either answer would break a common loop or check.

``while q: q.get()`` would wait for ever if a queue were always true; ``if q:`` and ``q or default`` would take an empty
queue for none if it were false when it is empty.
"""

from __future__ import annotations

import multiprocessing
import queue

import numpy as np
import pytest

import queueduct
import queueduct.multiprocessing
import queueduct.queue
from tests.support.kinds import CLASSES


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("state", ["empty", "with an item", "shut down", "closed"])
def test_a_queue_is_neither_true_nor_false(kind, state):
    q = CLASSES[kind].create("q", item=np.dtype("u8"))
    if state == "with an item":
        q.put(1)
    if state == "shut down":
        q.shutdown()
    if state == "closed":
        q.close()
    with pytest.raises(TypeError, match=rf"neither true nor false.*: bool\(\) of a {CLASSES[kind].__name__}; ask"):
        bool(q)
    with pytest.raises(TypeError, match="neither true nor false"):
        print("true" if q else "false")
    q.close()


@pytest.mark.parametrize(
    "make",
    [
        lambda: queueduct.BoundedQueue(4),
        queueduct.GrowingQueue,
        queueduct.EventQueue,
        lambda: queueduct.IndexQueue(4),
        lambda: queueduct.IndexQueue(4, full=True),
    ],
)
def test_nor_is_one_within_a_process(make):
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(make())


def test_what_the_error_says_works():
    """Ask whether it is None, or for its empty(), or call try_get()."""
    q = queueduct.BoundedQueue(4)
    q.put("one")
    assert q is not None
    got = []
    while not q.empty():
        got.append(q.get())
    q.put("two")
    while (item := q.try_get()) is not None:
        got.append(item)
    assert got == ["one", "two"]


def test_a_reader_and_a_watch_are_objects_like_others_and_a_lease_has_its_items():
    with queueduct.EventQueue.create("log") as log, log.subscribe() as reader, queueduct.watch("log") as watch:
        assert bool(reader) is bool(watch) is True
    with queueduct.BoundedQueue.create("jobs") as q:
        q.put_many([b"one", b"two"])
        lease = q.lease(2)
        assert (len(lease), bool(lease)) == (2, True)
        lease.release()
        assert bool(lease) is True


@pytest.mark.parametrize(
    ("ours", "standard"),
    [
        (queueduct.multiprocessing.Queue, multiprocessing.Queue),
        (queueduct.multiprocessing.JoinableQueue, multiprocessing.JoinableQueue),
        (queueduct.multiprocessing.SimpleQueue, multiprocessing.SimpleQueue),
        (queueduct.queue.Queue, queue.Queue),
        (queueduct.queue.SimpleQueue, queue.SimpleQueue),
    ],
)
def test_a_drop_in_is_true_as_what_it_replaces(ours, standard):
    """With and without items: code that says ``if q:`` means that there is a queue."""
    assert bool(standard()) is bool(ours()) is True
    q = ours()
    q.put(1)
    assert bool(q) is True
    assert not hasattr(q, "__len__")
    assert q.get() == 1
