from typing import Any, Self, overload

from numpy.typing import DTypeLike
from typing_extensions import TypeVar

from queueduct.async_calls import AsyncGets, AsyncPuts
from queueduct.core._lease import LeaseMethods
from queueduct.core._put_once import PutOnceMethods
from queueduct.core._queue import Queue
from queueduct.segments.names import Directory
from queueduct.stats import BoundedStats
from queueduct.watching._participants import ParticipantMethods

_T = TypeVar("_T", default=Any)

class BoundedQueue(Queue[_T], AsyncPuts[_T], AsyncGets[_T], PutOnceMethods[_T], LeaseMethods[_T], ParticipantMethods):
    """A bounded queue of many producers and many consumers: one consumer gets each item."""

    def __init__(self, capacity: int = 1024) -> None: ...
    @overload
    @classmethod
    def create(
        cls,
        name: str | None,
        capacity: int = 1024,
        *,
        item: type[bytes] | None = None,
        slot_bytes: int | None = None,
        participants: int = 256,
        producers: int = 32,
        directory: Directory = None,
        exist_ok: bool = False,
        replace: bool = False,
    ) -> BoundedQueue[bytes]: ...
    @overload
    @classmethod
    def create(
        cls,
        name: str | None,
        capacity: int = 1024,
        *,
        item: type[object] | DTypeLike,
        slot_bytes: int | None = None,
        participants: int = 256,
        producers: int = 32,
        directory: Directory = None,
        exist_ok: bool = False,
        replace: bool = False,
    ) -> Self: ...
    @property
    def capacity(self) -> int: ...
    def full(self) -> bool: ...
    def stats(self) -> BoundedStats: ...
