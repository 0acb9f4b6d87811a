# cython: language_level=3, binding=False, freethreading_compatible=True
"""Rows of operations in a worker's own file: written while it works, read when it has ended or was killed."""

cimport cython
from libc.errno cimport EINTR, errno as last_error
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from posix.fcntl cimport O_CLOEXEC, O_CREAT, O_EXCL, O_RDWR, open as posix_open
from posix.mman cimport MAP_FAILED, MAP_SHARED, PROT_READ, PROT_WRITE, mmap, munmap
from posix.unistd cimport close, pwrite

from queueduct.verification.history._native cimport *
from queueduct.native._native cimport array_data, import_array

import errno
import os

import numpy

import_array()

cdef extern from "<fcntl.h>" nogil:
    int posix_fallocate(int, int64_t, int64_t)

cdef extern from "<sys/mman.h>" nogil:
    int madvise(void*, size_t, int)

cdef enum:
    PAGE_BYTES = 65536               # the largest page of a kernel: madvise needs whole pages
    POPULATE_WRITE = 23              # MADV_POPULATE_WRITE, since Linux 5.14

cdef uint64_t RESERVED = <uint64_t>1 << 36    # of address space
cdef uint64_t FIRST_STEP = <uint64_t>1 << 18
cdef uint64_t LONGEST_STEP = <uint64_t>1 << 23

cdef uint64_t ZEROED_AT_ONCE = <uint64_t>1 << 20
cdef bytes ZEROS = bytes(ZEROED_AT_ONCE)

OPS = ("put", "get")
OUTCOMES = ("ok", "full", "empty", "pending")
WEAK, REDELIVERED, LOST = 1, 2, 4
OVER = over_without_time
MOST_ITEMS = most_items              # of a row
MOST_TICKETS = no_ticket


@cython.final
cdef class RowFile:

    def __cinit__(self, path, uint32_t worker, int reader=-1, uint64_t expected=0, uint64_t tick_step=1):
        """Allocates ``expected`` bytes at once, so that no operation waits for them."""
        self.descriptor = -1
        self.path = os.fspath(path)
        self.descriptor = posix_open(os.fsencode(self.path), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        if self.descriptor < 0:
            raise OSError(last_error, "a worker's rows cannot be written", self.path)
        self.take_from_disk(max(FIRST_STEP, (expected + PAGE_BYTES - 1) // PAGE_BYTES * PAGE_BYTES))
        self.memory = <uint64_t*>mmap(NULL, RESERVED, PROT_READ | PROT_WRITE, MAP_SHARED, self.descriptor, 0)
        if self.memory == <uint64_t*>MAP_FAILED:
            self.memory = NULL
            raise OSError(last_error, "a worker's rows cannot be mapped", self.path)
        self.make_ready(0)
        write_header(self.memory, worker, <uint64_t>(reader + 1), tick_step)
        self.rows = new HistoryWriter(self.memory + header_words, self.memory + self.size // 8)

    def __dealloc__(self):
        del self.rows
        if self.memory is not NULL:
            munmap(self.memory, RESERVED)
        if self.descriptor >= 0:
            close(self.descriptor)

    cdef int grow(self) except -1:
        """Allocates room for more rows, so that a full disk raises an error instead of SIGBUS."""
        cdef uint64_t before = self.size
        self.take_from_disk(min(self.size, LONGEST_STEP))
        self.make_ready(before)
        self.rows.extend(self.memory + self.size // 8)
        return 0

    cdef int make_ready(self, uint64_t start) except -1:
        """Allocates pages from there on, in larger pieces than page faults would: that takes a third of the time."""
        cdef const char* zeros = ZEROS
        cdef uint64_t at = start
        with nogil:
            while at < self.size and pwrite(self.descriptor, zeros, min(ZEROED_AT_ONCE, self.size - at), at) > 0:
                at += ZEROED_AT_ONCE  # a short write leaves zeros, too
            madvise(<char*>self.memory + start, self.size - start, POPULATE_WRITE)  # on kernels that have it
        return 0

    def take_from_disk(self, uint64_t step):
        cdef int error
        if self.size + step > RESERVED:
            raise OSError(errno.EFBIG, f"a worker's rows have more than {RESERVED >> 30} GiB", self.path)
        with nogil:
            error = posix_fallocate(self.descriptor, self.size, step)
            while error == EINTR:
                error = posix_fallocate(self.descriptor, self.size, step)
        if error != 0:
            raise OSError(
                error,
                f"no room for the rows of the history: {os.strerror(error)}; free some, or ask for fewer operations",
                self.path,
            )
        self.size += step


def has_cycles():
    """Returns true if this process can read the machine's cycle counter."""
    return has_cycle_counter


def read_clocks():
    """Returns the cycle counter and CLOCK_MONOTONIC at one moment: (ticks, ns)."""
    cdef uint64_t before, ticks, after, best_ticks = 0, best_ns = 0
    cdef uint64_t narrowest = ~<uint64_t>0
    for _ in range(200):
        before = MonotonicClock.now()
        ticks = CycleCounter.now()
        after = MonotonicClock.now()
        if after - before < narrowest:
            narrowest = after - before
            best_ticks = ticks
            best_ns = before + (after - before) // 2
    return best_ticks, best_ns


def read_header(const uint64_t[::1] words not None):
    """Returns (worker, reader or -1), or None if its worker was killed before there was a header."""
    if words.shape[0] < header_words or words[0] == 0:
        return None
    if words[0] != header_magic or words[1] >> 32 != header_version:
        raise ValueError(f"no rows of a history: magic={words[0]:#x}, version={words[1] >> 32}")
    return <uint32_t>words[1], <int64_t>words[2] - 1


@cython.final
cdef class RowReader:
    """The operations in a worker's file, from the first one on; each item of a row is one."""
    cdef HistoryReader* rows
    cdef const uint64_t[::1] words

    def __cinit__(self, const uint64_t[::1] words not None):
        if read_header(words) is None:
            raise ValueError("no rows of a history: its worker was killed before there was a header")
        self.words = words
        self.rows = new HistoryReader(&words[0] + header_words, &words[0] + words.shape[0], words[step_word])

    def __dealloc__(self):
        del self.rows

    def read(self, uint64_t limit):
        """Returns up to ``limit`` operations as (op, outcome, flags, value, ticket, invoke, returned), or None."""
        cdef HistoryColumns columns
        cdef uint64_t read
        small = [numpy.empty(limit, dtype=numpy.uint8) for _ in range(3)]
        large = [numpy.empty(limit, dtype=numpy.uint64) for _ in range(4)]
        columns.op = <uint8_t*>array_data(small[0])
        columns.outcome = <uint8_t*>array_data(small[1])
        columns.flags = <uint8_t*>array_data(small[2])
        columns.value = <uint64_t*>array_data(large[0])
        columns.ticket = <uint64_t*>array_data(large[1])
        columns.invoke = <uint64_t*>array_data(large[2])
        columns.returned = <uint64_t*>array_data(large[3])
        with nogil:
            read = self.rows.read(columns, limit)
        if read == 0:
            if self.rows.is_stuck():
                at = self.rows.at() - &self.words[0]
                raise ValueError(f"a row cannot be, at byte {8 * at} of {8 * len(self.words)}: {self.words[at]:#x}")
            return None
        return tuple(column[:read] for column in (*small, *large))
