# cython: language_level=3, binding=False, freethreading_compatible=True
"""put_once of an event queue: a producer's batch, each item once, however often the call is cut short."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from queueduct.items._batches cimport Gathered, gather
from queueduct.items._buffers cimport as_records
from queueduct.events._backend cimport EventsBackend
from queueduct.events.reading._held cimport raise_full
from queueduct.events._native cimport *
from queueduct.items._item_kinds cimport OBJECT, RECORD, REFERENCE
from queueduct.native._native cimport array_data
from queueduct.core._queue cimport FOREVER, checked_int

from queueduct.items import types as item_types
from queueduct.errors import ProducerInUse, TooManyProducers
from queueduct.stats import ProducerInfo

cdef object COUNT_LIMIT = (1 << 30) - 1


cdef ProducerName name_of(object producer) except *:
    cdef ProducerName name
    if not isinstance(producer, str):
        raise TypeError(f"producer must be a str: producer={producer!r}")
    encoded = producer.encode()
    if not ProducerName.of(encoded, len(encoded), name):
        raise ValueError(f"a producer's name must have 1 to 64 bytes, none of them zero: producer={producer!r}")
    return name


cdef object put_once(EventsBackend backend, object items, object producer, object sequence, int64_t deadline):
    cdef ProducerName name = name_of(producer)
    cdef Gathered batch = None
    cdef ProducerLine* line = NULL
    cdef Taken taken
    cdef Begun begun = Begun.yes
    cdef uint64_t number
    cdef uint64_t count
    cdef uint64_t done
    cdef uint32_t me = 0
    cdef uint32_t generation
    cdef int error = 0
    cdef object array = None
    number_given = checked_int("sequence", sequence)
    if not 0 <= number_given < 1 << 63:
        raise ValueError(f"sequence must be between 0 and {(1 << 63) - 1}: sequence={sequence}")
    number = number_given
    if backend.item_kind == REFERENCE:
        raise TypeError("put_once needs a queue with a name: within a process nobody survives to repeat a call")
    if backend.item_kind == RECORD:
        array = as_records(backend.dtype, items, one=False)
        count = array.nbytes // backend.map.item_bytes
    else:
        batch = gather([item_types.encode_object(item) for item in items] if backend.item_kind == OBJECT else items)
        count = batch.count
        backend.check_length(batch.longest)
    if count > COUNT_LIMIT:
        raise ValueError(f"put_once takes at most {COUNT_LIMIT} items a sequence: {count}; use several sequences")
    if not backend.enter(deadline):
        raise_full(backend)
    backend.queue.find_line(me)
    generation = backend.queue.participant_table().generation()
    with nogil:
        taken = backend.queue.producers().take(name, owner_word(backend.queue.participant_table(), me), number, count, line)
        if taken == Taken.yes:
            error = backend.queue.confirm_once(line[0])
            if error == 0:
                begun = begin(line[0], number, count)
    backend.leave()
    check_taken(backend, taken, producer)
    try:
        if error != 0:
            backend.raise_not_written(error)
        if begun == Begun.complete:
            return 0
        if begun == Begun.other_total:
            raise ValueError(
                f"sequence {sequence} of producer {producer!r} was begun with another number of items: "
                f"{progress_of(line[0]).total}, not {count}; a call is repeated with the same items"
            )
        if begun == Begun.unfinished:
            raise ValueError(
                f"producer {producer!r} has an unfinished sequence before {sequence}: repeat that one first"
            )
        done = progress_of(line[0]).done
        if done == count:
            return 0
        if array is not None:
            put = backend.append(
                <char*>array_data(array) + done * backend.map.item_bytes, NULL, count - done, array.nbytes, deadline, line
            )
        else:
            put = backend.append(NULL, batch.buffers + done, count - done, batch.in_all, deadline, line)
        if put < count - done:
            raise_full(backend)
        return put
    finally:
        if generation == backend.queue.participant_table().generation():  # else we are a forked child, and the line is our parent's
            Producers.leave(line[0])


cdef int check_taken(EventsBackend backend, Taken taken, object producer) except -1:
    if taken == Taken.table_full:
        raise TooManyProducers(
            f"all {backend.queue.producers().count()} producers of {backend.label} are in use; forget_producer() those that "
            "will not come back, or create the queue with a larger producers="
        )
    if taken != Taken.yes and taken != Taken.unknown:
        raise ProducerInUse(f"the producer {producer!r} of {backend.label} is at work elsewhere just now")
    return 0


cdef list list_producers(EventsBackend backend):
    cdef Listed listed
    cdef list found = []
    cdef uint32_t i
    for i in range(backend.queue.producers().count()):
        if backend.queue.producers().look(i, listed):
            name = listed.name.text()[:listed.name.bytes()].decode(errors="replace")
            found.append(ProducerInfo(name, listed.sequence, listed.done, listed.total))
    return found


cdef int forget_producer(EventsBackend backend, object producer) except -1:
    cdef ProducerName name = name_of(producer)
    cdef Taken taken
    cdef uint32_t me = 0
    backend.enter(FOREVER)
    backend.queue.find_line(me)
    taken = backend.queue.producers().forget(name, owner_word(backend.queue.participant_table(), me))
    backend.leave()
    check_taken(backend, taken, producer)
    if taken == Taken.unknown:
        raise ValueError(f"{backend.label} knows no producer {producer!r}")
    return 0
