"""Move items from a queue into its spool, each exactly once: claim, append, sync, release.

Killed before the append, the items come again and are appended; killed after it, they come again and are recognised by
their positions. There is no state but the spool's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np

from queueduct import DataLost, Empty, Full, Lease, ShutDown
from queueduct.spark.read.spool import Spool, packed

__all__ = ["Drainer"]

LEASE_ROWS = 32_768  # for one sync
LEASE_BYTES = 64 << 20  # that are copied for it: frames are few at a time
TYPICAL_BYTES = 64  # of items that vary in length


class Leasing(Protocol):
    """What a kind brings that is drained."""

    def lease(self, max_items: int, block: bool = ...) -> Lease: ...
    def unreleased(self, positions: Iterable[int]) -> list[int]: ...


class Drainer:
    """In the one process that holds the drainer's reader of the spool."""

    def __init__(self, queue: Leasing, spool: Spool, reader: Any) -> None:
        self.queue = queue
        self.spool = spool
        self.reader = reader
        self.item = spool.log.item
        self.item_bytes = getattr(self.item, "itemsize", TYPICAL_BYTES)

    def drain(self, rows: int) -> None:
        """Up to so many items, as far as they are there and the spool has room."""
        self.settle()
        while rows > 0:
            lease = self.take(min(rows, LEASE_ROWS))
            if lease is None or not self.keep(lease):
                return
            rows -= len(lease)

    def recover(self) -> None:
        """Drain what dead consumers have left, and perhaps some new items."""
        self.settle()
        while (lease := self.take(LEASE_ROWS)) is not None:
            if not self.keep(lease) or not lease.is_redelivered:
                return

    def take(self, rows: int) -> Lease | None:
        try:
            return self.queue.lease(min(rows, self.room(), max(1, LEASE_BYTES // self.item_bytes)), block=False)
        except (Empty, ShutDown):
            return None

    def room(self) -> int:
        """About how many items the spool still takes. At least one: the append has the last word."""
        stats = self.spool.log.stats()
        if stats.used_bytes > stats.max_bytes // 2:
            self.spool.log.subscribe().close()  # what all readers have passed is freed when one of them goes
            stats = self.spool.log.stats()
        return max(1, (stats.max_bytes - stats.used_bytes) // self.item_bytes)

    def keep(self, lease: Lease) -> bool:
        """Append what is not there yet, then release the lease. Returns false if the spool is full."""
        was_settled = self.reader.committed == self.spool.log.end
        with lease:
            new = np.ones(len(lease), bool)
            if lease.is_redelivered:
                new = ~np.isin(lease.positions, self.kept())
            places = np.flatnonzero(new)
            put = self.append(lease, places)
            self.spool.log.sync()
            lease.release(len(lease) if put == len(places) else int(places[put]))
        if was_settled:
            self.reader.commit(self.spool.log.end)  # what was appended is what was released
        else:
            self.settle()
        return put == len(places)

    def append(self, lease: Lease, places: np.ndarray[Any, Any]) -> int:
        """Append these in order. Returns how many are in: all, unless the spool is full."""
        if len(places) == 0:
            return 0
        chosen = lease.items[places] if isinstance(lease.items, np.ndarray) else [lease.items[i] for i in places]
        with contextlib.suppress(Full):
            return self.spool.log.put_many(packed(chosen, lease.positions[places], self.item), block=False)
        return 0

    def kept(self) -> np.ndarray[Any, Any]:
        """Positions that were appended somewhere, here or in another query's spool, and may come again."""
        found = [self.spool.unsettled()]
        for other in self.spool.others():
            with contextlib.closing(other):
                found.append(unsettled_of(other))
                other.log.sync()  # its drainer may have died before it did
        return np.concatenate(found)

    def settle(self) -> None:
        """Move the drainer's reader to the end, if everything before it was released."""
        end = self.spool.log.end
        if self.reader.committed < end and not self.queue.unreleased(self.spool.unsettled().tolist()):
            self.reader.commit(end)


def unsettled_of(other: Spool) -> np.ndarray[Any, Any]:
    """Of a spool that another drainer may be filling: what our lease holds does not go from it meanwhile."""
    while True:
        with contextlib.suppress(DataLost):
            return other.unsettled()
