"""Every kind of queue as the campaigns of the edges use it: how it is made, what goes through it, who gets from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from queueduct import BoundedQueue, EventQueue, GrowingQueue, OverwritingQueue, SlotQueue


class Kind(NamedTuple):
    """A named queue whose items are bytes, 64 of them, that say which item it is."""

    create: Callable[..., Any]
    """create(name, **options): a new one, with room for 64 items at least."""
    consumer: Callable[[Any], Any] = lambda q: q
    """The object to get from: the queue itself, or a reader that begins with the earliest item."""
    has_leases: bool = True
    has_put_once: bool = True


def item(number: int) -> bytes:
    """The item with this number; it fits any of the queues below."""
    return b"%-64d" % number


def number_of(got: Any) -> int:
    """The number of an item that came out of any of them."""
    return int(bytes(got))


KINDS = {
    "bounded": Kind(lambda name, **options: BoundedQueue.create(name, options.pop("capacity", 64), **options)),
    "growing": Kind(lambda name, **options: GrowingQueue.create(name, **options)),
    "overwriting": Kind(
        lambda name, **options: OverwritingQueue.create(name, options.pop("capacity", 64), message_bytes=64, **options),
        has_put_once=False,
    ),
    "slots": Kind(
        lambda name, **options: SlotQueue.create(name, capacity=options.pop("capacity", 64), slot_bytes=64, **options)
    ),
    "events": Kind(
        lambda name, **options: EventQueue.create(name, **options),
        consumer=lambda q: q.subscribe("edge", start="earliest"),
        has_leases=False,
    ),
}
