# cython: language_level=3, binding=False, freethreading_compatible=True
"""What every backend that works on a mapped segment needs: who we are in it, and the errors it can always give."""

cimport cython

import os

from queueduct.native._guard cimport forget
from queueduct.native._native cimport check_length, is_broken, mark_broken, thread_limit

from queueduct.segments import segment
from queueduct.errors import CorruptSegment, QueueClosed, QueueNotShared, ShutDown, TooManyParticipants


cdef Identity own_identity() except *:
    """By which others tell whether we still live."""
    cdef Identity identity
    boot = segment.boot_id()
    identity.boot_id[0] = int.from_bytes(boot[:8], "little")
    identity.boot_id[1] = int.from_bytes(boot[8:], "little")
    identity.start_ticks = segment.process_start_ticks()
    return identity


@cython.no_gc_clear  # leases, slots and readers that go with it need its memory; no cycle consists of backends alone
cdef class SegmentBackend(Backend):

    def __dealloc__(self):
        forget(self.guard)

    cdef int check_open(self) except -1:
        if self.is_closing:
            return Backend.check_open(self)
        if self.participant_table is not NULL and self.participant_table.was_lost():
            self.raise_lost()
        return 0

    cdef int check_attached(self) except -1:
        """As soon as there is a roster: could it open its file?"""
        cdef int error = self.participant_table.open_error()
        if error != 0:
            raise OSError(
                error,
                f"the queue {self.label} needs a file descriptor of its own for its locks: {os.strerror(error)}; "
                "close files that are not needed, or raise the limit (ulimit -n)",
            )
        return 0

    cdef int check_held(self) except -1:
        """Before something that needs the file itself."""
        if self.participant_table is not NULL and self.participant_table.is_lost():
            self.raise_lost()
        return 0

    cdef int check_sound(self) except -1:
        """After an access to the mapping: was it one to pages that are there?"""
        return self.raise_if_truncated() if is_broken(self.guard) else 0

    cdef bint is_cut(self):
        """Is the file shorter than what is mapped of it? Who cannot know takes it for cut."""
        cdef int fd = -1 if self.participant_table is NULL else self.participant_table.descriptor()
        return fd < 0 or check_length(fd, len(self.memory)) != 0

    cdef int raise_if_truncated(self) except -1:
        if not is_broken(self.guard):
            return 0
        if self.is_cut():
            raise CorruptSegment(f"the segment of {self.label} was truncated while it was in use; recreate the queue")
        raise CorruptSegment(
            f"a page of the segment of {self.label} could not be had, although its file is as long as it was: it has a "
            "hole where none may be, or its disk fails; close this handle and open the queue again"
        )

    cdef int raise_if_cut(self) except -1:
        """After a copy that was given up: if the file is cut, nothing of this handle is to be believed from now on."""
        if self.guard is not NULL and self.is_cut():
            mark_broken(self.guard)
        return self.raise_if_truncated()

    cdef int raise_not_joined(self, Joined joined) except -1:
        """A thread has no line in the participant table, and this is why."""
        self.raise_if_truncated()
        if joined == Joined.table_full:
            raise TooManyParticipants(
                f"all {self.participants} participants of {self.label} are in use; "
                "close handles that are not needed, or create the queue with a larger participants="
            )
        if joined == Joined.too_many_threads:
            raise TooManyParticipants(f"more than {thread_limit} threads of this process use queueduct at once")
        if joined == Joined.forked_off:
            raise QueueNotShared(f"the queue {self.label} lives in the process that we were forked from: give it a name")
        self.raise_lost()

    cdef int raise_lost(self) except -1:
        """The handle has no descriptor to hold locks with: nobody else would see what it does."""
        raise QueueClosed(
            f"this handle of the queue {self.label} has no file descriptor any more: either this process has closed it, "
            "as os.closerange() and daemons do, or it could not be had: too many files were open, or there is no /proc; "
            "open the queue again by its name"
        )

    cdef int raise_shut_down(self) except -1:
        self.check_sound()
        raise ShutDown(f"the queue {self.label} is shut down")
