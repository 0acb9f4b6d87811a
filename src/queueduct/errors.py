"""What can go wrong, one class for each decision that a caller can make.

::

    Exception
    ├── queue.Empty                 nothing there (the standard library's own)
    ├── queue.Full                  no room (the standard library's own)
    ├── ShutDown                    queue.ShutDown from Python 3.13, the same thing below
    └── QueueductError
        ├── DataLost                a reader's next items are no longer kept, or a crash lost them; the reader can go on
        ├── CorruptSegment          the shared memory contradicts itself: recreate the queue
        ├── QueueExists             a queue of that name is there (also a FileExistsError)
        ├── QueueNotFound           no queue of that name (also a FileNotFoundError)
        ├── QueueClosed             this handle was closed (also a ValueError)
        ├── QueueNotShared          a queue without a name, in a child of its process (also a RuntimeError)
        ├── QueueReplaced           the name now belongs to another queue than the one that is meant
        ├── ProducerInUse           a live participant is putting for this producer
        ├── ReaderInUse             a live process holds the reader of that name
        ├── TooManyParticipants     every line of the participant table is taken
        ├── TooManyProducers        every line of the table of producers is taken
        ├── TooManyReaders          every line of the table of readers is taken
        ├── JobFailed               a job of a pool failed in every try, and its own exception cannot be raised here
        ├── WorkersBroken           a pool has ended because its workers cannot start, or its queues are unusable
        └── UnfitItem               the queue's dtype cannot hold a value unchanged (also what numpy would raise)
"""

import queue
import sys
from queue import Empty, Full

__all__ = [
    "CorruptSegment",
    "DataLost",
    "Empty",
    "Full",
    "JobFailed",
    "ProducerInUse",
    "QueueClosed",
    "QueueExists",
    "QueueNotFound",
    "QueueNotShared",
    "QueueReplaced",
    "QueueductError",
    "ReaderInUse",
    "ShutDown",
    "TooManyParticipants",
    "TooManyProducers",
    "TooManyReaders",
    "UnfitItem",
    "WorkersBroken",
]

if sys.version_info >= (3, 13):
    ShutDown = queue.ShutDown
else:

    class ShutDown(Exception):
        """Raised by put and get on a queue that was shut down."""


class QueueductError(Exception):
    """The root of queueduct's own errors."""


class CorruptSegment(QueueductError):
    """The shared memory contradicts itself or the format; the message names the field and its value."""


class QueueExists(QueueductError, FileExistsError):
    """A queue of that name is already there."""


class QueueNotFound(QueueductError, FileNotFoundError):
    """There is no queue of that name."""


class QueueClosed(QueueductError, ValueError):
    """This handle was closed."""


class QueueNotShared(QueueductError, RuntimeError):
    """A queue without a name lives in the process that made it; this is a forked child of that."""


class QueueReplaced(QueueductError):
    """The name now belongs to another queue."""


class ProducerInUse(QueueductError):
    """Another live thread or process is putting for this producer."""


class TooManyParticipants(QueueductError):
    """Every line of the participant table is taken."""


class TooManyProducers(QueueductError):
    """Every line of the table of producers is taken by another name."""


class TooManyReaders(QueueductError):
    """Every line of the table of readers is taken."""


class UnfitItem(QueueductError, ValueError, TypeError, OverflowError):
    """The queue's dtype cannot hold a value unchanged; the message names the field. Any error that numpy raises."""


class JobFailed(QueueductError):
    """A job of a pool failed in every try: its worker died, or its exception cannot be raised in this process."""


class WorkersBroken(QueueductError):
    """A pool has ended: its workers cannot start, or its queues are unusable. ``__cause__`` says why."""


class ReaderInUse(QueueductError):
    """The reader of that name is held by a live process."""


class DataLost(QueueductError):
    """Items that a reader wants are gone: all before ``earliest``, or, if ``wanted`` is larger, all after it.

    ``wanted`` is larger after a crash of the machine: the log was cut at ``earliest``, and other items follow there.
    """

    def __init__(self, message: str, wanted: int, earliest: int) -> None:
        super().__init__(message, wanted, earliest)
        self.wanted = wanted
        self.earliest = earliest

    def __str__(self) -> str:
        return str(self.args[0])
