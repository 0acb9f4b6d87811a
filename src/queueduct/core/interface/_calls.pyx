# cython: language_level=3, binding=False, freethreading_compatible=True
"""What the surface of a queue asks of its backend: the calls, their deadlines, and checks of their arguments."""

from cpython.number cimport PyNumber_Index

from queueduct.items._buffers cimport listed
from queueduct.native._native cimport monotonic_ns, park_limit_ns

from queueduct.errors import QueueClosed, QueueEmpty, QueueFull, QueueNotShared
from queueduct.segments.timeouts import checked_timeout

TIMED_OUT = object()
FOREVER = 0x7FFFFFFFFFFFFFFF
AT_ONCE = 1
EMPTY = "the queue {queue} is empty{leased}{waited}{alone}"
cdef frozenset SIZES_LEFT_OUT = frozenset(("slot_bytes", "message_bytes", "item_bytes", "chunk_bytes"))


cdef int64_t computed_deadline(bint block, object timeout) except -1:
    cdef double seconds
    if not block:
        return AT_ONCE
    if timeout is None:
        return FOREVER
    try:
        seconds = timeout
    except (TypeError, OverflowError):
        seconds = checked_timeout(timeout)
    if not seconds >= 0:
        raise ValueError(f"timeout must be a non-negative number or None: timeout={timeout!r}")
    if seconds == 0:
        return AT_ONCE
    return FOREVER if seconds > 1e9 else monotonic_ns() + <int64_t>(seconds * 1e9)


cdef bint is_negative(object timeout) except -1:
    """Tells a negative number of seconds from any other. What is no number is refused by its name."""
    try:
        return timeout < 0
    except (TypeError, ValueError):  # a text, or an array of several numbers
        checked_timeout(timeout)
        raise


cdef int64_t remaining_ns(int64_t deadline):
    """Returns the time that is left; for FOREVER, the longest time that a thread sleeps at once."""
    return park_limit_ns if deadline == FOREVER else deadline - monotonic_ns()


cdef double waited_until(int64_t deadline, object timeout) except -1:
    """Returns how many seconds a call has waited that gives up now; 0 if it was not to wait, or was refused at once."""
    if deadline == AT_ONCE or deadline == FOREVER:
        return 0
    return max(0.0, <double>timeout + (monotonic_ns() - deadline) * 1e-9)


cdef object checked_int(str label, object value):
    """Returns a plain int: a subclass with comparisons of its own could pass every check."""
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"{label} must be an int: {label}={value!r}")
    try:
        return int.__index__(PyNumber_Index(value))
    except TypeError as error:  # an array, say
        raise TypeError(f"{label} must be an int: {label}={value!r}") from error


cdef dict checked_sizes(dict sizes):
    """Returns the sizes as plain ints, or None for a size that may be left out."""
    return {
        label: None if size is None and label in SIZES_LEFT_OUT else checked_int(label, size)
        for label, size in sizes.items()
    }


cdef list checked_positions(object positions):
    """Returns the positions as plain ints, without those that no item can have."""
    cdef list checked = [checked_int("position", position) for position in positions]
    return [position for position in checked if 0 <= position < 1 << 63]


cdef class Backend:
    """The calls that each kind implements. This base class is the backend of a closed handle: it refuses them all."""

    def __cinit__(self, *args, **kwargs):
        self.call_it(None)

    cdef int call_it(self, object name) except -1:
        self.name = name
        self.label = "without a name" if name is None else repr(name)  # after "the queue"
        self.told = "the queue without a name" if name is None else self.label
        self.nothing = (EMPTY, name, 0.0)
        return 0

    cdef int check_open(self) except -1:
        if self.is_closing:
            if self.refusal is not None:
                raise QueueNotShared(self.refusal)
            raise QueueClosed(f"this handle of the queue {self.label} is closed; open it again")
        return 0

    cdef int check_sound(self) except -1:
        """Raises CorruptSegment if a process has truncated the memory. Called after an access to it."""
        return 0

    cdef int put(self, object item, int64_t deadline) except -1:
        """Returns 1 if the item is in, 0 if the time is up."""
        return self.check_open()

    cdef object get(self, int64_t deadline):
        """Returns an item, or TIMED_OUT if the time is up."""
        self.check_open()

    cdef object put_many(self, object items, int64_t deadline):
        """Returns how many items are in, or None if the time is up and none is."""
        self.check_open()

    cdef object get_many(self, uint64_t limit, int64_t deadline):
        """Returns items, or TIMED_OUT if the time is up."""
        self.check_open()

    cdef object batch(self, object items):  # items that can be sliced: a list, or an array of records
        self.check_open()
        return list(listed(items))

    cdef bint wait_done(self, int64_t deadline) except -1: return self.check_open()  # false if the time is up
    cdef int task_done(self) except -1: return self.check_open()
    cdef int wait(self, bint for_items, uint64_t slots, int64_t deadline) except -1:
        """Waits until there may be an item, or ``slots`` free slots. Takes nothing, and needs no participant line."""
        return self.check_open()

    cdef uint64_t slots_for(self, object item) except 0:
        """Returns how many slots an item takes."""
        self.check_open()
        return 1

    cdef object size(self):
        """Returns how many items are in the queue."""
        self.check_open()

    cdef object count_leased(self): return None  # items that consumers have; None: it has no leases
    cdef object count_others(self): return None  # participants besides this thread; None: it has no table of them

    cdef object why_empty(self, double waited):
        """Returns the QueueEmpty of a get that found nothing. Counts nothing if it has not waited: it may poll."""
        if waited == 0:
            return QueueEmpty(*self.nothing)
        return QueueEmpty(EMPTY, self.name, waited, self.count_leased(), self.count_others())

    cdef object why_full(self, double waited):
        """Returns the QueueFull of a put that found no room."""
        return QueueFull("the queue {queue} is full{waited}", self.name, waited)

    cdef int shut_down(self, bint immediate) except -1:
        return self.check_open()

    cdef void wake_everybody(self) noexcept:
        """Wakes all waiting threads, so that they see that the handle is closed."""


cdef Backend closed_backend(object name):
    cdef Backend backend = Backend()
    backend.call_it(name)
    backend.is_closing = True
    return backend
