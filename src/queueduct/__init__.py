"""Concurrent queues for threads and processes, by name, through shared memory."""

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
    QueueExists,
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
    "QueueExists",
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
