"""Where a recorder takes items from, and how it tells the queue that it is done with them.

A log is read under a durable reader, which commits a position. The other kinds give each item to one consumer: there a
recorder leases items, and releases them. What a killed recorder had on lease is delivered again at the same positions,
perhaps to the next recorder, which leaves out the positions that its files have.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections import deque
from typing import Any, NamedTuple, Protocol

import numpy as np

from queueduct.errors import DataLost, Empty, ShutDown
from queueduct.recording.archive import Archive, Facts
from queueduct.recording.columns import Part
from queueduct.segments.kinds import kind_of

__all__ = ["Ended", "LeaseSource", "LogSource", "Source", "reader_name", "source_of"]

MOST_LEASES = 64  # held at a time: most kinds have a participant's line for each
FREE_LEASES = 4  # that are taken as soon as there is an item
BIG_LEASE = 1024  # items that are worth a lease at any time
PAUSE_SECONDS = 0.005


class Ended(Exception):
    """The queue was shut down, and everything in it was taken."""


class Source(Protocol):
    """A queue, as a recorder uses it."""

    reader: Any
    """The durable reader; None if the queue is no log."""
    is_idle: bool
    """True if the queue had nothing at the last take."""
    skipped: int
    """Items that came again, and that the archive has already."""

    @property
    def missed(self) -> int:
        """Items that the queue has dropped, or somebody has removed, before they were taken."""

    def take(self, rows: int, timeout: float) -> Part | None:
        """Returns at least one item and at most ``rows``; None if none came in time. Raises Ended."""

    def is_pressed(self) -> bool:
        """Returns true if the queue needs what was taken to be done soon: no more comes, or producers would wait."""

    def is_kept(self, stop: int) -> None:
        """Returns when the queue cannot lose the positions before ``stop`` in a crash of the machine."""

    def file_ended(self) -> None:
        """The next part is the first of another file."""

    def settle(self, facts: Facts) -> None:
        """Tells the queue that the items of the oldest file that was not settled are in the archive."""

    def lag(self) -> int:
        """Returns how many items wait."""

    def close(self) -> None:
        """Gives back what was not settled."""


def source_of(
    queue: Any, archive: Archive, found: Facts | None, reader: str | None, start: str | int, seconds: float
) -> Source:
    """Returns the source that goes on where the archive ends. ``seconds`` is how long a file is open at most."""
    if kind_of(queue).is_log:
        return LogSource(queue, archive, found, reader, start)
    for name, given in (("reader", reader), ("start", None if start == "earliest" else start)):
        if given is not None:
            raise ValueError(
                f"only an event queue has readers and positions to start at: {name}={given!r} for {queue.name!r} of "
                f"kind {queue.kind!r}; leave it out"
            )
    return LeaseSource(queue, archive, seconds)


def reader_name(archive: Archive, found: Facts | None) -> str:
    """Returns the reader of an archive: the one that has begun it, or for a new archive one of the directory's own."""
    if found is not None and found.reader is not None:
        return found.reader
    return f"recorder {hashlib.sha256(str(archive.directory.resolve()).encode()).hexdigest()[:16]}"


class LogSource:
    """An event queue."""

    def __init__(self, queue: Any, archive: Archive, found: Facts | None, reader: str | None, start: str | int) -> None:
        self.queue = queue
        self.missed = 0
        self.skipped = 0
        self.is_idle = False
        name = reader or reader_name(archive, found)
        if found is None:
            self.reader = queue.subscribe(name, start)
            self.next = int(self.reader.position)
            return
        self.next = found.last + 1
        try:
            self.reader = queue.subscribe(name, self.next, epoch=found.epoch)
            self.move(found.epoch)
        except DataLost as lost:
            raise ValueError(
                f"an archive ends where its log was on the disk: {archive.directory} has positions up to {found.last}, "
                f"and after a crash of the machine the log {queue.name!r} was cut at {lost.earliest}; record into a "
                "new directory"
            ) from lost

    def move(self, epoch: int) -> None:
        """Moves the reader behind the archive: a recorder may have been killed before it committed."""
        while self.reader.position < self.next:
            try:
                self.reader.commit(self.next, epoch=epoch)
            except DataLost as lost:
                if lost.wanted > lost.earliest:  # a cut; else the reader was dropped, and is back
                    raise

    def take(self, rows: int, timeout: float) -> Part | None:
        try:
            items = self.reader.get_many(rows, timeout=timeout)
            self.is_idle = False
        except Empty:
            self.is_idle = True
            return None
        except DataLost:  # the position of the next item tells how many
            return None
        except ShutDown:
            raise Ended from None
        stop = int(self.reader.position)
        start = stop - len(items)
        if start < self.next:
            items = items[self.next - start :]
        self.missed += max(0, start - self.next)
        start, self.next = stop - len(items), stop
        return Part.of(items, np.arange(start, stop)) if len(items) else None

    def is_pressed(self) -> bool:
        return False

    def is_kept(self, stop: int) -> None:
        if self.queue.durable_end() < stop:
            raise OSError(
                f"a log must be on its disk before its archive is: {self.queue.name!r} is only up to "
                f"{self.queue.durable_end(sync=False)} there, and {stop} are recorded; look after the disk"
            )

    def file_ended(self) -> None:
        pass

    def settle(self, facts: Facts) -> None:
        with contextlib.suppress(DataLost):  # it was dropped as the slowest, and goes on
            self.reader.commit(facts.last + 1)

    def lag(self) -> int:
        return int(self.reader.lag)

    def close(self) -> None:
        self.reader.close()


