from collections.abc import Iterable
from typing import Any, Self

from numpy.typing import DTypeLike

from queueduct.core._queue import Queue
from queueduct.lease import Lease
from queueduct.segments.segment import Segment
from queueduct.stats import BoundedStats, ProducerInfo

class BoundedQueue(Queue):
    """A bounded queue of many producers and many consumers: each item goes to one of them."""

    def __init__(self, capacity: int = 1024) -> None: ...
    @classmethod
    def create(
        cls,
        name: str,
        capacity: int = 1024,
        *,
        item: type[bytes] | type[object] | DTypeLike = ...,
        slot_bytes: int | None = None,
        participants: int = 256,
        producers: int = 32,
        exist_ok: bool = False,
    ) -> Self: ...
    @classmethod
    def open(cls, name: str, *, allow_pickle: bool = True) -> Self: ...
    @classmethod
    def _attach(cls, opened: Segment, allow_pickle: bool) -> Self: ...
    def put_once(
        self, items: Iterable[Any], producer: str, sequence: int, *, block: bool = True, timeout: float | None = None
    ) -> int: ...
    def producers(self) -> list[ProducerInfo]: ...
    def forget_producer(self, name: str) -> None: ...
    def lease(self, max_items: int, block: bool = True, timeout: float | None = None) -> Lease: ...
    def unreleased(self, positions: Iterable[int]) -> list[int]: ...
    def full(self) -> bool: ...
    def stats(self) -> BoundedStats: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
