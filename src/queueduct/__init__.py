"""Concurrent queues for threads and processes, by name, through shared memory."""

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
from queueduct.events.queue import EventQueue
from queueduct.events.reading.reader import Reader
from queueduct.index.queue import IndexQueue
from queueduct.kinds import open
from queueduct.lease import Lease
from queueduct.overwriting.queue import OverwritingQueue
from queueduct.rings.bounded import BoundedQueue
from queueduct.rings.growing import GrowingQueue
from queueduct.segments.segment import queues, unlink
from queueduct.slots.loans import LoanedSlot, TakenSlot
from queueduct.slots.queue import SlotQueue
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
