from collections.abc import Callable, Coroutine
from typing import Any, Self

from numpy.typing import DTypeLike

from queueduct.async_calls import AsyncGets, AsyncPuts
from queueduct.core._lease import LeaseMethods
from queueduct.core._put_once import PutOnceMethods
from queueduct.core._queue import Queue
from queueduct.core.aio import Borrowing
from queueduct.segments.names import Directory
from queueduct.slots.loans import LoanedSlot, TakenSlot
from queueduct.stats import SlotStats
from queueduct.watching._participants import ParticipantMethods

class SlotQueue(Queue, AsyncPuts, AsyncGets, PutOnceMethods, LeaseMethods, ParticipantMethods):
    """A queue of slots, for items that are too big to copy."""

    @classmethod
    def create(
        cls,
        name: str | None,
        capacity: int = 8,
        *,
        item: type[bytes] | type[object] | DTypeLike | None = None,
        slot_bytes: int | None = None,
        participants: int = 256,
        producers: int = 32,
        directory: Directory = None,
        exist_ok: bool = False,
        replace: bool = False,
    ) -> Self: ...
    def loan(self, timeout: float | None = None, *, length: int | None = None) -> LoanedSlot: ...
    def take(self, timeout: float | None = None) -> TakenSlot: ...
    def put(self, item: Any, block: bool = True, timeout: float | None = None, *, overwrite: bool = False) -> Any: ...
    def aloan(self, timeout: float | None = None, *, length: int | None = None) -> Borrowing[LoanedSlot]: ...
    def atake(self, timeout: float | None = None) -> Borrowing[TakenSlot]: ...
    def aput(self, item: Any, timeout: float | None = None, *, overwrite: bool = False) -> Coroutine[Any, Any, Any]: ...
    @property
    def slots(self) -> int: ...
    def set_capacity(self, capacity: int, on_evict: Callable[[Any], object] | None = None) -> None: ...
    def stats(self) -> SlotStats: ...
