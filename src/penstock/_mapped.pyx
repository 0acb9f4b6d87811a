# cython: language_level=3, binding=False, freethreading_compatible=True
"""What every body that works on a mapped segment needs: who we are in it, and the errors it can always give."""

from penstock._native cimport forget, is_broken, thread_limit
from penstock._queue cimport AT_ONCE, NOTHING

from penstock import segment
from penstock.errors import CorruptSegment, QueueClosed, ShutDown, TooManyParticipants


cdef Identity own_identity() except *:
    """By which others tell whether we still live."""
    cdef Identity identity
    boot = segment.boot_id()
    identity.boot_id[0] = int.from_bytes(boot[:8], "little")
    identity.boot_id[1] = int.from_bytes(boot[8:], "little")
    identity.start_ticks = segment.process_start_ticks()
    return identity


cdef class MappedBody(Body):

    def __cinit__(self, *args, **kwargs):
        self.deferred = []

    def __dealloc__(self):
        forget(self.guard)

    cdef int raise_if_truncated(self) except -1:
        if is_broken(self.guard):
            raise CorruptSegment(f"the segment of {self.label} was truncated while it was in use; recreate the queue")
        return 0

    cdef int raise_not_joined(self, Joined joined) except -1:
        """A thread has no line in the participant table, and this is why."""
        self.raise_if_truncated()
        if joined == Joined.table_full:
            raise TooManyParticipants(
                f"all {self.participants} participants of {self.label} are in use; "
                "close handles that are not needed, or create the queue with a larger participants="
            )
        if joined == Joined.too_many_threads:
            raise TooManyParticipants(f"more than {thread_limit} threads of this process use penstock at once")
        raise CorruptSegment(f"the queue {self.label} could not be opened again after a fork; open it by name")

    cdef int raise_shut_down(self) except -1:
        raise ShutDown(f"the queue {self.label} is shut down")

    cdef int raise_deferred(self) except -1:
        try:
            error = self.deferred.pop(0)
        except IndexError:  # another thread has raised it
            return 0
        raise error

    cdef list get_one_by_one(self, uint64_t limit, int64_t deadline):
        """A batch whose items may fail each for itself. Such a one ends it, and its error comes at its turn."""
        cdef list found = []
        cdef object item = self.get(deadline)
        while item is not NOTHING:
            found.append(item)
            if <uint64_t>len(found) == limit:
                break
            try:
                item = self.get(AT_ONCE)
            except (ShutDown, QueueClosed):  # comes again
                break
            except Exception as error:
                self.deferred.append(error)
                break
        return found
