# The declarations of native/verification that the recording of histories uses.

from libc.stdint cimport uint8_t, uint32_t, uint64_t

cdef extern from "verification/history.hpp" namespace "queueduct" nogil:
    const bint has_cycle_counter

    cdef cppclass CycleCounter:
        @staticmethod
        uint64_t now()

    cdef cppclass MonotonicClock:
        @staticmethod
        uint64_t now()

    const uint64_t header_magic "queueduct::HistoryHeader::magic"
    const uint64_t header_version "queueduct::HistoryHeader::version"
    const uint64_t header_words "queueduct::HistoryHeader::words"
    const uint64_t step_word "queueduct::HistoryHeader::step_word"
    void write_header "queueduct::HistoryHeader::write"(uint64_t*, uint32_t, uint64_t, uint64_t)

    const uint64_t most_items "queueduct::HistoryRow::most_items"
    const uint64_t no_ticket "queueduct::HistoryRow::no_ticket"

    cdef cppclass HistoryWriter:
        HistoryWriter(uint64_t*, uint64_t*)
        void extend(uint64_t*)
        const uint64_t* at() const

cdef extern from "verification/history_reader.hpp" namespace "queueduct" nogil:
    const uint64_t over_without_time "queueduct::HistoryColumns::over"

    cdef struct HistoryColumns:
        uint8_t *op
        uint8_t *outcome
        uint8_t *flags
        uint64_t *value
        uint64_t *ticket
        uint64_t *invoke
        uint64_t *returned

    cdef cppclass HistoryReader:
        HistoryReader(const uint64_t*, const uint64_t*, uint64_t)
        uint64_t read(const HistoryColumns&, uint64_t)
        const uint64_t* at() const
        bint is_stuck() const
