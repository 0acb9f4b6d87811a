from collections.abc import Iterable

from queueduct.lease import Lease

class LeaseMethods:
    """The methods of every kind of queue with leases."""

    def lease(self, max_items: int, block: bool = True, timeout: float | None = None) -> Lease: ...
    def unreleased(self, positions: Iterable[int]) -> list[int]: ...
