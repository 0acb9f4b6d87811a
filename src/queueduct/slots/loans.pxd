cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from queueduct.native._native cimport Flag
from queueduct.slots._backend cimport SlotsBackend
from queueduct.slots._native cimport Lease

cdef extern from "<atomic>" namespace "std" nogil:
    cdef cppclass atomic_int:
        int load()
        int fetch_add(int)


@cython.final
cdef class SlotMemory:
    """A slot on loan or taken. It is given back at the latest when its last reference is dropped."""
    cdef SlotsBackend backend
    cdef Lease lease
    cdef uint32_t forks              # the process's number of forks when it was lent
    cdef uint32_t noted_at           # of a taken slot: its entry in the list of threads that have leases
    cdef Flag is_open
    cdef bint is_loan
    cdef bint has_waited
    cdef uint64_t length             # bytes that views see
    cdef atomic_int exports          # memoryviews, and objects made from them


cdef class Slot:
    cdef SlotMemory memory
    cdef object session              # shared with its arrays: says whether they are still valid
    cdef object lent_view
    cdef object lent_array

    cdef SlotMemory _mine(self)
    cdef int _end_views(self, SlotMemory memory) except -1
    cdef int _let_go(self)


cdef object loan_slot(SlotsBackend backend, object length, int64_t deadline)
cdef object take_slot(SlotsBackend backend, int64_t deadline)
