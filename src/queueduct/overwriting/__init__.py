"""OverwritingQueue: never full, because the oldest message makes room; in a published format."""

from typing import Any

from queueduct.overwriting.geometry import OverwritingGeometry
from queueduct.overwriting.queue import OverwritingQueue
from queueduct.segments.kinds import Kind, register

__all__ = ["OverwritingQueue"]


def count_lost(queue: Any) -> int:
    """Messages that were put and that no consumer will ever get."""
    stats = queue.stats()
    return int(stats.overwritten + stats.torn + stats.lost_with_consumer + stats.discarded)


register(
    Kind(
        OverwritingGeometry,
        OverwritingQueue,
        count_put=lambda queue: int(queue.stats().puts),
        count_lost=count_lost,
        has_batches=False,
    )
)
