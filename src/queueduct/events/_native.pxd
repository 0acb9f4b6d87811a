# The declarations of native/events that the bindings use.

from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from queueduct.native._native cimport (
    Buffer, Counted, Counters, Event, Identity, Joined, ParticipantTable, ProducerLine, Producers, atomic, byte,
)

cdef extern from "events/queue.hpp" namespace "queueduct" nogil:
    const uint64_t block_bytes_limit
    const uint64_t dropped_bit
    const uint32_t reader_name_bytes
    uint32_t reader_lock_number(uint32_t)

    cdef struct EventsOffsets:
        uint64_t item_text, control, participants, readers, producers, chunks, blocks, arena, total

    cdef cppclass EventsWord:
        uint64_t word
        uint64_t position() const
        bint is_closed() const

    cdef cppclass EventsControl:
        atomic[uint64_t] end
        atomic[uint64_t] start
        atomic[uint64_t] head_chunk
        atomic[uint64_t] chunks_made
        atomic[uint64_t] used_bytes
        atomic[uint64_t] spare_bytes
        atomic[uint64_t] repairs
        atomic[uint64_t] dropped
        atomic[uint64_t] confirmed
        atomic[uint64_t] cuts

    cdef cppclass ChunkLine:
        atomic[uint64_t] items

    cdef enum class ReaderKind:
        none, ephemeral, durable

    cdef cppclass ReaderLine:
        atomic[uint64_t] place
        atomic[uint32_t] name_length
        atomic[uint64_t] beyond
        Counters counters
        char* name

    cdef cppclass EventsMap:
        EventsMap()
        EventsControl* control
        byte* arena
        uint64_t block_count, block_bytes, chunk_lines, max_bytes, first_items, item_bytes
        uint32_t reader_lines
        bint varies, may_drop
        ChunkLine& chunk(uint64_t) const

    cdef cppclass Chunk:
        uint64_t number, first, items, bytes
        byte* data

    cdef cppclass Cursor:
        uint64_t position, epoch
        Chunk chunk

    cdef cppclass Run:
        Run()
        Chunk chunk
        uint64_t at, items

    cdef enum class ReadResult:
        items, nothing, ended, lost, corrupt

    cdef enum class Appended:
        done, full, no_memory, no_disk, closed, corrupt

    cdef enum class Entered:
        yes, no, corrupt

    cdef enum class Subscribed:
        yes, table_full, busy, beyond

    cdef enum class Settling:
        alone, done, busy

    cdef cppclass BootWitnesses:
        BootWitnesses()
        uint64_t boot_id[2]
        bint has_clock
        int64_t clock_offset_ns
        bint is_on_disk

    uint64_t valid_until(const EventsControl&, uint64_t)
    void write_again(const EventsMap&)

    cdef cppclass Backing:
        Backing()

    cdef cppclass Readers:
        uint32_t used() const
        ReaderLine& line(uint32_t) const
        ReaderKind kind(uint32_t) const
        uint32_t find(const char*, uint32_t) const
    const uint64_t at_the_lock "queueduct::EventsQueue::at_the_lock"
    const uint32_t no_reader "queueduct::Readers::none"

    cdef cppclass EventLog:
        const EventsMap& map() const
        Readers& readers()
        void on_forget(void (*)(void*, void**, uint64_t) noexcept, void*)
        void shut_down()
        uint64_t reclaim(const Backing&)
        uint64_t chunk_bytes(uint64_t, uint64_t) const

    cdef cppclass EventsQueue:
        EventsQueue(byte*, const EventsOffsets&, EventsMap, uint32_t, uint32_t, int, Identity, bint, BootWitnesses)
        EventLog& log()
        ParticipantTable& participant_table()
        Backing backing() const
        bint find_line(uint32_t&) const
        Joined join()
        Entered try_enter(uint32_t)
        Entered enter(uint32_t, int64_t)
        void leave()
        void leave_after_put(uint64_t, uint64_t)
        Counted counted()
        bint is_within(uint32_t) const
        bint abandon_dead_readers(bint)
        void keep_last(uint64_t)
        Appended append_records(const void*, uint64_t, uint64_t&, ProducerLine*)
        Appended append_bytes(const Buffer*, uint64_t, uint64_t&, ProducerLine*)
        Subscribed subscribe(const char*, uint32_t, bint, uint64_t, uint32_t&, Cursor&)
        uint64_t rejoin(uint32_t, Cursor&)
        void unsubscribe(uint32_t)
        bint forget_reader(uint32_t)
        void leave_reader(uint32_t)
        void abandon_reader(uint32_t)
        Event items() const
        Event room() const
        void wait_for_items(uint64_t, int64_t)
        void wait_for_room(uint32_t, int64_t)
        uint64_t failures() const
        int sync(uint64_t)
        Settling begin_settling()
        bint must_settle() const
        bint settle_boot()
        void end_settling(bint)
        int boot_error() const
        uint64_t epoch() const
        int error() const
        int confirm_once(ProducerLine&)
        Producers& producers()

    ReadResult begin_session(const EventsMap&, ReaderLine&, Cursor&, uint64_t&)
    ReadResult next_run(const EventsMap&, ReaderLine&, bint, Cursor&, uint64_t, uint64_t, Run&)
    ReadResult run_at(const EventsMap&, uint64_t, uint64_t, uint64_t, Run&)
    bint move_to(const EventsMap&, ReaderLine&, uint64_t)
    bint still_holds(const EventsMap&, const ReaderLine&)
    bint is_still_kept(const EventsMap&, uint64_t)
    uint64_t earliest_position(const EventsMap&)


cdef inline EventsWord end_word(const EventsMap* map) noexcept nogil:
    """Where the next item goes, and whether the log is closed."""
    cdef EventsWord end
    end.word = map.control.end.load()
    return end
