from typing import Self

from numpy.typing import DTypeLike

from queueduct.async_calls import AsyncGets, AsyncPuts
from queueduct.core._lease import LeaseMethods
from queueduct.core._put_once import PutOnceMethods
from queueduct.core._queue import Queue
from queueduct.segments.names import Directory
from queueduct.stats import BoundedStats
from queueduct.watching._participants import ParticipantMethods

class BoundedQueue(Queue, AsyncPuts, AsyncGets, PutOnceMethods, LeaseMethods, ParticipantMethods):
    """A bounded queue of many producers and many consumers: one consumer gets each item."""

    def __init__(self, capacity: int = 1024) -> None: ...
    @classmethod
    def create(
        cls,
        name: str | None,
        capacity: int = 1024,
        *,
        item: type[bytes] | type[object] | DTypeLike | None = None,
        slot_bytes: int | None = None,
        participants: int = 256,
        producers: int = 32,
        directory: Directory = None,
        exist_ok: bool = False,
        replace: bool = False,
    ) -> Self: ...
    def stats(self) -> BoundedStats: ...
