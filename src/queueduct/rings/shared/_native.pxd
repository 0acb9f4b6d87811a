# The declarations of native/ring, native/bounded and native/growing that the bindings use.

from libc.stdint cimport int64_t, uint32_t, uint64_t

from queueduct.native._native cimport (
    Aside, Buffer, Event, Identity, Joined, Outcome, Participant, ParticipantTable, ProducerLine, Producers, Rest,
    RingLease, Span,
    atomic, byte, visitproc,
)

cdef extern from "ring/handle.hpp" namespace "queueduct" nogil:
    cdef struct Target:
        void* to
        uint64_t bytes

    cdef cppclass Item:
        Item()
        Span span
        uint64_t bytes
        bint is_redelivered, has_waited

    cdef cppclass RingHandle:
        ParticipantTable& participant_table()
        Producers& producers()
        Rest& rest()
        Event items() const
        Event room() const
        bint find_participant(Participant&) const
        uint32_t count_alive() const
        void note_long_items()
        Joined join()
        uint64_t item_slots_limit() const
        Outcome put_bytes(Participant, const void*, uint64_t, Aside)
        Outcome put_buffers(Participant, const Buffer*, uint64_t, uint64_t&, Aside)
        Outcome put_records(Participant, const void*, uint64_t, Span&, Aside)
        Outcome put_bytes_once(Participant, ProducerLine&, const Buffer*, uint64_t, uint64_t&, Aside)
        Outcome put_records_once(Participant, ProducerLine&, const void*, uint64_t, uint64_t&, Aside)
        void after_put(bint)
        Outcome settle_producer(ProducerLine&)
        Outcome find(Participant, Item&, Aside)
        uint64_t widen(Participant, Item&, uint64_t, Target*)
        bint take(Participant, Item&, const Target*, uint64_t)
        void wait_for_items(int64_t)
        void wait_for_room(Outcome, uint64_t, int64_t)
        bint is_worth_a_try(Outcome)
        bint may_be_gettable() const
        void shut_down(bint)
        uint64_t count_items()
        uint64_t count_left()
        uint64_t count_leased()
        bint is_unreleased(uint64_t)
        bint seems_settled(uint32_t) const
        bint is_all_done(Participant)

cdef extern from "bounded/queue.hpp" namespace "queueduct" nogil:
    cdef struct BoundedOffsets:
        uint64_t item_text, control, participants, producers, generations, lengths, payload, total

    cdef cppclass Ring:
        atomic[uint64_t]* push_position
        atomic[uint64_t]* pop_position
        uint64_t capacity
        uint64_t slot_bytes

    cdef cppclass BoundedControl:
        atomic[uint64_t] tombstones
        atomic[uint64_t] redelivered

    cdef cppclass BoundedQueueHandle(RingHandle):
        BoundedQueueHandle(byte*, const BoundedOffsets&, uint64_t, uint64_t, uint32_t, uint32_t, int, Identity)
        const Ring& ring() const
        BoundedControl& control() const

    uint64_t slots_in_use(const Ring&)

cdef extern from "growing/queue.hpp" namespace "queueduct" nogil:
    cdef struct GrowingOffsets:
        uint64_t item_text, control, levels, participants, producers, regions, total

    cdef cppclass LevelRange:
        uint32_t read_level() const
        uint32_t written_level() const
        bint is_shut() const

    cdef cppclass GrowingRing:
        atomic[uint64_t]* push_position
        atomic[uint64_t]* pop_position
        uint64_t capacity
        @staticmethod
        uint64_t position_of(uint64_t)

    cdef cppclass Level:
        uint64_t capacity

    cdef cppclass LastRings:
        pass

    cdef cppclass GrowingControl:
        atomic[uint64_t] level_range, tombstones, redelivered, grown, shrunk

    cdef cppclass Levels:
        LevelRange level_range() const
        uint32_t steps() const
        uint64_t slot_bytes() const
        const Level& operator[](uint32_t) const
        GrowingRing ring(uint32_t, LevelRange) const
        GrowingControl& control() const

    cdef cppclass Flow "queueduct::GrowingFlow":
        int error() const

    cdef cppclass Upkeep:
        uint64_t reserved_bytes() const

    cdef cppclass NativeGrowing "queueduct::GrowingQueue" (RingHandle):
        NativeGrowing(
            byte*, const GrowingOffsets&, uint64_t, uint32_t, uint64_t, bint, uint64_t, uint32_t, uint32_t, int,
            Identity,
            LastRings*
        )
        const Levels& levels() const
        const Upkeep& upkeep() const
        GrowingControl& control() const
        Flow& flow()
        bint is_lock_corrupt() const

cdef extern from "rings/_references.hpp" namespace "queueduct" nogil:
    cdef cppclass LocalFound:
        LocalFound()
        Span span

    cdef cppclass LocalHandle:
        Event items() const
        Event room() const
        Outcome put(void*)
        Outcome put_many(void**, uint64_t, uint64_t&)
        Outcome get(void*&)
        Outcome find(uint64_t, LocalFound&)
        bint take(const LocalFound&, void**)
        uint64_t claim_limit() const
        bint may_be_gettable() const
        bint may_be_puttable() const
        bint is_worth_a_try(Outcome)
        void upkeep_while_empty()
        uint64_t count_items() const
        uint64_t pushed() const
        uint64_t count_unfinished() const
        bint finish_task()
        void discard_tasks(uint64_t)
        Event tasks()
        bint shut_down(bint)
        bint try_drain(void*&)

    cdef cppclass BoundedReferences(LocalHandle):
        @staticmethod
        BoundedOffsets offsets(uint64_t)
        const Ring& ring() const

    cdef cppclass GrowingReferences(LocalHandle):
        const Levels& levels() const

    BoundedReferences* new_bounded_references "queueduct::new_local<queueduct::BoundedReferences>"(uint64_t)
    GrowingReferences* new_growing_references "queueduct::new_local<queueduct::GrowingReferences>"()
    RingLease* new_lease(RingHandle&)

cdef extern from "rings/_references.hpp" namespace "queueduct":
    int visit_references(const LocalHandle&, visitproc, void*) noexcept
