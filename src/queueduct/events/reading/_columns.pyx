# cython: language_level=3, binding=False, freethreading_compatible=True
"""A reader's items as Arrow columns, gathered in the memory of the log, chunk by chunk.

The position, and with it what the log keeps for the reader, moves when the columns are made: after an exception, also
one of a signal handler, the same items are there again.
"""

cimport cython
from libc.stdint cimport int64_t, uint64_t

from queueduct.events._native cimport *
from queueduct.events.reading._fetch cimport array_on, fetch_list, window_on
from queueduct.events.reading._position cimport ReaderPosition
from queueduct.items._item_kinds cimport RECORD
from queueduct.core._queue cimport checked_int, computed_deadline


@cython.binding(True)
class ArrowReading:
    """The calls of a reader that return columns. pyarrow is imported by the first of them."""

    __slots__ = ()

    def to_arrow(self, max_items=None, *, timeout=0, strings="string"):
        """Get what is there, or at most ``max_items``, as an Arrow table, and move past it, as get_many does.

        Waits at most ``timeout`` seconds for the first item; the table is empty if none came. Raises ShutDown or
        DataLost, as get_many. If a value has no column, ValueError names its field and position, and the reader does
        not move. With ``strings="binary"`` bytes need not be UTF-8. Items of bytes are one column, ``value``. A call
        gets at most a gigabyte. Needs queueduct[arrow].

        >>> log = queueduct.EventQueue.create(None, item=[("price", "f8")])
        >>> reader = log.subscribe()
        >>> log.put((1.5,))
        >>> reader.to_arrow().column("price").to_pylist()
        [1.5]
        """
        from queueduct.arrow.streams import empty_table, table_plan
        limit = None if max_items is None else checked_int("max_items", max_items)
        if limit is not None and limit < 1:
            raise ValueError(f"max_items must be at least 1: max_items={max_items}")
        item = usable_queue(self).item
        make, most = table_plan(item, limit, strings)
        found = collected(self, make, most, 1 << 52, computed_deadline(True, timeout))
        return empty_table(item, strings) if found is None else found

    def __arrow_c_schema__(self):
        """The columns, for Arrow's consumers."""
        from queueduct.arrow.streams import schema_capsule
        return schema_capsule(usable_queue(self).item)

    def __arrow_c_stream__(self, requested_schema=None):
        """From the position to the end at this moment, for Arrow's consumers: each batch they get moves the reader."""
        from queueduct.arrow.streams import reader_stream
        queue = usable_queue(self)
        return reader_stream(self, queue.item, queue.end, requested_schema)

    def _collect(self, make, limit, stop, timeout):
        """Returns up to ``limit`` items before ``stop`` as a batch, and moves past them; None if the time is up.

        ``make(rows, position)`` returns what collects them: it has ``add`` and ``batch``, which run Python's code.
        """
        return collected(self, make, limit, stop, computed_deadline(True, timeout))


cdef object usable_queue(ReaderPosition reader):
    if reader is None:  # which Cython's types let pass
        raise TypeError("this method needs a reader, and got None: call it of a reader")
    reader.check_usable()
    return reader.queue


cdef object collected(ReaderPosition reader, object make, uint64_t limit, uint64_t stop, int64_t deadline):
    cdef object found
    cdef uint64_t end = 0
    cdef ReadResult outcome
    with cython.critical_section(reader):
        reader.check()
        while True:
            outcome = begin_session(reader.backend.map[0], reader.line[0], reader.cursor, end)
            if outcome == ReadResult.items:
                end = min(end, stop)
                if end <= reader.cursor.position:
                    return None
                found = collect(reader, make, min(limit, end - reader.cursor.position), end)
                if found is not None:
                    return found
                outcome = ReadResult.lost
            if reader.stopped(outcome, deadline):
                return None


cdef object collect(ReaderPosition reader, object make, uint64_t limit, uint64_t end):
    """Returns a batch, or None if the reader was dropped before the first run was read."""
    cdef Cursor cursor = reader.cursor
    cdef uint64_t taken = 0
    cdef Run run
    cdef ReadResult found
    cdef object batch
    reader.is_busy = True
    try:
        columns = make(limit, cursor.position)
        while taken < limit:
            found = next_run(reader.backend.map[0], reader.line[0], False, cursor, end, limit - taken, run)
            reader.backend.check_found(found)
            if found != ReadResult.items or not add_run(reader, columns, run):
                break
            taken += run.items
            cursor.position += run.items
        if taken == 0:
            return None
        batch = columns.batch(taken)
        reader.check_usable()
    finally:
        reader.is_busy = False
    reader.cursor = cursor
    if not reader.is_durable and not reader.backend.is_closing:
        move_to(reader.backend.map[0], reader.line[0], cursor.position)  # if it was dropped, the next call raises
    return batch


cdef bint add_run(ReaderPosition reader, object columns, const Run& run) except -1:
    """Adds a run to the columns. Returns false if the reader was dropped meanwhile: then they have garbage."""
    cdef bint is_read = True
    cdef list fetched
    if reader.backend.item_kind == RECORD:
        reader.window = window_on(reader.backend, run, reader.window)
        columns.add(array_on(reader.backend, run, reader.window))
        if reader.window is not None and reader.window.is_faulted():  # a missing page was read as zeros
            reader.window = None
            is_read = False
    else:
        fetched = fetch_list(reader.backend, run)
        is_read = fetched is not None
        if is_read:
            columns.add(fetched)
    if not is_read:
        reader.backend.raise_if_cut()
    reader.backend.check_sound()
    reader.check_usable()
    if not still_holds(reader.backend.map[0], reader.line[0]):
        return False
    if not is_read:
        reader.backend.raise_unreadable()
    return True
