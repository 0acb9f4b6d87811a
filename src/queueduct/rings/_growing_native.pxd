# What the bindings use of native/growing_queue.hpp, declared for Cython.

from libc.stdint cimport int64_t, uint32_t, uint64_t

from queueduct.native._native cimport (
    Buffer, Event, Identity, Joined, Local, Outcome, Peeked, ProducerLine, Producers, Rest, RingLease, ParticipantTable, Participant,
    Span, atomic, byte, visitproc,
)

cdef extern from "growing/queue.hpp" namespace "queueduct" nogil:
    cdef struct GrowingOffsets:
        uint64_t item_text, control, levels, participants, producers, regions, total

    cdef cppclass LevelRange:
        uint64_t word
        uint32_t read_level() const
        uint32_t written_level() const
        bint is_shut() const
        bint is_discarded() const

    cdef cppclass GrowingRing:
        GrowingRing()
        atomic[uint64_t]* push_position
        atomic[uint64_t]* pop_position
        uint64_t capacity, stage_seen
        uint64_t slots_for(uint64_t) const
        @staticmethod
        uint64_t position_of(uint64_t)

    cdef cppclass Level:
        uint64_t capacity

    cdef cppclass LastRings:
        pass

    cdef cppclass GrowingControl:
        atomic[uint64_t] stage, tombstones, redelivered, grown, shrunk, resets

    cdef cppclass Levels:
        LevelRange stage() const
        uint32_t steps() const
        uint64_t slot_bytes() const
        const Level& operator[](uint32_t) const
        GrowingRing ring(uint32_t, LevelRange) const
        GrowingControl& control() const

    cdef cppclass GrowingFound "queueduct::GrowingRecovery::RecoveryScan":
        GrowingFound()
        bint changed, redeliverable, unclaimed
        Peeked peeked

    cdef cppclass GrowingRecovery:
        bint has_more() const

    cdef cppclass Flow "queueduct::GrowingFlow<queueduct::GrowingKeeper>":
        void after_get(const GrowingRing&)
        void rest()
        bint tidy()
        bint is_worth_a_try(Outcome)
        int error() const

    cdef cppclass Upkeep:
        uint64_t reserved_bytes() const

    cdef cppclass NativeGrowing "queueduct::GrowingQueue":
        NativeGrowing(
            byte*, const GrowingOffsets&, uint64_t, uint32_t, uint64_t, bint, uint64_t, uint32_t, uint32_t, int, Identity,
            LastRings*
        )
        const Levels& levels() const
        const Upkeep& upkeep() const
        GrowingControl& control() const
        Rest& rest()
        ParticipantTable& participant_table()
        Producers& producers()
        Flow& flow()
        GrowingRecovery& recovery()
        Event items() const
        Event room() const
        bint find_participant(Participant&) const
        int file() const
        uint64_t owner_word(Participant) const
        Joined join()
        Outcome peek(Participant, Peeked&, GrowingRing&)
        Outcome peek_in_place(Participant, Peeked&)
        const GrowingRing* ring_in_place(Participant) const
        void widen_records(Participant, const GrowingRing&, uint64_t, Peeked&)
        uint64_t widen_bytes(Participant, const GrowingRing&, uint64_t, uint64_t*, Peeked&)
        Outcome try_put_bytes(Participant, const void*, uint64_t)
        Outcome try_put_bytes_many(Participant, const Buffer*, uint64_t, uint64_t&)
        Outcome try_put_records(Participant, const void*, uint64_t, uint64_t&)
        Outcome try_put_bytes_once(Participant, ProducerLine&, const Buffer*, uint64_t, uint64_t&)
        Outcome try_put_records_once(Participant, ProducerLine&, const void*, uint64_t, uint64_t&)
        uint64_t slots_for(uint64_t) const
        uint64_t item_slots_limit() const
        bint recovery_is_due(Outcome)
        bint lock_names_a_bystander() const
        GrowingFound recover()
        bint try_redeliver(Participant, const GrowingFound&)
        void drop_guard()
        void finish_redelivered(Participant, const GrowingFound&, void*)
        bint make_room(Participant)
        Outcome settle_producer(ProducerLine&)
        void shut_down(bint)
        void note_long_items()
        uint64_t count_items()
        uint64_t count_left()
        bint looks_gettable() const
        bint looks_puttable(uint64_t, uint64_t) const
        uint32_t count_alive() const
        void wait_for_items(int64_t)
        bint may_come_again()
        uint64_t count_leased()
        void wait_for_room(uint64_t, uint64_t, int64_t)
        void wait_a_moment()

    uint64_t count_items(const Levels&, bint)
    bint claim_pop(const GrowingRing&, Participant, Span)
    void finish_pop(const GrowingRing&, Participant, const Peeked&, void*)
    void give_back(const GrowingRing&, Participant, Span)
    void copy_out(const GrowingRing&, uint64_t, void*, uint64_t)
    void widen_records(const GrowingRing&, uint64_t, Peeked&)
    bint try_take_references(const GrowingRing&, Local, Span, void**)

cdef extern from "growing/lease.hpp" namespace "queueduct" nogil:
    cdef cppclass GrowingLease(RingLease):
        GrowingLease(NativeGrowing&)

    bint is_unreleased(NativeGrowing&, uint64_t)

cdef extern from "growing/local.hpp" namespace "queueduct" nogil:
    cdef cppclass LocalFlow "queueduct::GrowingFlow<queueduct::LocalGrowingQueue>":
        void after_get(const GrowingRing&)
        void rest()
        bint is_worth_a_try(Outcome)

    cdef cppclass LocalGrowing "queueduct::LocalGrowingQueue":
        LocalGrowing(byte*)
        @staticmethod
        GrowingOffsets offsets()
        const Levels& levels() const
        LocalFlow& flow()
        Event items() const
        Event room() const
        bint looks_gettable() const
        bint looks_puttable() const
        Outcome peek(Local, Peeked&, GrowingRing&)
        Outcome try_put_reference(Local, void*)
        Outcome try_put_references(Local, void**, uint64_t, uint64_t&)
        Outcome try_get_reference(Local, void*&)
        bint shut_down(bint)
        bint try_drain_reference(void*&)
        void rest()
        void wait_a_moment()

cdef extern from "rings/_growing_references.hpp" namespace "queueduct":
    int visit_growing(const LocalGrowing&, visitproc, void*) noexcept
