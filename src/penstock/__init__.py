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
    ProducerBusy,
    QueueClosed,
    QueueExists,
    QueueNotFound,
    QueueReplaced,
    ReaderBusy,
    ShutDown,
    TooManyParticipants,
)
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
    "PenstockError",
    "ProducerBusy",
    "ProducerInfo",
    "QueueClosed",
    "QueueExists",
    "QueueInfo",
    "QueueNotFound",
    "QueueReplaced",
    "Reader",
    "ReaderBusy",
    "ReaderInfo",
    "ShutDown",
    "TooManyParticipants",
    "__version__",
    "open",
    "queues",
    "unlink",
]
