"""What is left of a job that failed in every try."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from queueduct.items.types import ItemType
from queueduct.pool.frames import decode_item

__all__ = ["DeadLetter"]


@dataclass(frozen=True)
class DeadLetter:
    """A job that failed in every try, with the error of the last one. It can be unpickled even if its item cannot.

    >>> import math
    >>> q = queueduct.BoundedQueue.create("jobs", item=object)
    >>> q.put(0)
    >>> with queueduct.Workers(q, math.log, processes=1, retries=1):
    ...     pass
    >>> letters = queueduct.open("jobs.dead")
    >>> letter = letters.get()
    >>> letter.item, letter.error_type
    (0, 'ValueError')
    >>> q.unlink()
    >>> letters.unlink()
    """

    position: int
    """The job's position in its queue, or its number if the queue was the pool's own."""
    tries: int
    error_type: str
    """The class of the exception, ``WorkerDied`` if there was none."""
    message: str
    traceback: str
    """As Python prints it; empty if the worker died."""
    time: float
    """When it failed last, by time.time()."""
    data: bytes = field(repr=False)
    """The item as it was in the queue: bytes, a pickled object or a record."""
    item_type: ItemType = field(repr=False)

    @property
    def item(self) -> Any:
        """The item, as a get returns it. Raises what unpickling it raises."""
        return decode_item(self.item_type, self.data)
