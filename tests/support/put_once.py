"""Items of every kind, and what is in a queue now: for the tests of put_once."""

from __future__ import annotations

from queueduct import BoundedQueue, SlotQueue


def make_slots(name, capacity, *, item=bytes, **options):
    """A slot holds the whole of an item."""
    varies = item in (bytes, object)
    return SlotQueue.create(name, capacity, item=item, slot_bytes=2048 if varies else None, **options)


# Each kind whose gets take items away and that has put_once: how a queue of it is made.
MAKERS = {"bounded": BoundedQueue.create, "slots": make_slots}

KINDS = {
    "bytes": (bytes, lambda i: b"%d" % i),
    "long bytes": (bytes, lambda i: b"%d" % i * (1 + i % 3 * 60)),
    "records": ("<u8", lambda i: i),
    "objects": (object, lambda i: {"number": i, "rest": "x" * (i % 3 * 400)}),
}


def drained(q):
    """All that is in it now."""
    found = []
    while (item := q.try_get(StopIteration)) is not StopIteration:
        found.append(item)
    return found
