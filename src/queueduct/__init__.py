"""Concurrent queues for threads and processes, by name, through shared memory. They survive kill -9.

Which queue:

- BoundedQueue: each item goes to one consumer; a full queue makes producers wait.
- GrowingQueue: the same, and it grows and shrinks with its items.
- OverwritingQueue: never full: the newest item replaces the oldest, and every loss is counted.
- SlotQueue: large items, filled and read in place, without a copy.
- EventQueue: a log: every Reader sees every item.
- IndexQueue: the numbers of free places of an array, between threads.

A queue is made by create(name, ...), or without a name between threads, and opened by open(name) of its class or of
this module; queues() lists them, unlink(name) removes one, watch(name) looks at one without taking part. Items are
bytes, records of numpy, or pickled objects. A Lease keeps items in the queue until they are done. Workers run a
function for each item in processes of their own.

    >>> q = queueduct.BoundedQueue.create("ticks", item=[("symbol", "S8"), ("price", "f8")])
    >>> q.put((b"ACME", 101.5))
    >>> with queueduct.open("ticks") as same:  # in any process
    ...     float(same.get()["price"])
    101.5
    >>> q.unlink()

What goes wrong is one of a few exceptions: Full, Empty and ShutDown of a call that cannot go on, and QueueductError.
help(queueduct.errors) has the tree.

Modules to import: queueduct.multiprocessing and queueduct.queue replace the standard library's queues,
queueduct.logging logs through a queue, queueduct.arrow has columns, queueduct.torch has tensors, queueduct.spark has
sessions.
"""

import typing as _typing

from queueduct._version import __version__
from queueduct.errors import (
    CorruptSegment,
    DataLost,
    Empty,
    Full,
    JobFailed,
    ProducerInUse,
    QueueClosed,
    QueueductError,
    QueueEmpty,
    QueueExists,
    QueueFull,
    QueueNotFound,
    QueueNotShared,
    QueueReplaced,
    ReaderInUse,
    ShutDown,
    TooManyParticipants,
    TooManyProducers,
    TooManyReaders,
    UnfitItem,
    WorkersBroken,
)
from queueduct.events import EventQueue, Reader
from queueduct.headers import get_cmake_dir, get_include, get_pkgconfig_dir
from queueduct.index.queue import IndexQueue
from queueduct.lease import Lease
from queueduct.overwriting import OverwritingQueue
from queueduct.rings import BoundedQueue, GrowingQueue
from queueduct.segments.catalog import open, queues, unlink
from queueduct.slots import LoanedSlot, SlotQueue, TakenSlot
from queueduct.stats import (
    BoundedStats,
    EventStats,
    GrowingStats,
    OverwritingStats,
    ParticipantInfo,
    ProducerInfo,
    QueueInfo,
    ReaderInfo,
    SlotStats,
)
from queueduct.watching.watch import Watch, watch

if _typing.TYPE_CHECKING:
    from queueduct.pool import DeadLetter, Workers, WorkersProgress

__all__ = [
    "BoundedQueue",
    "BoundedStats",
    "CorruptSegment",
    "DataLost",
    "DeadLetter",
    "Empty",
    "EventQueue",
    "EventStats",
    "Full",
    "GrowingQueue",
    "GrowingStats",
    "IndexQueue",
    "JobFailed",
    "Lease",
    "LoanedSlot",
    "OverwritingQueue",
    "OverwritingStats",
    "ParticipantInfo",
    "ProducerInUse",
    "ProducerInfo",
    "QueueClosed",
    "QueueEmpty",
    "QueueExists",
    "QueueFull",
    "QueueInfo",
    "QueueNotFound",
    "QueueNotShared",
    "QueueReplaced",
    "QueueductError",
    "Reader",
    "ReaderInUse",
    "ReaderInfo",
    "ShutDown",
    "SlotQueue",
    "SlotStats",
    "TakenSlot",
    "TooManyParticipants",
    "TooManyProducers",
    "TooManyReaders",
    "UnfitItem",
    "Watch",
    "Workers",
    "WorkersBroken",
    "WorkersProgress",
    "__version__",
    "get_cmake_dir",
    "get_include",
    "get_pkgconfig_dir",
    "open",
    "queues",
    "unlink",
    "watch",
]


def __getattr__(name: str) -> _typing.Any:
    """The pool comes with its first use: it needs multiprocessing, which takes longer to import than the queues."""
    if name not in ("DeadLetter", "Workers", "WorkersProgress"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from queueduct import pool as _pool

    found = globals()[name] = getattr(_pool, name)
    return found
