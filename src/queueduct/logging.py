"""Standard logging through a named queue: many processes log, and one listener writes their lines.

``QueueHandler`` and ``QueueListener`` are the standard library's, by the name of a queue. A record is in the queue when
the call that logged it returns: a kill of its process loses nothing then. The listener leases what it writes: if it is
killed, the next one writes what was not yet written, and perhaps some of the last lines again.
"""

from __future__ import annotations

import contextlib
import logging
import logging.handlers
import os
import threading
from types import TracebackType
from typing import Any, Self

from queueduct.errors import Empty, Full, QueueClosed, QueueNotFound, ShutDown
from queueduct.rings import BoundedQueue
from queueduct.segments.catalog import open as open_queue

__all__ = ["QueueHandler", "QueueListener"]

CAPACITY = 16384  # slots; a line of 200 characters takes about three
WAIT_SECONDS = 1.0
BATCH = 256
FORK_WAIT_SECONDS = 5.0


class ForkGuard:
    """Lets a fork wait until no listener is writing: else the child would have a stream that is locked for ever.

    After some seconds the fork goes on: what a handler waits for may be the fork.
    """

    def __init__(self) -> None:
        self.writing = threading.RLock()
        os.register_at_fork(
            before=self.before, after_in_parent=self.after_in_parent, after_in_child=self.after_in_child
        )

    def before(self) -> None:
        self.writing.acquire(timeout=FORK_WAIT_SECONDS)

    def after_in_parent(self) -> None:
        with contextlib.suppress(RuntimeError):  # this thread does not have it: the time was up
            self.writing.release()

    def after_in_child(self) -> None:
        self.writing = threading.RLock()


guard = ForkGuard()


def log_queue(name: str, directory: Any, options: dict[str, Any]) -> Any:
    """Opens the queue of that name, or creates it: whichever process comes first does so."""
    try:
        queue = open_queue(name, directory=directory)
    except QueueNotFound:
        return BoundedQueue.create(
            name, **{"capacity": CAPACITY, **options}, item=object, directory=directory, exist_ok=True
        )
    if queue.item is not object or not hasattr(queue, "lease"):
        queue.close()
        raise TypeError(
            f"records go through a queue of objects that one consumer gets: {name!r} is of kind {queue.kind}, "
            f"item={queue.item}; use another name"
        )
    return queue


class QueueHandler(logging.handlers.QueueHandler):
    """Puts records into the queue of that name, which the first process to log creates.

    If the queue is full, a record waits at most ``timeout`` seconds for room; then handleError reports it, and further
    ones do not wait until there is room again. The application never gets an exception. ``options`` are those of
    ``BoundedQueue.create``; they count for the process that creates the queue.

    >>> import logging, sys, queueduct.logging
    >>> handler = queueduct.logging.QueueHandler("logs")
    >>> handler.handle(logging.makeLogRecord({"msg": "hello"})) is not False
    True
    >>> handler.close()
    >>> queueduct.unlink("logs")
    """

    def __init__(self, name: str, *, timeout: float = WAIT_SECONDS, directory: Any = None, **options: Any) -> None:
        if not isinstance(name, str) or not name:
            raise TypeError(f"the name of a queue is needed: name={name!r}; for another queue use logging.handlers")
        if not timeout >= 0:
            raise ValueError(f"timeout must be a non-negative number: timeout={timeout!r}")
        super().__init__(None)  # type: ignore[arg-type]  # the queue is opened at the first line
        self.queue_name = name
        self.timeout = timeout
        self.directory = directory
        self.options = options
        self.is_stuck = False

    def enqueue(self, record: logging.LogRecord) -> None:
        """Puts a record. The handler's lock is held; what is raised here goes to handleError.

        >>> import logging, queueduct.logging
        >>> handler = queueduct.logging.QueueHandler("logs")
        >>> handler.enqueue(logging.makeLogRecord({"msg": "hello"}))
        >>> handler.close()
        >>> queueduct.unlink("logs")
        """
        queue: Any = self.queue
        if queue is None:  # now, so that a configuration that is never used makes no queue
            queue = self.queue = log_queue(self.queue_name, self.directory, self.options)
        try:
            queue.put(record, timeout=0 if self.is_stuck else self.timeout)
        except Full:
            self.is_stuck = True
            raise
        self.is_stuck = False

    def close(self) -> None:
        """Closes this handle of the queue.

        >>> import queueduct.logging
        >>> queueduct.logging.QueueHandler("logs").close()
        """
        self.acquire()
        try:
            queue: Any = self.queue
            self.queue = None  # type: ignore[assignment]  # a closed handler has none
            if queue is not None:
                queue.close()
        finally:
            self.release()
        super().close()


