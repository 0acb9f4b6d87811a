"""Puts and gets of objects and of bytes."""

from collections.abc import Iterator
from typing import Any, assert_type

import numpy as np

from queueduct import BoundedQueue, GrowingQueue, Lease, OverwritingQueue, SlotQueue, TakenSlot
from queueduct.multiprocessing import JoinableQueue
from queueduct.queue import Queue


class Job:
    number = 3


def of_objects(q: BoundedQueue[Job]) -> None:
    assert_type(q.get(), Job)
    assert_type(q.get_nowait(), Job)
    assert_type(q.try_get(), Job | None)
    assert_type(q.try_get(0), Job | int)
    assert_type(q.get_many(10), list[Job])
    assert_type(iter(q), Iterator[Job])
    assert_type([job.number for job in q], list[int])
    assert_type(q.lease(10), Lease[Job])
    assert_type(q.lease(10).items, list[Job])
    with q.lease(10) as lease:
        assert_type(lease.items[0], Job)
    q.put(Job())
    q.put(3)  # error: arg-type
    q.put_nowait("job")  # error: arg-type
    q.try_put(None)  # error: arg-type
    q.put_many([Job(), Job()])
    q.put_many([3])  # error: list-item
    q.put_once([Job()], "producer", 1)
    q.put_once([3], "producer", 1)  # error: list-item
    assert q.get().name  # error: attr-defined
    assert q.lease(10).items.number  # error: attr-defined


def of_bytes(q: GrowingQueue[bytes]) -> None:
    assert_type(q.get(), bytes)
    assert_type(q.get_many(10), list[bytes])
    assert_type(q.lease(10).items, list[bytes])
    q.put(b"line")
    q.put(bytearray(b"line"))
    q.put(memoryview(b"line"))
    q.put(np.zeros(3))
    q.put("line")  # error: call-overload
    q.put_many([b"line", bytearray(b"line")])
    q.put_many(["line"])  # error: list-item
    q.put_once(["line"], "producer", 1)  # error: list-item


def of_the_latest(q: OverwritingQueue[Job]) -> None:
    assert_type(q.peek(), Job | None)
    assert_type(q.peek(0), Job | int)
    assert_type(q.latest(), tuple[Job, int])
    assert_type([job.number for job in q.readings()], list[int])
    q.put(Job(), overwrite=False)
    q.put(3, overwrite=False)  # error: arg-type


def of_slots(q: SlotQueue[bytes]) -> None:
    assert_type(q.take(), TakenSlot[bytes])
    assert_type(q.take().copy(), bytes)
    with q.take() as slot:
        assert_type(slot.copy(), bytes)
    assert_type(q.put(b"frame", overwrite=True), Any)
    q.put(3)  # error: call-overload


def of_the_drop_ins(threads: Queue[Job], processes: JoinableQueue[Job]) -> None:
    assert_type(threads.get(), Job)
    assert_type(processes.get(), Job)
    threads.put(3)  # error: arg-type
    processes.put(3)  # error: arg-type


def a_producer_of_any_jobs_is_no_consumer_of_bytes(q: BoundedQueue[object]) -> BoundedQueue[bytes]:
    return q  # error: return-value
