"""Moves items from a queue into its spool, each exactly once: claim, append, sync, release.

If it is killed before the append, the items are redelivered and appended. If it is killed after it, the items are
redelivered and recognised by their positions. The spool is the only state.
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
    """The calls of a queue that a drainer uses."""

    def lease(self, max_items: int, block: bool = ...) -> Lease: ...
    def unreleased(self, positions: Iterable[int]) -> list[int]: ...


class Drainer:
    """Drains a queue. One process has it: the one that holds the drainer's reader of the spool."""

    def __init__(self, queue: Leasing, spool: Spool, reader: Any) -> None:
        self.queue = queue
        self.spool = spool
        self.reader = reader
        self.item = spool.log.item
        self.item_bytes = getattr(self.item, "itemsize", TYPICAL_BYTES)

    def drain(self, rows: int) -> None:
        """Drains up to that many items, as far as there are some and the spool has room."""
        self.settle()
        while rows > 0:
            lease = self.take(min(rows, LEASE_ROWS))
            if lease is None or not self.keep(lease):
                return
            rows -= len(lease)

    def recover(self) -> None:
        """Drains dead consumers' items, and perhaps some new ones."""
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
        """Returns about how many items the spool still takes, at least 1: the append decides."""
        stats = self.spool.log.stats()
        if stats.used_bytes > stats.max_bytes // 2:
            self.spool.log.subscribe().close()  # items that all readers have passed are freed when one of them moves
            stats = self.spool.log.stats()
        return max(1, (stats.max_bytes - stats.used_bytes) // self.item_bytes)

    def keep(self, lease: Lease) -> bool:
        """Appends the items that are not there yet, then releases the lease. Returns false if the spool is full."""
        was_settled = self.reader.committed == self.spool.log.end
        with lease:
            new = np.ones(len(lease), bool)
            if lease.is_redelivered:
                new = ~np.isin(lease.positions, self.kept())
            indices = np.flatnonzero(new)
            put = self.append(lease, indices)
            self.spool.log.sync()
            lease.release(len(lease) if put == len(indices) else int(indices[put]))
        if was_settled:
            self.reader.commit(self.spool.log.end)  # all appended items were released
        else:
            self.settle()
        return put == len(indices)

    def append(self, lease: Lease, indices: np.ndarray[Any, Any]) -> int:
        """Appends these items in order. Returns how many are in: all, unless the spool is full."""
        if len(indices) == 0:
            return 0
        chosen = lease.items[indices] if isinstance(lease.items, np.ndarray) else [lease.items[i] for i in indices]
        with contextlib.suppress(Full):
            return self.spool.log.put_many(packed(chosen, lease.positions[indices], self.item), block=False)
        return 0

    def kept(self) -> np.ndarray[Any, Any]:
        """Returns positions that were appended, here or in another query's spool, and may be redelivered."""
        found = [self.spool.unsettled()]
        for other in self.spool.others():
            with contextlib.closing(other):
                found.append(unsettled_of(other))
                other.log.sync()  # its drainer may have died before it released them
        return np.concatenate(found)

    def settle(self) -> None:
        """Moves the drainer's reader to the end, if everything before it was released."""
        end = self.spool.log.end
        if self.reader.committed < end and not self.queue.unreleased(self.spool.unsettled().tolist()):
            self.reader.commit(end)


def unsettled_of(other: Spool) -> np.ndarray[Any, Any]:
    """Returns unsettled positions of a spool that another drainer may fill. Those of our lease stay in it meanwhile."""
    while True:
        with contextlib.suppress(DataLost):
            return other.unsettled()
