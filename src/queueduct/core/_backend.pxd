from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint32_t, uint64_t

from queueduct.core._queue cimport Backend, Queue
from queueduct.items._buffers cimport Gathered, Held, as_records, borrow
from queueduct.items._item_kinds cimport OBJECT, RECORD
from queueduct.native._native cimport Buffer, Counted, Identity, Joined, ParticipantTable, Range, array_data, byte


cdef class SegmentBackend(Backend):
    """A backend on a mapped segment, of any kind of queue."""
    cdef Range* guard                # NULL if the memory is this process's own, which no other can truncate
    cdef const ParticipantTable* participant_table    # NULL until the native queue is made
    cdef int item_kind               # one of items/_item_kinds.pxd
    cdef uint32_t participants
    cdef uint64_t record_bytes       # of a record; 0 if items vary in length
    cdef readonly object dtype
    cdef readonly object memory      # the mapping; it is unmapped when the last call has returned
    cdef uint64_t message_bytes      # if all messages have one size, and participants count none; else 0
    cdef bint gave_back              # a get could not return its items: they are redelivered before others

    # Each kind implements:
    cdef Joined try_join(self) noexcept nogil               # makes the calling thread a participant
    cdef void sleep(self, bint for_items, uint64_t slots, int64_t limit_ns) noexcept nogil
    cdef int check_length(self, uint64_t length) except -1  # raises if an item of this length can never fit
    cdef int raise_corrupt(self) except -1
    cdef bint is_all_done(self) except -1                   # every item that was put is released; of a kind with leases

    cdef byte* take_over(self, object opened, Identity* identity) except NULL
    cdef int check_attached(self) except -1
    cdef int join(self) except -1
    cdef Gathered gather(self, object items)
    cdef bint wait_until(self, bint for_items, uint64_t slots, int64_t deadline, bint is_first) except -1
    cdef void note_wait(self, bint for_items, bint is_first, int64_t began) noexcept
    cdef int check_held(self) except -1
    cdef object resident_bytes(self)
    cdef bint is_unsettled(self, uint32_t line) noexcept    # a dead owner left something in this line
    cdef bint is_cut(self)
    cdef int raise_if_truncated(self) except -1
    cdef int raise_if_cut(self) except -1
    cdef int raise_not_joined(self, Joined joined) except -1
    cdef int raise_lost(self) except -1
    cdef int raise_shut_down(self) except -1


cdef SegmentBackend named_backend(Queue queue, str what)
cdef Identity own_identity() except *
cdef dict counter_fields(Counted counted)
cdef object encode_object


cdef inline uint32_t line_of(SegmentBackend backend) except? 0xFFFFFFFF:
    """Returns this thread's line in the participant table. A thread joins at its first operation."""
    cdef uint32_t mine = backend.participant_table.mine_plus_one()
    if mine == 0:
        backend.join()
        mine = backend.participant_table.mine_plus_one()
    return mine - 1


cdef inline object lend(SegmentBackend backend, object item, Buffer* one):
    """Sets where an item's bytes are. They stay there as long as the caller keeps the object that is returned."""
    cdef Held lent
    if backend.item_kind == RECORD:
        item = as_records(backend.dtype, item, one=True)
        one.data = array_data(item)
        one.bytes = backend.record_bytes
        return item
    if backend.item_kind == OBJECT:
        item = encode_object(item)
    elif type(item) is not bytes:
        lent = borrow(item)
        one.data = lent.view.buf
        one.bytes = lent.view.len
        return lent
    one.data = PyBytes_AS_STRING(item)
    one.bytes = PyBytes_GET_SIZE(item)
    return item
