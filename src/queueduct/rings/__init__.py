"""BoundedQueue and GrowingQueue: items in rings of slots, each for one consumer."""

from queueduct.rings.bounded import BoundedQueue
from queueduct.rings.geometry import BoundedGeometry, GrowingGeometry
from queueduct.rings.growing import GrowingQueue
from queueduct.segments.kinds import Kind, register

__all__ = ["BoundedQueue", "GrowingQueue"]

register(Kind(BoundedGeometry, BoundedQueue, count_put=lambda queue: int(queue.stats().push_position)))
register(
    Kind(
        GrowingGeometry,
        GrowingQueue,
        count_put=lambda queue: int(queue.stats().push_position),
        has_capacity=False,
        usual_capacity=1 << 16,
        # begins with a few items, and goes up to its budget and down again
        sizes=lambda capacity, item, participants: {"max_bytes": max(capacity * (item.itemsize + 8) * 2, 1 << 18)},
    )
)
