from typing import Any, Self, overload

from numpy.typing import DTypeLike
from typing_extensions import TypeVar

from queueduct.async_calls import AsyncGets, AsyncPuts
from queueduct.core._lease import LeaseMethods
from queueduct.core._put_once import PutOnceMethods
from queueduct.core._queue import Queue
from queueduct.segments.names import Directory
from queueduct.stats import GrowingStats
from queueduct.watching._participants import ParticipantMethods

_T = TypeVar("_T", default=Any)

class GrowingQueue(Queue[_T], AsyncPuts[_T], AsyncGets[_T], PutOnceMethods[_T], LeaseMethods[_T], ParticipantMethods):
    """A queue of many producers and many consumers that grows with its items, and gives memory back."""

    def __init__(self) -> None: ...
    @overload
    @classmethod
    def create(
        cls,
        name: str | None,
        *,
        item: type[bytes] | None = None,
        first_bytes: int = 4096,
        steps: int = 11,
        slot_bytes: int | None = None,
        max_bytes: int | None = None,
        participants: int = 256,
        producers: int = 32,
        directory: Directory = None,
        exist_ok: bool = False,
        replace: bool = False,
    ) -> GrowingQueue[bytes]: ...
    @overload
    @classmethod
    def create(
        cls,
        name: str | None,
        *,
        item: type[object] | DTypeLike,
        first_bytes: int = 4096,
        steps: int = 11,
        slot_bytes: int | None = None,
        max_bytes: int | None = None,
        participants: int = 256,
        producers: int = 32,
        directory: Directory = None,
        exist_ok: bool = False,
        replace: bool = False,
    ) -> Self: ...
    @property
    def capacity(self) -> int: ...
    def full(self) -> bool: ...
    def stats(self) -> GrowingStats: ...
