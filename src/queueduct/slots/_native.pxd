# What the bindings of SlotQueue and IndexQueue use of native/, declared for Cython.

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libcpp cimport bool as boolean

from queueduct.native._native cimport (
    Counted, Event, Identity, Joined, ParticipantTable, ProducerLine, Producers, Rest, atomic, byte,
)

cdef extern from "slots/index_queue.hpp" namespace "queueduct" nogil:
    cdef cppclass CyclicIndices:
        uint64_t make(uint64_t, uint64_t) const
        uint64_t cycle_of(uint64_t) const
        uint64_t index_of(uint64_t) const

    cdef cppclass IndexEnds:
        pass

    cdef enum class Seen "queueduct::IndexQueue::Seen":
        index, nothing, corrupt

    cdef cppclass NativeIndexQueue "queueduct::IndexQueue":
        NativeIndexQueue(IndexEnds*, atomic[uint64_t]*, uint64_t)
        void construct_empty(uint64_t)
        void construct_full(uint64_t)
        bint push(uint64_t)
        Seen pop(uint64_t&)
        Seen pop_if_full(uint64_t&)
        Seen pop_if_size_at_least(uint64_t, uint64_t&)
        uint64_t size()
        uint64_t head() const
        uint64_t tail() const
        uint64_t cell(uint64_t) const
        const CyclicIndices& cyclic() const

cdef extern from "slots/queue.hpp" namespace "queueduct" nogil:
    cdef enum class SlotOutcome:
        done, full, empty, closed, corrupt

    cdef struct SlotsOffsets:
        uint64_t item_text, control, participants, producers, free_cells, used_cells, lines, payload, total, stride

    cdef cppclass Lease:
        Lease()
        uint64_t slot, word, bytes, position, deliveries
        boolean redelivered
        byte* data

    cdef cppclass SlotsControl:
        atomic[uint64_t] evicted
        atomic[uint64_t] recovered
        atomic[uint64_t] redelivered

    const uint32_t puts_closed "queueduct::Slots::puts_closed", gets_closed "queueduct::Slots::gets_closed"

    cdef cppclass Slots:
        uint64_t count() const
        uint64_t slot_bytes() const
        uint64_t capacity() const
        uint64_t published()
        uint32_t closed() const
        NativeIndexQueue& free()
        NativeIndexQueue& used()
        SlotOutcome try_hold(uint32_t, Lease&)
        SlotOutcome publish(Lease&, uint64_t)
        SlotOutcome try_take(uint32_t, Lease&)
        SlotOutcome try_take_new(uint32_t, Lease&)
        SlotOutcome try_evict(uint32_t, Lease&)
        SlotOutcome try_evict_surplus(uint32_t, Lease&)
        bint leave(Lease&)
        bint put_back(Lease&)
        bint may_be_holdable()
        bint may_be_takeable()

    cdef struct SlotCounts:
        uint64_t free, loaned, queued, taken

    cdef cppclass SlotsQueue:
        SlotsQueue(byte*, const SlotsOffsets&, uint64_t, uint64_t, uint32_t, uint32_t, int, Identity)
        Slots& slots()
        SlotsControl& control() const
        Rest& rest()
        ParticipantTable& participant_table()
        Producers& producers()
        bint settle_producer(ProducerLine&)
        Event items() const
        Event room() const
        uint32_t me() const
        Joined join()
        bint recover_if_due(uint32_t, bint)
        bint is_drained(uint32_t)
        bint is_all_done(uint32_t)
        void wake_the_rest()
        void shut_down(bint)
        void set_capacity(uint64_t)
        void wake_everybody()
        void wait_for_items(int64_t)
        void wait_for_room(int64_t)
        void count_put(uint32_t, uint64_t)
        void count_got(uint32_t, uint64_t, uint64_t)
        void count_put_by_any(uint64_t)
        void count_got_by_any(uint64_t, uint64_t)
        Counted counted() const
        uint64_t size()
        SlotCounts count_slots() const
        bint is_named(uint32_t) const

    uint32_t owner_of "queueduct::slot_word::owner_of"(uint64_t)
    SlotOutcome publish_once(Slots&, ProducerLine&, Lease&, uint64_t)

cdef extern from "slots/lease.hpp" namespace "queueduct" nogil:
    SlotOutcome try_lease(Slots&, uint32_t, Lease*, uint64_t, uint64_t&)
    bint end_lease(Slots&, Lease*, uint64_t, uint64_t)
    uint64_t bytes_of(const Lease*, uint64_t)
    uint64_t list_unreleased(const Slots&, uint64_t*)
