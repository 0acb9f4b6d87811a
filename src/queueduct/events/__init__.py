"""EventQueue: a log that every reader reads as a whole, in memory or on a disk."""

from queueduct.events.geometry import EventsGeometry
from queueduct.events.queue import EventQueue
from queueduct.events.reading.reader import Reader
from queueduct.segments.kinds import Kind, register

__all__ = ["EventQueue", "Reader"]

register(
    Kind(
        EventsGeometry,
        EventQueue,
        count_put=lambda queue: int(queue.end),
        is_log=True,
        has_capacity=False,
        usual_capacity=1 << 16,
        # limited in bytes: so many that about ``capacity`` items keep its producers waiting for its readers
        sizes=lambda capacity, item, participants: {
            "max_bytes": max(capacity * item.itemsize, 1 << 16),
            "readers": participants,
        },
    )
)
