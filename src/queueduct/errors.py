"""What can go wrong, one class for each decision that a caller can make.

::

    Exception
    ├── queue.Empty                 nothing there (the standard library's own)
    │   └── QueueEmpty              what the queues raise: it says which queue, and how long the call waited
    ├── queue.Full                  no room (the standard library's own)
    │   └── QueueFull               what the queues raise: it says which queue, how full, what can be done
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
from typing import Any, Self

from queueduct.stats import ReaderInfo

__all__ = [
    "CorruptSegment",
    "DataLost",
    "Empty",
    "Full",
    "JobFailed",
    "ProducerInUse",
    "QueueClosed",
    "QueueEmpty",
    "QueueExists",
    "QueueFull",
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


class Told(Exception):
    """The base of QueueEmpty and QueueFull. It keeps what was counted; the text is made when somebody reads it.

    A loop that polls raises thousands of them a second and reads none. ``args`` are a template of the text, the
    queue's name, the seconds that the call waited, and what the template names besides.
    """

    # No __init__ and no attributes of its own: they would cost as much as the exception. So it also pickles as it is.

    def _is_ours(self) -> bool:
        """Returns false if somebody else made it, with a text, or with nothing."""
        return len(self.args) >= 3

    def _fact(self, number: int, otherwise: Any = None) -> Any:
        return self.args[number] if self._is_ours() and number < len(self.args) else otherwise

    @property
    def queue(self) -> str | None:
        """The queue's name; None if it has none."""
        name: str | None = self._fact(1)
        return name

    @property
    def waited(self) -> float:
        """How many seconds the call waited; 0 if it was not to wait."""
        return float(self._fact(2, 0.0))

    def _facts(self) -> dict[str, object]:
        return {
            "queue": "without a name" if self.queue is None else repr(self.queue),
            "waited": f"; waited {self.waited:.3g} s" if self.waited >= 0.0005 else "",
        }

    def after(self, waited: float) -> Self:
        """Return the same error of a call that has waited so many seconds."""
        return type(self)(*self.args[:2], waited, *self.args[3:]) if self._is_ours() else self

    def saying(self, more: str) -> Self:
        """Return the same error, and what else there is to say."""
        return type(self)(f"{self.args[0]}; {more.replace('{', '{{').replace('}', '}}')}", *self.args[1:])

    def __str__(self) -> str:
        return str(self.args[0]).format(**self._facts()) if self._is_ours() else super().__str__()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class QueueEmpty(Told, Empty):
    """There is nothing to get. ``except queue.Empty`` catches it."""

    @property
    def leased(self) -> int | None:
        """How many items were on lease, and come back if their holder dies; None if nobody counted them."""
        return None if self._fact(3) is None else int(self._fact(3))

    def _facts(self) -> dict[str, object]:
        others = self._fact(4)  # participants besides this one; None if nobody counted them
        reader = self._fact(6)
        return {
            **super()._facts(),
            "leased": f", with {self.leased:,} on lease" if self.leased else "",
            "alone": "; no other thread or process takes part in it" if others == 0 else "",
            "position": self._fact(5),
            "reader": "an ephemeral reader" if reader is None else f"the reader {reader!r}",
        }


class QueueFull(Told, Full):
    """There is no room. ``except queue.Full`` catches it."""

    @property
    def size(self) -> int:
        """How much of ``capacity`` was in use: slots, messages or items; of a log and of a memory budget, bytes."""
        return int(self._fact(3, 0))

    @property
    def capacity(self) -> int:
        """How much there is."""
        return int(self._fact(4, 0))

    @property
    def leased(self) -> int | None:
        """How many items consumers had on lease, or slots were loaned or taken; None if nobody counted them."""
        return None if self._fact(5) is None else int(self._fact(5))

    @property
    def readers(self) -> tuple[ReaderInfo, ...]:
        """Of a log: the readers that keep its memory, the slowest first, and at most four of them."""
        return tuple(ReaderInfo(*each) for each in self._fact(7, ()))

    def _facts(self) -> dict[str, object]:
        wanted = self._fact(6)  # slots that the item takes; of a log, how many readers there are
        return {
            **super()._facts(),
            "size": self.size,
            "capacity": self.capacity,
            "leased": f", {self.leased:,} on lease" if self.leased else "",
            "wanted": f", and the item takes {wanted:,}" if wanted is not None and wanted > 1 else "",
            "out": self.leased,
            "readers": told_readers(self.readers, wanted or 0),
        }


def told_readers(readers: tuple[ReaderInfo, ...], count: int) -> str:
    """Returns a text that names ``readers``, the slowest of ``count``."""
    if not readers:
        return "no reader holds it back"
    named = "; ".join(
        f"{'an ephemeral reader' if each.name is None else repr(each.name)} at position {each.committed}, {each.lag} "
        f"behind, {'attached' if each.is_attached else 'held by no process'}{', dropped' if each.is_dropped else ''}"
        for each in readers
    )
    rest = f"; and {count - len(readers)} more" if count > len(readers) else ""
    return f"readers, the slowest first: {named}{rest}"


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
