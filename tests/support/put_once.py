"""Queues of every kind that has put_once, items for them, and what is in a queue now."""

from __future__ import annotations

import numpy as np

from queueduct import BoundedQueue, EventQueue, GrowingQueue, SlotQueue


def make_growing(name, capacity, *, item=bytes, **options):
    """It cannot grow: its capacity is known."""
    slot_bytes = 64 if item in (bytes, object) else np.dtype(item).itemsize
    sizes = {"slot_bytes": slot_bytes, "first_bytes": slot_bytes * capacity}
    return GrowingQueue.create(name, item=item, steps=1, **sizes, **options)


def make_slots(name, capacity, *, item=bytes, **options):
    """A slot holds the whole of an item."""
    varies = item in (bytes, object)
    return SlotQueue.create(name, capacity, item=item, slot_bytes=2048 if varies else None, **options)


def make_events(name, capacity, *, item=bytes, **options):
    """Its capacity is no number of items: a multiple of what is asked for."""
    return EventQueue.create(name, item=item, max_bytes=max(4096, 512 * capacity), **options)


# Each kind that has put_once: how a queue of it is made.
COUNTED = {"bounded": BoundedQueue.create, "growing": make_growing, "slots": make_slots}
"""Those whose capacity is a number of items, if these are short."""
MAKERS = COUNTED | {"events": make_events}

KINDS = {
    "bytes": (bytes, lambda i: b"%d" % i),
    "long bytes": (bytes, lambda i: b"%d" % i * (1 + i % 3 * 60)),
    "records": ("<u8", lambda i: i),
    "objects": (object, lambda i: {"number": i, "rest": "x" * (i % 3 * 400)}),
}


def drained(q):
    """All that is in it now, and was not drained before."""
    reader = q.subscribe("drained", "earliest") if isinstance(q, EventQueue) else q
    found = []
    while (item := reader.try_get(StopIteration)) is not StopIteration:
        found.append(item)
    if reader is not q:
        reader.commit()
        reader.close()
    return found
