"""Concurrent queues for threads and processes, by name, through shared memory."""

from penstock._bounded import BoundedQueue
from penstock._version import __version__
from penstock.errors import (
    CorruptSegment,
    Empty,
    Full,
    PenstockError,
    QueueClosed,
    QueueExists,
    QueueNotFound,
    QueueReplaced,
    ShutDown,
    TooManyParticipants,
)
from penstock.opening import open
from penstock.segment import queues, unlink
from penstock.stats import BoundedStats, QueueInfo

__all__ = [
    "BoundedQueue",
    "BoundedStats",
    "CorruptSegment",
    "Empty",
    "Full",
    "PenstockError",
    "QueueClosed",
    "QueueExists",
    "QueueInfo",
    "QueueNotFound",
    "QueueReplaced",
    "ShutDown",
    "TooManyParticipants",
    "__version__",
    "open",
    "queues",
    "unlink",
]
