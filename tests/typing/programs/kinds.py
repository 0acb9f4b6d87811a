"""What each kind of queue holds, by how it was made."""

from typing import Any, assert_type

import numpy as np

import queueduct
from queueduct import BoundedQueue, EventQueue, GrowingQueue, OverwritingQueue, SlotQueue


class Job:
    number = 3


class Jobs(GrowingQueue[Job]):
    pass


def made_without_a_type() -> None:
    assert_type(BoundedQueue(1024), BoundedQueue[Any])
    assert_type(GrowingQueue(), GrowingQueue[Any])
    assert_type(EventQueue(), EventQueue[Any])
    assert_type(BoundedQueue.open("jobs"), BoundedQueue[Any])
    assert_type(EventQueue.open("jobs").subscribe().get(), Any)


def made_of_bytes() -> None:
    assert_type(BoundedQueue.create("lines"), BoundedQueue[bytes])
    assert_type(GrowingQueue.create("lines", item=bytes), GrowingQueue[bytes])
    assert_type(OverwritingQueue.create("lines"), OverwritingQueue[bytes])
    assert_type(OverwritingQueue.adopt("lines"), OverwritingQueue[bytes])
    assert_type(SlotQueue.create(None, item=bytes), SlotQueue[bytes])
    assert_type(EventQueue.create("lines"), EventQueue[bytes])


def made_of_objects_or_records() -> None:
    assert_type(BoundedQueue.create("jobs", item=object), BoundedQueue[Any])
    assert_type(BoundedQueue.create("ticks", item=np.dtype([("price", "f8")])), BoundedQueue[Any])
    assert_type(SlotQueue.create("frames", item=np.dtype(("f4", (3, 4)))), SlotQueue[Any])
    assert_type(EventQueue.create("ticks", item="f8").subscribe().get_many(10), Any)


def made_of_a_type_that_the_program_names() -> None:
    assert_type(BoundedQueue[Job](1024), BoundedQueue[Job])
    assert_type(BoundedQueue[Job].create("jobs", item=object), BoundedQueue[Job])
    assert_type(EventQueue[np.void].open("ticks"), EventQueue[np.void])
    assert_type(Jobs.create("jobs", item=object), Jobs)
    assert_type(Jobs.open("jobs").get(), Job)
    jobs: BoundedQueue[Job] = BoundedQueue.create("jobs", item=object)
    assert_type(jobs.get(), Job)


def opened_by_name_only() -> None:
    opened = queueduct.open("jobs")
    assert_type(opened.get(), Any)
    assert_type(opened.get_many(10), Any)
    opened.put((1, 2))
    opened.subscribe()  # error: union-attr
    if isinstance(opened, EventQueue):
        assert_type(opened.subscribe().get(), Any)


def annotated_without_a_type(bounded: BoundedQueue, slots: SlotQueue) -> None:
    assert_type(bounded.get(), Any)
    assert_type(bounded.lease(10).items, Any)
    slots.put("anything")


def a_number_is_no_name() -> None:
    BoundedQueue.open(3)  # error: arg-type
    BoundedQueue.create("jobs", capacity="many")  # error: call-overload
