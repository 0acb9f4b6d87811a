# The declarations of native/ and _python.hpp that the bindings use.

from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef extern from "<cstddef>" namespace "std" nogil:
    cdef cppclass byte:
        pass

cdef extern from "<stdlib.h>" nogil:
    void* aligned_alloc(size_t, size_t)

cdef extern from "<atomic>" namespace "std" nogil:
    cdef cppclass atomic[T]:
        T load()

cdef extern from "Python.h":
    ctypedef int (*visitproc)(PyObject*, void*) noexcept
    ctypedef int (*traverseproc)(PyObject*, visitproc, void*) noexcept
    ctypedef int (*inquiry)(PyObject*) noexcept
    ctypedef struct PyTypeObject:
        traverseproc tp_traverse
        inquiry tp_clear

cdef extern from "ring/handle.hpp" namespace "queueduct" nogil:
    const uint64_t closed_bit
    const uint64_t item_bytes_limit
    const int64_t park_limit_ns
    int64_t monotonic_ns()
    void pause_between_attempts()
    void pause_for(int64_t)

    cdef enum class Outcome:
        done, full, empty, busy, closed, corrupt, moved, unbacked

    cdef enum class Joined "queueduct::ParticipantTable::Joined":
        yes, table_full, too_many_threads, lost, forked_off
    const uint32_t thread_limit "queueduct::thread_number::limit"

    cdef cppclass Rest:
        void identify(uint64_t)
        uint32_t note()
        @staticmethod
        void forget(uint32_t)

    cdef cppclass Counters:
        pass

    cdef struct Counted:
        uint64_t items_put, bytes_put, items_got, bytes_got, waits_for_room, waits_for_items, waited_ns

    cdef cppclass ParticipantLine:
        atomic[uint64_t] intent, guarded
        Counters counters

    void count_got(Counters&, uint64_t, uint64_t)
    void count_wait(Counters&, bint, bint, int64_t)

    cdef cppclass ParticipantTable:
        ParticipantLine* lines() const
        uint32_t used() const
        bint is_alive(uint32_t) const
        bint holds(uint32_t) const
        void let_go(uint32_t)
        void let_go_of_ended()
        void leave_line()
        uint32_t generation() const
        uint32_t mine_plus_one() const
        uint32_t count_alive() const
        int descriptor() const
        int open_error() const
        bint is_lost() const
        bint was_lost() const

    Counted counted(const ParticipantTable&)

    cdef struct ParticipantSeen:
        uint32_t pid, thread, tenure
        uint64_t start_ticks, last_use_ns
        uint64_t boot_id[2]
        Counted counted

    bint see_participant(const ParticipantLine&, ParticipantSeen&)

    cdef struct Identity:
        uint64_t boot_id[2]
        uint64_t start_ticks

    cdef struct Span:
        uint64_t position, slots

    cdef struct Peeked:
        Span span
        uint64_t bytes
        uint64_t skipped

    cdef struct Buffer:
        const void* data
        uint64_t bytes

    cdef cppclass Participant:
        Participant()
        void count_wait(bint, bint, int64_t)

    cdef cppclass Event:
        void notify()
        void notify_all()
        void wake_all()
        uint32_t announce()
        void park(uint32_t, int64_t)
        void park_for_all(uint32_t, int64_t)

    uint64_t owner_word "queueduct::owner::word_of"(const ParticipantTable&, uint32_t)
    const uint64_t count_limit "queueduct::Progress::count_limit"
    const size_t producer_name_bytes

    cdef enum class Phase:
        idle, intended, claimed

    cdef cppclass Progress:
        Phase phase
        uint64_t total, done

    cdef enum class Taken "queueduct::Producers::Taken":
        yes, in_use, table_full, table_busy, unknown

    cdef enum class Begun:
        yes, complete, other_total, unfinished

    cdef cppclass ProducerName:
        ProducerName()
        @staticmethod
        bint of(const char*, size_t, ProducerName&)
        const char* text() const
        size_t bytes() const

    cdef cppclass ProducerLine:
        pass

    cdef cppclass Listed "queueduct::Producers::Listed":
        Listed()
        ProducerName name
        uint64_t sequence, total, done

    cdef cppclass Producers:
        uint32_t count() const
        Taken take(const ProducerName&, uint64_t, uint64_t, uint64_t, ProducerLine*&)
        Taken find(const ProducerName&, uint64_t, ProducerLine*&)
        Taken forget(const ProducerName&, uint64_t)
        bint snapshot(uint32_t, Listed&) const
        @staticmethod
        void leave(ProducerLine&)

    Progress progress_of(const ProducerLine&)
    uint64_t sequence_of(const ProducerLine&)
    Begun begin(ProducerLine&, uint64_t, uint64_t)
    ctypedef void (*Aside)(void (*)(void*) noexcept nogil, void*) noexcept nogil

    cdef struct Redelivered:
        Span span
        uint64_t bytes
        uint64_t seen
    uint64_t count_deliveries(const Redelivered&)

cdef extern from "ring/lease.hpp" namespace "queueduct" nogil:
    cdef cppclass RingLease:
        Joined join()
        bint is_ours() const
        void borrow(Participant)
        void set_apart()
        void finish(const Redelivered*, uint64_t)
        bint is_redelivered() const
        uint32_t line() const
        Outcome claim(Redelivered*, uint64_t, uint64_t&, bint, Aside)
        void copy_out(const Redelivered&, void*, uint64_t) const
        void release(const Redelivered*, uint64_t, bint)
        void let_go()

cdef extern from "segment/file_size.hpp" namespace "queueduct" nogil:
    int check_length(int, uint64_t)
    int64_t allocated_bytes(int)

cdef extern from "segment/fault_guard.hpp" namespace "queueduct::fault_guard" nogil:
    cdef cppclass Range:
        pass

cdef extern from "numpy/arrayobject.h":
    int import_array "_import_array"() except -1

cdef extern from "native/_python.hpp" namespace "queueduct" nogil:
    const bint has_gil
    ctypedef bint Flag              # a bint that threads may read and write at the same time
    bint lower(Flag&)               # lowers it; returns true if it was up
    void run_without_gil(void (*)(void*) noexcept nogil, void*)
    void notify_local(Event)
    bint is_broken(const Range*)
    void mark_broken(Range*)

cdef extern from "native/_python.hpp" namespace "queueduct":
    void* array_data(object)
    void shorten(object, uint64_t)
    object owned(void*)
    void** references_of(object)
    void count_each(void**, uint64_t)
    void drop_each(void**, uint64_t)
    void drop_held(void**, uint64_t)
