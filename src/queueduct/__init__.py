"""Concurrent queues for threads and processes, by name, through shared memory."""

from queueduct._bounded import BoundedQueue
from queueduct._events import EventQueue
from queueduct._events_reader import Reader
from queueduct._growing import GrowingQueue
from queueduct._index import IndexQueue
from queueduct._overwriting import OverwritingQueue
from queueduct._slots import SlotQueue
from queueduct._slots_lease import LoanedSlot, TakenSlot
from queueduct._version import __version__
from queueduct.errors import (
    CorruptSegment,
    DataLost,
    Empty,
    Full,
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
)
from queueduct.lease import Lease
from queueduct.opening import open
from queueduct.segment import queues, unlink
from queueduct.stats import (
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
    "__version__",
    "open",
    "queues",
    "unlink",
]
