"""Concurrent queues for threads and processes, by name, through shared memory."""

from penstock._bounded import BoundedQueue
from penstock._version import __version__
from penstock.errors import (
    CorruptSegment,
    Empty,
    Full,
    PenstockError,
    ProducerInUse,
    QueueClosed,
    QueueExists,
    QueueNotFound,
    QueueReplaced,
    ShutDown,
    TooManyParticipants,
    TooManyProducers,
)
from penstock.opening import open
from penstock.segment import queues, unlink
from penstock.stats import BoundedStats, ProducerInfo, QueueInfo

__all__ = [
    "BoundedQueue",
    "BoundedStats",
    "CorruptSegment",
    "Empty",
    "Full",
    "PenstockError",
    "ProducerInUse",
    "ProducerInfo",
    "QueueClosed",
    "QueueExists",
    "QueueInfo",
    "QueueNotFound",
    "QueueReplaced",
    "ShutDown",
    "TooManyParticipants",
    "TooManyProducers",
    "__version__",
    "open",
    "queues",
    "unlink",
]
