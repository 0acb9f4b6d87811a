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
from queueduct.events import EventQueue, Reader
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
    "__version__",
    "open",
    "queues",
    "unlink",
    "watch",
]
