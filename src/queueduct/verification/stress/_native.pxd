# The declarations of native/verification and _worker.hpp that a stress run uses.

from libc.stdint cimport uint32_t, uint64_t

from queueduct.events._native cimport Cursor, EventsQueue, ReaderLine
from queueduct.rings.shared._native cimport NativeGrowing, BoundedQueueHandle
from queueduct.verification.history._native cimport HistoryWriter
from queueduct.native._native cimport Participant
from queueduct.overwriting._native cimport OverwritingShared
from queueduct.slots._native cimport SlotsQueue

cdef extern from "<atomic>" namespace "std" nogil:
    cdef cppclass atomic[T]:
        T load()
        void store(T)

cdef extern from "verification/stress/_worker.hpp" namespace "queueduct" nogil:
    cdef enum class Turn:
        again, no_room, finished, stopped, corrupt, no_memory

    cdef enum class Signal:
        wait, run, stop_producers, stop

    cdef enum class RowClock:
        none, monotonic, cycles

    cdef cppclass StressBoard:
        atomic[uint32_t] signal

    cdef cppclass StressLine:
        atomic[uint64_t] items
        atomic[uint64_t] operations
        atomic[uint64_t] torn
        atomic[uint64_t] cpu_ns
        atomic[uint64_t] ended_ns
        atomic[uint32_t] is_ready

    cdef struct StressPlan:
        uint64_t first_value, items, batch, item_bytes, seed, group
        uint32_t waits, tries
        int parent

    cdef cppclass StressedBounded "queueduct::RingDriver<queueduct::BoundedQueueHandle>":
        StressedBounded(BoundedQueueHandle&, Participant)

    cdef cppclass StressedGrowing "queueduct::RingDriver<queueduct::GrowingQueue>":
        StressedGrowing(NativeGrowing&, Participant)

    cdef cppclass StressedSlots:
        StressedSlots(SlotsQueue&, uint64_t)

    cdef cppclass StressedOverwriting:
        StressedOverwriting(OverwritingShared&, uint32_t, uint64_t)

    cdef cppclass StressedEvents:
        StressedEvents(EventsQueue&, uint32_t, ReaderLine*, Cursor*)

    cdef cppclass AnyWorker:
        Turn put_some()
        Turn get_some()

    AnyWorker* make_worker[Queue](
        const Queue&, RowClock, HistoryWriter*, const StressPlan&, StressBoard&, StressLine&
    ) except +
