# cython: language_level=3, binding=False, freethreading_compatible=True
"""Messages of the queues that replace multiprocessing's: any object that may be sent to a process of the same family.

A message is bytes and a zero byte, a short object of built-in types (_plain.pyx), or a pickle, whose last byte is
always a full stop.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE

from queueduct.items.messages._plain cimport PLAIN_MESSAGE, read_plain

import pickle
from multiprocessing import reduction

from queueduct.items import types

cdef enum:
    PLAIN_LIMIT = 64    # values that is_plain() looks at
    DEPTH_LIMIT = 8

cdef object dumps = pickle.dumps
cdef object loads = pickle.loads
cdef object is_its_own = types.is_its_own


cdef bint is_plain(object item, int* left, int depth) except -1:
    """Returns true if all of it is of built-in types, for which no reducer can be registered."""
    cdef object kind = type(item)
    cdef object each
    cdef object value
    if (
        kind is str or kind is int or kind is float or item is None or kind is bytes or kind is bool
        or kind is bytearray or kind is complex
    ):
        return True
    if depth == 0:
        return False
    if kind is tuple or kind is list:
        left[0] -= len(item)
        if left[0] < 0:
            return False
        for each in tuple(item):
            if not is_plain(each, left, depth - 1):
                return False
        return True
    if kind is dict:
        left[0] -= 2 * len(item)
        if left[0] < 0:
            return False
        for each, value in tuple(item.items()):
            if not (is_plain(each, left, depth - 1) and is_plain(value, left, depth - 1)):
                return False
        return True
    return False


cdef object encode_message(object item):
    """Returns the bytes of a message that is no short plain one, or a buffer of them. Raises what pickling raises."""
    cdef int left = PLAIN_LIMIT
    if type(item) is bytes:
        return item + b"\0"
    if is_plain(item, &left, DEPTH_LIMIT):
        return dumps(item, 5)
    return reduction.ForkingPickler.dumps(item, 5)  # with the reducers of connections, locks, shared arrays, ...


cdef object decode_message(object data):
    """Returns the item of a message."""
    cdef Py_ssize_t last = PyBytes_GET_SIZE(data) - 1
    cdef char form = PyBytes_AS_STRING(data)[last] if last >= 0 else c"."
    if form == 0:
        return PyBytes_FromStringAndSize(PyBytes_AS_STRING(data), last)
    if form == PLAIN_MESSAGE:
        return read_plain(PyBytes_AS_STRING(data), last + 1)
    return loads(data)


cdef int keep_if_intact(list kept, object error, object data) except -1:
    """Keeps a message whose unpickling was interrupted, for example by Ctrl-C. Another attempt may succeed."""
    if not is_its_own(error, data):
        kept.append(data)
    return 0
