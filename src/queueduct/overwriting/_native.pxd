# What the bindings of OverwritingQueue use of native/, declared for Cython.

from libc.stdint cimport int64_t, uint32_t, uint64_t

from queueduct.native._native cimport Buffer, Event, Identity, Joined, Rest, ParticipantTable, atomic, byte

cdef extern from "overwriting/queue.hpp" namespace "queueduct" nogil:
    cdef struct OverwritingOffsets:
        pass
    OverwritingOffsets overwriting_offsets(uint64_t, uint64_t, uint32_t, uint32_t)

    cdef enum class Claim:
        done, full, empty, busy, locked, closed, corrupt

    cdef struct RingState:
        uint32_t start, length

    cdef struct Fates "queueduct::OverwritingRing::Fates":
        uint64_t puts, delivered, overwritten, torn, lost_with_consumer

    cdef cppclass OverwritingRing:
        uint64_t capacity() const
        uint64_t message_bytes() const
        atomic[uint64_t]& header_lock() const
        RingState state() const
        Fates fates() const
        uint32_t length() const
        bint is_discarded() const
        bint may_be_empty() const
        bint may_be_gettable() const
        bint may_be_free() const

    cdef cppclass LeasedMessage:
        uint64_t position, cell
        uint64_t deliveries() const

    cdef cppclass LeasedMessages:
        uint64_t cells() const
        uint64_t used() const
        uint64_t data_bytes() const
        byte* data(uint64_t) const
        uint64_t list(int64_t*, uint64_t) const
        uint64_t count_orphans() const
        uint64_t count_leased() const

    cdef cppclass OverwritingControl:
        atomic[uint32_t] closed
        atomic[uint64_t] redelivered

    cdef cppclass OverwritingShared:
        OverwritingShared(byte*, const OverwritingOffsets&, uint64_t, uint64_t, uint32_t, int, Identity)
        OverwritingRing& ring()
        OverwritingControl& control() const
        LeasedMessages& leased_messages()
        Rest& rest()
        ParticipantTable& participant_table()
        Event items() const
        Event room() const
        bint find_line(uint32_t&) const
        Joined join()
        Claim try_put(uint32_t, const void*, uint64_t, bint, int64_t)
        Claim try_put_many(uint32_t, const Buffer*, uint64_t, bint, int64_t, uint64_t&)
        Claim try_put_records(uint32_t, const char*, uint64_t, uint64_t, bint, int64_t, uint64_t&)
        Claim try_get(uint32_t, void*, uint64_t, int64_t)
        Claim try_get_records(uint32_t, char*, uint64_t, uint64_t, int64_t, uint64_t&)
        Claim try_read_newest(uint32_t, uint64_t, void*, uint64_t, int64_t, uint64_t&)
        void wait_for_newer(uint64_t, int64_t)
        bint may_be_empty() const
        void shut_down(bint)
        void wake_everybody()
        void wait_for_items(int64_t)
        bint may_come_again()
        bint is_all_done()
        void wait_for_room(int64_t)
        void wait_for_copy(int64_t)
        void wait_for_cell(int64_t)

cdef extern from "overwriting/lease.hpp" namespace "queueduct" nogil:
    cdef cppclass OverwritingLease:
        OverwritingLease(OverwritingShared&)
        Joined join()
        bint is_ours() const
        void borrow(uint32_t)
        void set_apart()
        void finish(const LeasedMessage*, uint64_t)
        int allocate()
        Claim try_claim(LeasedMessage*, uint64_t, int64_t, uint64_t&)
        uint64_t take_over(LeasedMessage*, uint64_t)
        void release(const LeasedMessage*, uint64_t)
        void let_go()
        bint is_redelivered() const
