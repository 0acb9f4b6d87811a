"""SlotQueue: slots that are loaned, published, taken and released without a copy."""

from queueduct.segments.kinds import Kind, register
from queueduct.slots.geometry import SlotsGeometry
from queueduct.slots.loans import LoanedSlot, TakenSlot
from queueduct.slots.queue import SlotQueue

__all__ = ["LoanedSlot", "SlotQueue", "TakenSlot"]

register(
    Kind(
        SlotsGeometry,
        SlotQueue,
        count_put=lambda queue: int(queue.stats().puts),
        has_batches=False,
        usual_capacity=256,
    )
)
