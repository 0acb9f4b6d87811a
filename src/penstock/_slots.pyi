from collections.abc import Callable
from typing import Any, Self

from numpy.typing import DTypeLike

from penstock._queue import Queue
from penstock._slots_lease import LoanedSlot, TakenSlot
from penstock.segment import Segment
from penstock.stats import SlotStats

class SlotQueue(Queue):
    """A queue of slots, for items that are too big to copy."""

    @classmethod
    def create(
        cls,
        name: str,
        capacity: int = 8,
        *,
        item: type[bytes] | type[object] | DTypeLike = ...,
        slot_bytes: int | None = None,
        participants: int = 256,
        exist_ok: bool = False,
    ) -> Self: ...
    @classmethod
    def open(cls, name: str, *, allow_pickle: bool = True) -> Self: ...
    @classmethod
    def _attach(cls, opened: Segment, allow_pickle: bool) -> Self: ...
    def loan(self, timeout: float | None = None, *, length: int | None = None) -> LoanedSlot: ...
    def take(self, timeout: float | None = None) -> TakenSlot: ...
    def put(self, item: Any, block: bool = True, timeout: float | None = None, *, overwrite: bool = False) -> Any: ...
    @property
    def slots(self) -> int: ...
    def set_capacity(self, capacity: int, on_evict: Callable[[Any], object] | None = None) -> None: ...
    def full(self) -> bool: ...
    def stats(self) -> SlotStats: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
