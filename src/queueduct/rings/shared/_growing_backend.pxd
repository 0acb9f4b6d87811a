cimport cython
from libc.stdint cimport int64_t, uint64_t

from queueduct.core._queue cimport Backend
from queueduct.native._native cimport Buffer, Event, Outcome, Participant
from queueduct.rings.shared._backend cimport RingBackend
from queueduct.rings.shared._native cimport (
    GrowingReferences as NativeReferences, Item, LastRings, NativeGrowing as NativeQueue, Target,
)

include "_kind_declared.pxi"


@cython.final
cdef class GrowingBackend(KindBackend):
    cdef LastRings* last
    cdef uint64_t max_bytes          # 0: no limit

