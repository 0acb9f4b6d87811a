"""Concurrent queues for threads and processes, by name, through shared memory."""

from penstock._bounded import BoundedQueue
from penstock._events import EventQueue
from penstock._events_reader import Reader
from penstock._growing import GrowingQueue
from penstock._index import IndexQueue
from penstock._overwriting import OverwritingQueue
from penstock._slots import SlotQueue
from penstock._slots_lease import LoanedSlot, TakenSlot
from penstock._version import __version__
from penstock.errors import (
    CorruptSegment,
    DataLost,
    Empty,
    Full,
    PenstockError,
    ProducerInUse,
    QueueClosed,
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
)
from penstock.lease import Lease
from penstock.opening import open
from penstock.segment import queues, unlink
from penstock.stats import (
    BoundedStats,
    EventStats,
    GrowingStats,
    OverwritingStats,
    ProducerInfo,
    QueueInfo,
    ReaderInfo,
    SlotStats,
)

__all__ = [
    "BoundedQueue",
    "BoundedStats",
    "CorruptSegment",
    "DataLost",
    "Empty",
    "EventQueue",
    "EventStats",
    "Full",
    "GrowingQueue",
    "GrowingStats",
    "IndexQueue",
    "Lease",
    "LoanedSlot",
    "OverwritingQueue",
    "OverwritingStats",
    "PenstockError",
    "ProducerInUse",
    "ProducerInfo",
    "QueueClosed",
    "QueueExists",
    "QueueInfo",
    "QueueNotFound",
    "QueueNotShared",
    "QueueReplaced",
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
    "__version__",
    "open",
    "queues",
    "unlink",
]