class Held(NamedTuple):
    """A lease, and the size of its items."""

    lease: Any
    bytes: int


class LeaseSource:
    """A queue that gives each item to one consumer."""

    reader = None

    def __init__(self, queue: Any, archive: Archive, seconds: float) -> None:
        self.queue = queue
        self.kind = kind_of(queue)
        self.archive = archive
        self.skipped = 0
        self.files: deque[list[Held]] = deque([[]])  # of each file that was not settled, the oldest first
        self.is_idle = False
        self.taken_at = time.monotonic()
        lines = queue.stats().participants_limit
        self.most = max(2, min(MOST_LEASES, lines // 4))
        self.pause = seconds / self.most
        self.missed_before = self.kind.count_lost(queue)

    @property
    def missed(self) -> int:
        return int(self.kind.count_lost(self.queue) - self.missed_before)

    def take(self, rows: int, timeout: float) -> Part | None:
        if not self.is_worth_a_lease(rows):
            time.sleep(min(timeout, PAUSE_SECONDS))
            return None
        try:
            lease = self.queue.lease(rows, timeout=timeout)
        except Empty:
            self.is_idle = True
            return None
        except ShutDown:
            raise Ended from None
        self.is_idle = False
        self.taken_at = time.monotonic()
        items, positions = lease.items, lease.positions
        if lease.is_redelivered:
            is_new = self.is_new(positions)
            indices = np.flatnonzero(is_new)
            self.skipped += len(positions) - len(indices)
            if len(indices) == 0:
                lease.release()
                return None
            items = items[indices] if isinstance(items, np.ndarray) else [items[index] for index in indices]
            positions = positions[indices]
        part = Part.of(items, positions)
        self.files[-1].append(Held(lease, part.bytes))
        return part

    def is_worth_a_lease(self, rows: int) -> bool:
        """A lease takes a participant's line, so single items wait until there are more, or it is time."""
        leases = sum(map(len, self.files))
        if leases < FREE_LEASES or time.monotonic() - self.taken_at >= self.pause:
            return True
        return int(self.queue.qsize()) >= min(rows, BIG_LEASE)

    def is_new(self, positions: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Returns which of these positions no file of the archive has."""
        is_there = np.zeros(len(positions), bool)
        for known in self.archive.positions_between(int(positions.min()), int(positions.max())):
            is_there |= np.isin(positions, known)
        return ~is_there

    def is_pressed(self) -> bool:
        if not self.files[-1]:
            return False
        if sum(map(len, self.files)) >= self.most:
            return True
        stats = self.queue.stats()
        if stats.is_shut_down and self.is_idle:
            return True  # it ends when nothing is on lease
        held = [each for file in self.files for each in file]
        if not self.kind.has_capacity:
            most = getattr(stats, "max_bytes", 0)
            return bool(most and sum(each.bytes for each in held) * 4 >= most)
        half = max(1, int(self.queue.capacity) // 2)
        if hasattr(stats, "push_position"):  # a ring: its producers wait for the oldest slot
            oldest = min(int(each.lease.positions.min()) for each in held)
            return bool(stats.push_position - oldest >= half)
        return sum(len(each.lease) for each in held) >= half

    def is_kept(self, stop: int) -> None:
        pass

    def file_ended(self) -> None:
        self.files.append([])

    def settle(self, facts: Facts) -> None:
        for held in self.files.popleft():
            held.lease.release()

    def lag(self) -> int:
        return int(self.queue.stats().size)  # with what a dead consumer had, which qsize() of slots leaves out

    def close(self) -> None:
        for held in (held for file in self.files for held in file):
            held.lease.give_back()
        self.files.clear()
