"""What a queue says of itself."""

from typing import NamedTuple

__all__ = ["BoundedStats", "ProducerInfo", "QueueInfo"]


class QueueInfo(NamedTuple):
    """A queue in the directory."""

    name: str
    kind: str


class ProducerInfo(NamedTuple):
    """A name that put_once keeps. What a killed call got in last shows once it is repeated."""

    name: str
    sequence: int
    """The last one that was begun."""
    done: int
    """How many of its items are in."""
    total: int
    """How many items it has."""


class BoundedStats(NamedTuple):
    """One look at a BoundedQueue. Exact when nobody else is working on it, a snapshot otherwise."""

    capacity: int
    """Slots."""
    size: int
    """Items that are there or on their way in or out."""
    slots_pushed: int
    """Slots ever claimed by puts: the push position."""
    slots_popped: int
    """Slots ever claimed by gets: the pop position."""
    slot_bytes: int
    """Bytes a slot holds; 0 for references within a process."""
    total_bytes: int
    """Bytes of memory, headers included."""
    is_shut_down: bool
    participants: int
    """Threads with a line in the participant table, in any process; 0 within a process."""
    participants_limit: int
    tombstones: int
    """Slots whose producer was killed before it published; never delivered."""
    adopted: int
    """Items whose consumer was killed before it had them; delivered to another."""