class QueueListener(logging.handlers.QueueListener):
    """Gives the records of the queue of that name to handlers, in a thread: ``with QueueListener("logs", handler):``.

    ``stop``, or the end of the ``with``, writes what is there by then. The queue stays, for the next listener.

    >>> import logging, sys, queueduct.logging
    >>> listener = queueduct.logging.QueueListener("logs", logging.StreamHandler(sys.stdout))
    >>> handler = queueduct.logging.QueueHandler("logs")
    >>> with listener:
    ...     handler.enqueue(logging.makeLogRecord({"msg": "hello"}))
    hello
    >>> handler.close()
    >>> queueduct.unlink("logs")
    """

    def __init__(
        self,
        name: str,
        *handlers: logging.Handler,
        respect_handler_level: bool = False,
        directory: Any = None,
        **options: Any,
    ) -> None:
        super().__init__(log_queue(name, directory, options), *handlers, respect_handler_level=respect_handler_level)
        self._stopping = threading.Event()
        self._listening: threading.Thread | None = None

    def start(self) -> None:
        """Starts the thread.

        >>> import logging, sys, queueduct.logging
        >>> listener = queueduct.logging.QueueListener("logs", logging.StreamHandler(sys.stdout))
        >>> listener.start()
        >>> listener.stop()
        >>> queueduct.unlink("logs")
        """
        if self._listening is not None:
            raise RuntimeError("this listener has started already; stop it first")
        self._stopping.clear()
        self._listening = threading.Thread(target=self._listen, name="queueduct log listener", daemon=True)
        self._listening.start()

    def stop(self) -> None:
        """Writes what is in the queue, and ends the thread.

        >>> import logging, sys, queueduct.logging
        >>> listener = queueduct.logging.QueueListener("logs", logging.StreamHandler(sys.stdout))
        >>> with listener:  # calls start and stop
        ...     pass
        >>> queueduct.unlink("logs")
        """
        thread, self._listening = self._listening, None
        if thread is None:
            return
        self._stopping.set()
        with contextlib.suppress(Full, ShutDown):
            self.queue.put_nowait(None)  # wakes the thread; in a full queue it is awake
        thread.join()

    def _listen(self) -> None:
        while True:
            is_last = self._stopping.is_set()  # before the look: what was logged before stop() is then there
            try:
                self._write_some(0 if is_last else 1.0)
            except Empty:
                if is_last:
                    return
            except (ShutDown, QueueClosed):
                return

    def _write_some(self, timeout: float) -> None:
        queue: Any = self.queue
        try:
            lease = queue.lease(BATCH, timeout=timeout)
        except (Empty, ShutDown, QueueClosed):
            raise
        except Exception:  # one of them cannot be unpickled here
            self._write_one()
            return
        with lease:
            for record in lease.items:
                if record is not None:
                    self._write(record)

    def _write(self, record: logging.LogRecord) -> None:
        with guard.writing:
            self.handle(record)

    def _write_one(self) -> None:
        """Writes the next record. One that cannot be unpickled is reported, and is gone."""
        queue: Any = self.queue
        try:
            record = queue.get(timeout=0)
        except (Empty, ShutDown, QueueClosed):
            raise
        except Exception as error:
            record = logging.makeLogRecord(
                {
                    "name": __name__,
                    "levelno": logging.ERROR,
                    "levelname": "ERROR",
                    "msg": f"a record is lost: {error!r}",
                }
            )
        if record is not None:
            self._write(record)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
