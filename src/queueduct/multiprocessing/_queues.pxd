from libc.stdint cimport int64_t, uint64_t

from queueduct.core._queue cimport Queue as AnyQueue
from queueduct.items._buffers cimport Held
from queueduct.rings.shared._growing_backend cimport GrowingBackend
from queueduct.rings.shared._native cimport RingHandle

cdef extern from "growing/item_limit.hpp" namespace "queueduct" nogil:
    cdef cppclass ItemLimit:
        int initialise(uint64_t)
        uint64_t limit() const
        bint try_lock()
        bint lock(int64_t)
        void unlock()

cdef extern from *:
    """
    namespace queueduct {
    inline bool take_credit(ItemLimit& limit, RingHandle& queue) noexcept {
      return limit.take_credit([&queue] { return queue.count_items(); });
    }
    inline void wait_below(ItemLimit& limit, RingHandle& queue, IdleStrategy& idle, std::int64_t limit_ns) noexcept {
      const std::uint64_t most = limit.limit();
      wait_until(
          queue.room(), idle, [&] { return queue.count_items() < most; },
          [&] { return queue.count_items() <= most / 2; }, limit_ns);
    }
    }
    """
    cdef cppclass IdleStrategy "queueduct::IdleStrategy":
        pass
    bint take_credit_of "queueduct::take_credit"(ItemLimit&, RingHandle&) noexcept nogil
    void wait_below "queueduct::wait_below"(ItemLimit&, RingHandle&, IdleStrategy&, int64_t) noexcept nogil


cdef class SharedQueue:
    cdef AnyQueue inner
    cdef GrowingBackend ring
    cdef Held memory               # keeps the limit's memory mapped
    cdef ItemLimit* limit          # NULL: as many items as there is memory for
    cdef IdleStrategy idle
    cdef bint is_closed
    cdef bint has_put              # in this process
    cdef list kept                 # messages whose unpickling was interrupted: they are delivered first
    cdef list taken                # leases of a JoinableQueue, the oldest first
    cdef object __weakref__

    cdef int make(self, uint64_t maxsize, object participants) except -1
    cdef int take(self, object inner) except -1
    cdef int forget(self) except -1
    cdef int find_limit(self) except -1
    cdef int check_open(self) except -1
    cdef int put_item(self, object item, int64_t deadline) except -1
    cdef int put_message(self, const void* data, uint64_t length, int64_t deadline) except -1
    cdef int check_length(self, uint64_t length) except -1
    cdef object why_full(self, double waited)
    cdef int put_within_limit(self, const void* data, uint64_t length, int64_t deadline) except -1
    cdef bint wait_for_lock(self) except -1
    cdef bint wait_for_room(self, int64_t deadline) except -1
    cdef object get_item(self, int64_t deadline)
    cdef object count(self)
    cdef int check_open_or_closed(self) except -1


cdef class Queue(SharedQueue):
    pass


cdef uint64_t checked_maxsize(object maxsize) except? 0xFFFFFFFFFFFFFFFF
