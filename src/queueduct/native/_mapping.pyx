# cython: language_level=3, binding=False, freethreading_compatible=True
"""A file as memory, without a descriptor of its own.

mmap.mmap has one, and closes it at the end even if its number belongs to another file by then.
"""

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from cpython.exc cimport PyErr_SetFromErrno
from posix.mman cimport MAP_FAILED, MAP_POPULATE, MAP_SHARED, PROT_READ, PROT_WRITE, mmap, munmap


@cython.final
cdef class Mapping:
    """The first ``size`` bytes of a file, shared with all processes that map it; unmapped with their last user."""
    cdef void* memory
    cdef Py_ssize_t size
    cdef int users
    cdef bint is_read_only

    def __cinit__(self, int descriptor, Py_ssize_t size, *, bint populate=False, bint read_only=False):
        cdef int access = PROT_READ if read_only else PROT_READ | PROT_WRITE
        cdef int flags = MAP_SHARED | (MAP_POPULATE if populate else 0)
        cdef void* memory
        with nogil:
            memory = mmap(NULL, size, access, flags, descriptor, 0)
        if memory is MAP_FAILED:
            PyErr_SetFromErrno(OSError)
        self.memory = memory
        self.size = size
        self.is_read_only = read_only

    def __dealloc__(self):
        if self.memory is not NULL:
            munmap(self.memory, self.size)

    def __getbuffer__(self, Py_buffer* view, int flags):
        if self.memory is NULL:
            raise ValueError("this memory was unmapped")
        PyBuffer_FillInfo(view, self, self.memory, self.size, self.is_read_only, flags)
        self.users += 1

    def __releasebuffer__(self, Py_buffer* view):
        self.users -= 1

    def __len__(self):
        return self.size

    def close(self):
        """Unmaps the memory now."""
        if self.users != 0:
            raise BufferError(f"this memory is still in use: {self.users} users")
        if self.memory is not NULL:
            munmap(self.memory, self.size)
            self.memory = NULL
