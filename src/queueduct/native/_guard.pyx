# cython: language_level=3, binding=False, freethreading_compatible=True
"""The handler of SIGBUS: the only module that compiles it in, so all mapped memory is watched here."""

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport uint64_t, uintptr_t

from queueduct.native._native cimport is_broken

cdef extern from "segment/fault_guard.hpp" namespace "queueduct::fault_guard" nogil:
    Range* guard_watch "queueduct::fault_guard::watch"(void*, size_t)
    void guard_forget "queueduct::fault_guard::forget"(Range*)
    Attempt** guard_current "queueduct::fault_guard::current_attempt"()

cdef extern from "native/_window.hpp" namespace "queueduct" nogil:
    void* map_again(const void*, size_t)
    void unmap(void*, size_t)
    size_t page_size()


cdef Range* watch(void* begin, size_t bytes) except NULL:
    """From now on a fault in this memory marks it broken. Call forget() before it is unmapped."""
    cdef Range* range = guard_watch(begin, bytes)
    if range is NULL:
        raise MemoryError()
    return range


cdef void forget(Range* range) noexcept:
    guard_forget(range)


cdef Attempt** current_attempt() noexcept nogil:
    """Returns where this thread's current attempt to copy is recorded."""
    return guard_current()


@cython.final
cdef class Window:

    def __cinit__(self, uintptr_t begin, size_t bytes):
        cdef uintptr_t start = begin - begin % page_size()
        cdef size_t length = begin + bytes - start
        cdef void* memory = map_again(<void*>start, length)
        if memory is NULL:
            raise MemoryError()
        self.memory = <char*>memory
        self.length = length
        self.original = <const char*>start
        self.guard = watch(memory, length)

    def __dealloc__(self):
        forget(self.guard)
        if self.memory is not NULL:
            unmap(self.memory, self.length)

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.memory, self.length, True, flags)

    cdef bint covers(self, const void* begin, uint64_t bytes) noexcept:
        cdef uint64_t offset = <const char*>begin - self.original
        return <const char*>begin >= self.original and offset + bytes <= self.length

    cdef uint64_t offset_of(self, const void* begin) noexcept:
        return <const char*>begin - self.original

    cdef bint is_faulted(self) noexcept:
        return is_broken(self.guard)
