"""Concurrent queues for threads and processes, by name, through shared memory."""

from penstock._bounded import BoundedQueue
from penstock._events import EventQueue
from penstock._events_reader import Reader
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
    QueueReplaced,
    ReaderInUse,
    ShutDown,
    TooManyParticipants,
    TooManyProducers,
    TooManyReaders,
)
from penstock.lease import Lease
from penstock.opening import open
from penstock.segment import queues, unlink
from penstock.stats import BoundedStats, EventStats, ProducerInfo, QueueInfo, ReaderInfo

__all__ = [
    "BoundedQueue",
    "BoundedStats",
    "CorruptSegment",
    "DataLost",
    "Empty",
    "EventQueue",
    "EventStats",
    "Full",
    "Lease",
    "PenstockError",
    "ProducerInUse",
    "ProducerInfo",
    "QueueClosed",
    "QueueExists",
    "QueueInfo",
    "QueueNotFound",
    "QueueReplaced",
    "Reader",
    "ReaderInUse",
    "ReaderInfo",
    "ShutDown",
    "TooManyParticipants",
    "TooManyProducers",
    "TooManyReaders",
    "__version__",
    "open",
    "queues",
    "unlink",
]
