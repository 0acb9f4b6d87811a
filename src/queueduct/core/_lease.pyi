from collections.abc import Iterable

from queueduct.core.aio import Borrowing
from queueduct.lease import Lease

class LeaseMethods:
    """The methods of every kind of queue with leases."""

    def lease(self, max_items: int, block: bool = True, timeout: float | None = None) -> Lease: ...
    def alease(self, max_items: int, timeout: float | None = None) -> Borrowing[Lease]: ...
    def unreleased(self, positions: Iterable[int]) -> list[int]: ...
