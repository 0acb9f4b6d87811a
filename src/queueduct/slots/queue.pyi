from collections.abc import Callable, Coroutine
from typing import Any, Self, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray
from typing_extensions import Buffer, TypeVar

from queueduct.async_calls import AsyncGets, AsyncPuts
from queueduct.core._lease import LeaseMethods
from queueduct.core._put_once import PutOnceMethods
from queueduct.core._queue import Queue
from queueduct.core.aio import Borrowing
from queueduct.segments.names import Directory
from queueduct.slots.loans import LoanedSlot, TakenSlot
from queueduct.stats import SlotStats
from queueduct.watching._participants import ParticipantMethods

_T = TypeVar("_T", default=Any)

class SlotQueue(Queue[_T], AsyncPuts[_T], AsyncGets[_T], PutOnceMethods[_T], LeaseMethods[_T], ParticipantMethods):
    """A queue of slots, for items that are too big to copy."""

    @overload
    @classmethod
    def create(
        cls,
        name: str | None,
        capacity: int = 8,
        *,
        item: type[bytes] | None = None,
        slot_bytes: int | None = None,
        participants: int = 256,
        producers: int = 32,
        directory: Directory = None,
        exist_ok: bool = False,
        replace: bool = False,
    ) -> SlotQueue[bytes]: ...
    @overload
    @classmethod
    def create(
        cls,
        name: str | None,
        capacity: int = 8,
        *,
        item: type[object] | DTypeLike,
        slot_bytes: int | None = None,
        participants: int = 256,
        producers: int = 32,
        directory: Directory = None,
        exist_ok: bool = False,
        replace: bool = False,
    ) -> Self: ...
    def loan(self, timeout: float | None = None, *, length: int | None = None) -> LoanedSlot: ...
    def take(self, timeout: float | None = None) -> TakenSlot[_T]: ...
    # With overwrite=True the oldest item or None; it is Any because the put of other kinds returns None.
    @overload
    def put(
        self: SlotQueue[bytes],
        item: Buffer | NDArray[Any],
        block: bool = True,
        timeout: float | None = None,
        *,
        overwrite: bool = False,
    ) -> Any: ...
    @overload
    def put(
        self: SlotQueue[np.void],
        item: Any,
        block: bool = True,
        timeout: float | None = None,
        *,
        overwrite: bool = False,
    ) -> Any: ...
    @overload
    def put(self, item: _T, block: bool = True, timeout: float | None = None, *, overwrite: bool = False) -> Any: ...
    def aloan(self, timeout: float | None = None, *, length: int | None = None) -> Borrowing[LoanedSlot]: ...
    def atake(self, timeout: float | None = None) -> Borrowing[TakenSlot[_T]]: ...
    @overload
    def aput(
        self: SlotQueue[bytes], item: Buffer | NDArray[Any], timeout: float | None = None, *, overwrite: bool = False
    ) -> Coroutine[Any, Any, Any]: ...
    @overload
    def aput(
        self: SlotQueue[np.void], item: Any, timeout: float | None = None, *, overwrite: bool = False
    ) -> Coroutine[Any, Any, Any]: ...
    @overload
    def aput(self, item: _T, timeout: float | None = None, *, overwrite: bool = False) -> Coroutine[Any, Any, Any]: ...
    @property
    def slots(self) -> int: ...
    def set_capacity(self, capacity: int, on_evict: Callable[[_T], object] | None = None) -> None: ...
    @property
    def capacity(self) -> int: ...
    def full(self) -> bool: ...
    def stats(self) -> SlotStats: ...
