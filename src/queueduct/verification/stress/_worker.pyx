# cython: language_level=3, binding=False, freethreading_compatible=True
"""Workers of a stress run. Their loop, which calls a queue's native part, is in native/verification."""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.errno cimport errno as last_error
from libc.stdint cimport int64_t, uint32_t, uint64_t
from posix.fcntl cimport O_CLOEXEC, O_CREAT, O_EXCL, O_RDWR, open as posix_open
from posix.mman cimport MAP_FAILED, MAP_SHARED, PROT_READ, PROT_WRITE, mmap, munmap
from posix.time cimport CLOCK_THREAD_CPUTIME_ID, clock_gettime, timespec
from posix.unistd cimport close, ftruncate

from queueduct.rings.shared._bounded_backend cimport BoundedBackend
from queueduct.events._backend cimport EventsBackend
from queueduct.events.reading.reader cimport Reader
from queueduct.rings.shared._growing_backend cimport GrowingBackend
from queueduct.verification.history._rows cimport RowFile
from queueduct.verification.history._native cimport HistoryWriter, MonotonicClock
from queueduct.core._backend cimport SegmentBackend, line_of
from queueduct.native._native cimport Participant
from queueduct.overwriting._backend cimport OverwritingBackend
from queueduct.core._queue cimport Queue, held
from queueduct.slots._backend cimport SlotsBackend
from queueduct.verification.stress._native cimport *

import os

from queueduct.errors import CorruptSegment

cdef enum:
    LINE_BYTES = 128

WAIT, RUN, STOP_PRODUCERS, STOP = 0, 1, 2, 3
NO_CLOCK, MONOTONIC, CYCLES = 0, 1, 2


@cython.final
cdef class Board:
    """The words by which the parent and its workers communicate, in a file that all of them map."""
    cdef char* memory
    cdef uint64_t size
    cdef readonly int workers

    def __cinit__(self, path, int workers, bint create=False):
        cdef int descriptor = posix_open(
            os.fsencode(path), O_RDWR | O_CLOEXEC | (O_CREAT | O_EXCL if create else 0), 0o600
        )
        if descriptor < 0:
            raise OSError(last_error, "the board of a stress run cannot be opened", os.fspath(path))
        self.workers = workers
        self.size = <uint64_t>(workers + 1) * LINE_BYTES
        if create and ftruncate(descriptor, self.size) != 0:
            close(descriptor)
            raise OSError(last_error, "the board of a stress run cannot be made", os.fspath(path))
        self.memory = <char*>mmap(NULL, self.size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
        close(descriptor)
        if self.memory == <char*>MAP_FAILED:
            self.memory = NULL
            raise OSError(last_error, "the board of a stress run cannot be mapped", os.fspath(path))

    def __dealloc__(self):
        if self.memory is not NULL:
            munmap(self.memory, self.size)

    cdef StressBoard* head(self) noexcept:
        return <StressBoard*>self.memory

    cdef StressLine* line(self, int worker) except NULL:
        if not 0 <= worker < self.workers:
            raise ValueError(f"the board has lines for {self.workers} workers: worker={worker}")
        return <StressLine*>(self.memory + LINE_BYTES * (worker + 1))

    @property
    def signal(self):
        return self.head().signal.load()

    @signal.setter
    def signal(self, uint32_t value):
        self.head().signal.store(value)

    def ready(self, int worker):
        """Marks a worker as about to begin."""
        self.line(worker).is_ready.store(1)

    def is_ready(self, int worker):
        return self.line(worker).is_ready.load() != 0

    def progress(self, int worker):
        """Returns (items put or got, operations, torn items, ns of processor time)."""
        cdef StressLine* line = self.line(worker)
        return line.items.load(), line.operations.load(), line.torn.load(), line.cpu_ns.load()

    def ended(self, int worker):
        """Returns when its work was done, in ns of the monotonic clock; 0 if it was killed before."""
        return self.line(worker).ended_ns.load()


cdef int64_t processor_ns() noexcept nogil:
    """Returns this thread's processor time."""
    cdef timespec now
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now)
    return <int64_t>now.tv_sec * 1000000000 + now.tv_nsec


def work(Queue queue, str kind, object plan, Board board, int number, RowFile rows, int clock, Reader reader):
    """Puts or gets until the plan is done, the queue has ended or the board says stop. Returns how it ended."""
    cdef StressPlan native = plan.__dict__
    cdef AnyWorker* worker
    cdef SegmentBackend backend = <SegmentBackend?>held(queue)
    cdef bint puts = plan.puts
    cdef Turn turn = Turn.again
    cdef int64_t began = processor_ns()
    worker = make(backend, kind, native, board, number, rows, clock, reader)
    try:
        while turn == Turn.again or turn == Turn.no_room:
            if turn == Turn.no_room:
                rows.grow()
            with nogil:
                turn = worker.put_some() if puts else worker.get_some()
            board.line(number).cpu_ns.store(processor_ns() - began)
            backend.raise_if_truncated()
            PyErr_CheckSignals()
        board.line(number).ended_ns.store(MonotonicClock.now())
    finally:
        del worker
    if turn == Turn.corrupt:
        raise CorruptSegment(f"the queue {backend.label} contradicts itself; worker {number} found it so")
    if turn == Turn.no_memory:
        raise MemoryError(f"the queue {backend.label} got no memory for another item")
    return "finished" if turn == Turn.finished else "stopped"


cdef AnyWorker* make(
    SegmentBackend backend, str kind, const StressPlan& plan, Board board, int number, RowFile rows, int clock,
    Reader reader,
) except NULL:
    """Makes a worker for a queue of that kind. A new kind needs a branch here and a driver in native/verification."""
    cdef HistoryWriter* writer = NULL
    cdef ReaderLine* reader_line = NULL
    cdef Cursor* cursor = NULL
    cdef RowClock row_clock = RowClock.none if rows is None else <RowClock>clock
    cdef StressBoard* head = board.head()
    cdef StressLine* line = board.line(number)
    cdef Participant ledger
    cdef uint32_t mine
    if rows is not None:
        writer = rows.rows
    if reader is not None:
        reader_line = reader.line
        cursor = &reader.cursor
    if kind == "bounded":
        (<BoundedBackend?>backend).find_participant(&ledger)
        bounded = (<BoundedBackend>backend).native()
        return make_worker(StressedBounded(bounded[0], ledger), row_clock, writer, plan, head[0], line[0])
    if kind == "growing":
        (<GrowingBackend?>backend).find_participant(&ledger)
        growing = (<GrowingBackend>backend).native()
        return make_worker(StressedGrowing(growing[0], ledger), row_clock, writer, plan, head[0], line[0])
    mine = line_of(backend)
    if kind == "slots":
        slots = (<SlotsBackend?>backend).queue
        return make_worker(StressedSlots(slots[0], plan.item_bytes), row_clock, writer, plan, head[0], line[0])
    if kind == "overwriting":
        overwriting = (<OverwritingBackend?>backend).queue
        return make_worker(
            StressedOverwriting(overwriting[0], mine, plan.item_bytes), row_clock, writer, plan, head[0], line[0]
        )
    if kind == "events":
        events = (<EventsBackend?>backend).queue
        return make_worker(
            StressedEvents(events[0], mine, reader_line, cursor), row_clock, writer, plan, head[0], line[0]
        )
    raise ValueError(f"no stress run for queues of this kind: kind={kind!r}")
