# cython: language_level=3, binding=False, freethreading_compatible=True
"""The class IndexQueue: the indices 0 to n-1, shared by the threads of this process."""

from libc.stdint cimport uint64_t
from libc.stdlib cimport free as release_memory
from libc.string cimport memset

from queueduct.native._native cimport aligned_alloc, atomic
from queueduct.core._queue cimport checked_int, forks, raise_no_truth, refuse_in_child
from queueduct.slots._native cimport CyclicIndices, IndexEnds, NativeIndexQueue, Seen

cdef extern from "<atomic>" namespace "std" nogil:
    cdef cppclass byte_flag "std::atomic<unsigned char>":
        unsigned char exchange(unsigned char)

cdef enum:
    LARGEST = 1 << 20
    ALIGNMENT = 128


cdef class IndexQueue:
    """IndexQueue(n, *, full=False, first_cycle=0)\n--\n
    A queue that holds each of the indices 0 to n-1 at most once; a pop takes the oldest.

    ``IndexQueue(n)`` is empty, ``IndexQueue(n, full=True)`` holds all of them. A thread that pops an index has
    it until it pushes it again, so a queue can hand out the elements of an array. Pushes and pops never wait for each
    other. ``first_cycle`` is the cycle of the first cells: with one just below the limit a test sees the words wrap.

    >>> free = queueduct.IndexQueue(3, full=True)
    >>> free.pop(), free.pop()
    (0, 1)
    >>> free.push(0)
    """
    cdef NativeIndexQueue* queue
    cdef void* memory
    cdef byte_flag* outside          # the indices that are not in the queue, and can be pushed
    cdef uint64_t born               # the number of forks when it was made
    cdef readonly uint64_t n
    """How many indices there are."""

    def __cinit__(self, n=None, *others, full=False, first_cycle=0, **unknown):
        if others or unknown:
            raise TypeError(
                f"an IndexQueue takes n, and by name full and first_cycle: {[*others, *unknown]}; "
                "use IndexQueue(n, full=True)"
            )
        n = checked_int("n", n)
        first_cycle = checked_int("first_cycle", first_cycle)
        if not 1 <= n <= LARGEST:
            raise ValueError(f"n must be between 1 and {LARGEST}: n={n}")
        self.n = n
        self.born = forks
        cells_at = sizeof(IndexEnds)
        flags_at = cells_at + self.n * sizeof(uint64_t)
        size = (flags_at + self.n + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        self.memory = aligned_alloc(ALIGNMENT, size)
        if self.memory is NULL:
            raise MemoryError()
        memset(self.memory, 0, size)
        self.outside = <byte_flag*>(<char*>self.memory + <uint64_t>flags_at)
        self.queue = new NativeIndexQueue(
            <IndexEnds*>self.memory, <atomic[uint64_t]*>(<char*>self.memory + <uint64_t>cells_at), self.n
        )
        limit = (1 << 64 - int(n - 1).bit_length()) - 1
        if not 0 <= first_cycle <= limit:
            raise ValueError(f"first_cycle must be between 0 and {limit}: first_cycle={first_cycle}")
        if full:
            self.queue.construct_full(first_cycle)
        else:
            self.queue.construct_empty(first_cycle)
            memset(<void*>self.outside, 1, self.n)

    def __dealloc__(self):
        del self.queue
        release_memory(self.memory)

    def push(self, index):
        """Put an index that is not in the queue. Raises ValueError for an index that is.

        >>> q = queueduct.IndexQueue(3)
        >>> q.push(2)
        """
        cdef uint64_t pushed
        index = checked_int("index", index)
        refuse_in_child(IndexQueue, self.born)
        if not 0 <= index < self.n:
            raise ValueError(f"index must be between 0 and {self.n - 1}: index={index}")
        pushed = index
        if not self.outside[pushed].exchange(0):
            raise ValueError(f"an index is in the queue at most once: index={index} is in; pop it first")
        if not self.queue.push(pushed):
            raise AssertionError("the words of an index queue contradict each other")

    def pop(self):
        """Return the oldest index, or None if there is none.

        >>> queueduct.IndexQueue(3, full=True).pop()
        0
        """
        cdef uint64_t index = 0
        refuse_in_child(IndexQueue, self.born)
        return self._popped(self.queue.pop(index), &index)

    def pop_if_full(self):
        """Return the oldest index if all of them are in, else None.

        >>> q = queueduct.IndexQueue(3, full=True)
        >>> q.pop_if_full(), q.pop_if_full()
        (0, None)
        """
        cdef uint64_t index = 0
        refuse_in_child(IndexQueue, self.born)
        return self._popped(self.queue.pop_if_full(index), &index)

    def pop_if_size_at_least(self, k):
        """Return the oldest index if at least ``k`` are in, else None.

        >>> queueduct.IndexQueue(3, full=True).pop_if_size_at_least(2)
        0
        """
        cdef uint64_t index = 0
        k = checked_int("k", k)
        refuse_in_child(IndexQueue, self.born)
        if k < 0:
            raise ValueError(f"k must not be negative: k={k}")
        return self._popped(self.queue.pop_if_size_at_least(min(k, LARGEST + 1), index), &index)

    cdef object _popped(self, Seen seen, const uint64_t* index):
        if seen == Seen.corrupt:
            raise AssertionError("the words of an index queue contradict each other")
        if seen == Seen.nothing:
            return None
        self.outside[index[0]].exchange(1)
        return index[0]

    def qsize(self):
        """Return how many indices are in: exact while no other thread pushes or pops.

        >>> queueduct.IndexQueue(3, full=True).qsize()
        3
        """
        refuse_in_child(IndexQueue, self.born)
        return self.queue.size()

    def empty(self):
        """Return True if no index is in.

        >>> queueduct.IndexQueue(3).empty()
        True
        """
        return self.qsize() == 0

    def full(self):
        """Return True if all indices are in.

        >>> queueduct.IndexQueue(3, full=True).full()
        True
        """
        return self.qsize() == self.n

    def __len__(self):
        return self.qsize()

    def __bool__(self):
        return raise_no_truth(type(self))

    cdef tuple _pair(self, uint64_t word):
        return self.queue.cyclic().cycle_of(word), self.queue.cyclic().index_of(word)

    @property
    def head(self):
        """The cell of the next pop: (cycle, index of the cell)."""
        return self._pair(self.queue.head())

    @property
    def tail(self):
        """The cell of the next push: (cycle, index of the cell)."""
        return self._pair(self.queue.tail())

    @property
    def cells(self):
        """Every cell: a list of (cycle, index)."""
        return [self._pair(self.queue.cell(i)) for i in range(self.n)]

    def __reduce__(self):
        raise TypeError(
            "an IndexQueue lives in one process and cannot be pickled; "
            "use SlotQueue.create(name, ...) to share slots between processes"
        )

    def __repr__(self):
        return f"<queueduct.IndexQueue n={self.n}, size={self.queue.size()}>"
