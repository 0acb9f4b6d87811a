# cython: language_level=3, binding=False, freethreading_compatible=True
"""JoinableQueue: a task that was got stays on lease until its task_done()."""

from libc.stdint cimport int64_t

from queueduct.core._queue cimport AT_ONCE, FOREVER, TIMED_OUT, remaining_ns
from queueduct.items.messages._messages cimport decode_message, keep_if_intact
from queueduct.multiprocessing._queues cimport Queue, checked_maxsize

import time

from queueduct.errors import Empty, TooManyParticipants

cdef enum:
    PARTICIPANTS = 1024  # twice those of other queues: a lease is one


cdef class JoinableQueue(Queue):
    """JoinableQueue(maxsize=0, *, ctx=None)\n--\n
    ``multiprocessing.JoinableQueue(maxsize)``: ``join()`` waits until a ``task_done()`` has followed each get.

    A task that was got stays in the queue until its task_done(). If its process dies before, another process gets it.

    >>> import queueduct.multiprocessing
    >>> q = queueduct.multiprocessing.JoinableQueue()
    >>> q.put({"job": 1})
    >>> item = q.get()
    >>> q.task_done()
    >>> q.join()
    """

    def __init__(self, maxsize=0, *, ctx=None):
        if self.ring is None:
            self.make(checked_maxsize(maxsize), PARTICIPANTS)

    cdef object get_item(self, int64_t deadline):
        cdef object lease
        self.check_open()
        try:
            lease = self.inner.lease(1, True, seconds_until(deadline))
        except Empty:
            return TIMED_OUT
        except TooManyParticipants as error:
            raise TooManyParticipants(
                f"more than {<int>PARTICIPANTS} tasks and threads at once are out of a JoinableQueue: "
                f"{len(self.taken)} of this process; call task_done() for each get(), or use Queue"
            ) from error
        if self.limit is not NULL:
            self.ring.queue.room().notify()
        try:
            item = decode_message(lease.items[0])
        except Exception as error:
            kept = []
            keep_if_intact(kept, error, lease.items[0])
            if not kept:  # it can never be unpickled: it is a task of its receiver like any other
                self.taken.append(lease)
            raise
        self.taken.append(lease)
        return item

    def task_done(self):
        """Say that a task is done: the oldest that this process has got, whichever thread calls.

        >>> import queueduct.multiprocessing
        >>> q = queueduct.multiprocessing.JoinableQueue()
        >>> q.put({"job": 1})
        >>> item = q.get()
        >>> q.task_done()
        >>> q.join()
        """
        self.check_open_or_closed()
        try:
            lease = self.taken.pop(0)
        except IndexError:
            raise ValueError("task_done() called too many times") from None
        lease.release()

    def join(self):
        """Wait until every task that was put has been got and is done.

        >>> import queueduct.multiprocessing
        >>> q = queueduct.multiprocessing.JoinableQueue()
        >>> q.join()
        """
        cdef double pause = 0.0002
        self.check_open_or_closed()
        while not self.is_all_done():
            time.sleep(pause)
            pause = min(pause * 1.5, 0.005)

    cdef bint is_all_done(self) except -1:
        """A task that comes back from a dead process moves from `leased` to `size`: so both are read between two
        looks at the count of such moves."""
        before = self.inner.stats()
        after = self.inner.stats()
        return (
            before.size == before.leased == after.size == after.leased == 0 and before.redelivered == after.redelivered
        )


cdef object seconds_until(int64_t deadline):
    if deadline == AT_ONCE:
        return 0
    if deadline == FOREVER:
        return None
    return max(remaining_ns(deadline), 0) / 1e9
