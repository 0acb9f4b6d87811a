# cython: language_level=3, binding=False, freethreading_compatible=True
"""Short objects of built-in types as messages, at a fifth of the cost of a pickle.

A value is a tag and what follows it: eight bytes of a number, or a count of two bytes and so many bytes or values. The
last byte of a message is PLAIN_MESSAGE. Both sides run on one machine, so numbers lie as in memory.

What arrives equals what was put, and has the same types. What this form cannot keep is left to pickle: integers of more
than 64 bits, instances of subclasses, a list or dict that is there twice (pickle delivers one object, not two), and
what is long or deep.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_Next, PyDict_Size
from cpython.float cimport PyFloat_AS_DOUBLE
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE, PyList_New, PyList_SET_ITEM
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE, PyTuple_New, PyTuple_SET_ITEM
from libc.stdint cimport int64_t, uint16_t
from libc.string cimport memcpy

import pickle

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object, int*) except? -1
    Py_ssize_t PyUnicode_GET_LENGTH(object)
    int PyUnicode_KIND(object)
    void* PyUnicode_DATA(object)
    object PyUnicode_FromKindAndData(int, const void*, Py_ssize_t)
    bint PyUnicode_IS_ASCII(object)
    object PyUnicode_New(Py_ssize_t, Py_UCS4)

cdef enum:
    DEPTH_LIMIT = 8
    MUTABLES_LIMIT = 8      # lists and dicts of one message
    CHARACTERS = 1024       # of a text that is not ASCII
    LAST_CHARACTER = 0x10FFFF

cdef enum Tag:
    NONE = 78               # letters, for who reads a dump
    TRUE = 84
    FALSE = 70
    INTEGER = 105
    FLOAT = 102
    BYTES = 98
    ASCII = 97
    TEXT = 117              # with its kind: 1, 2 or 4 bytes a character
    TUPLE = 116
    LIST = 108
    DICT = 100

cdef object damaged = pickle.UnpicklingError


cdef struct Writer:
    char* at
    char* end
    int mutables
    void* seen[MUTABLES_LIMIT]


cdef Py_ssize_t write_plain(object item, char* into, Py_ssize_t room) except -1:
    """Returns the length of the message, or 0 if the item is none of these or has no room."""
    cdef Writer to
    to.at = into
    to.end = into + room - 1
    to.mutables = 0
    if not write_value(&to, item, DEPTH_LIMIT):
        return 0
    to.at[0] = PLAIN_MESSAGE
    return to.at + 1 - into


cdef bint write_value(Writer* to, object item, int depth) except -1:
    cdef object kind = type(item)
    cdef int overflow = 0
    cdef long long integer
    cdef double number
    if kind is str:
        return write_text(to, item)
    if kind is int:
        integer = PyLong_AsLongLongAndOverflow(item, &overflow)
        return overflow == 0 and write_tagged(to, Tag.INTEGER, &integer, sizeof(integer))
    if kind is float:
        number = PyFloat_AS_DOUBLE(item)
        return write_tagged(to, Tag.FLOAT, &number, sizeof(number))
    if item is None:
        return write_tagged(to, Tag.NONE, NULL, 0)
    if kind is bool:
        return write_tagged(to, Tag.TRUE if item is True else Tag.FALSE, NULL, 0)
    if kind is bytes:
        return write_counted(to, Tag.BYTES, PyBytes_AS_STRING(item), PyBytes_GET_SIZE(item), 1)
    if depth == 0:
        return False
    if kind is tuple:
        return write_tuple(to, <tuple>item, depth - 1)
    if kind is list:
        return is_first(to, item) and write_list(<list>item, to, depth - 1)
    if kind is dict:
        return is_first(to, item) and write_dict(<dict>item, to, depth - 1)
    return False


cdef inline bint write_tagged(Writer* to, char tag, const void* data, Py_ssize_t length) noexcept:
    if to.end - to.at < 1 + length:
        return False
    to.at[0] = tag
    if length:
        memcpy(to.at + 1, data, length)
    to.at += 1 + length
    return True


cdef inline bint write_counted(Writer* to, char tag, const void* data, Py_ssize_t count, Py_ssize_t size) noexcept:
    cdef uint16_t short_count = <uint16_t>count
    if count * size > to.end - to.at or not write_tagged(to, tag, &short_count, sizeof(short_count)):
        return False
    if to.end - to.at < count * size:
        return False
    memcpy(to.at, data, count * size)
    to.at += count * size
    return True


cdef inline bint write_text(Writer* to, object text) noexcept:
    cdef char width
    if PyUnicode_IS_ASCII(text):
        return write_counted(to, Tag.ASCII, PyUnicode_DATA(text), PyUnicode_GET_LENGTH(text), 1)
    width = PyUnicode_KIND(text)
    if not write_tagged(to, Tag.TEXT, NULL, 0):
        return False
    return write_counted(to, width, PyUnicode_DATA(text), PyUnicode_GET_LENGTH(text), width)


cdef inline bint write_count(Writer* to, char tag, Py_ssize_t count) noexcept:
    return write_counted(to, tag, NULL, count, 0) and count <= to.end - to.at  # a value has a byte at least


cdef bint is_first(Writer* to, object item) noexcept:
    cdef int i
    if to.mutables == MUTABLES_LIMIT:
        return False
    for i in range(to.mutables):
        if to.seen[i] == <void*>item:
            return False
    to.seen[to.mutables] = <void*>item
    to.mutables += 1
    return True


cdef bint write_tuple(Writer* to, tuple item, int depth) except -1:
    cdef Py_ssize_t i
    if not write_count(to, Tag.TUPLE, PyTuple_GET_SIZE(item)):
        return False
    for i in range(PyTuple_GET_SIZE(item)):
        if not write_value(to, <object>PyTuple_GET_ITEM(item, i), depth):
            return False
    return True


# Without a GIL another thread may change a list or dict while the lock of an inner one is waited for: then the counts
# differ.

@cython.critical_section
cdef bint write_list(list item, Writer* to, int depth) except -1:
    cdef Py_ssize_t i
    cdef Py_ssize_t count = PyList_GET_SIZE(item)
    if not write_count(to, Tag.LIST, count):
        return False
    for i in range(count):
        if i >= PyList_GET_SIZE(item) or not write_value(to, <object>PyList_GET_ITEM(item, i), depth):
            return False
    return PyList_GET_SIZE(item) == count


@cython.critical_section
cdef bint write_dict(dict item, Writer* to, int depth) except -1:
    cdef PyObject* key
    cdef PyObject* value
    cdef Py_ssize_t position = 0
    cdef Py_ssize_t written = 0
    cdef Py_ssize_t count = PyDict_Size(item)
    cdef object held_value
    if not write_count(to, Tag.DICT, count):
        return False
    while PyDict_Next(item, &position, &key, &value):
        held_value = <object>value
        if not write_value(to, <object>key, depth) or not write_value(to, held_value, depth):
            return False
        written += 1
    return written == count == PyDict_Size(item)


cdef struct Reader:
    const char* at
    const char* end


cdef object read_plain(const char* data, Py_ssize_t length):
    """Returns the item. Raises UnpicklingError if another program has written into the message."""
    cdef Reader source
    cdef object item
    source.at = data
    source.end = data + length - 1
    item = read_value(&source, DEPTH_LIMIT)
    if source.at != source.end:
        raise_damaged()
    return item


cdef int raise_damaged() except -1:
    raise damaged("a message contradicts itself: another program has written into it; put it again")


cdef inline const char* skip(Reader* source, Py_ssize_t length) except NULL:
    """Returns where the next bytes lie, and goes on behind them."""
    cdef const char* start = source.at
    if source.end - start < length:
        raise_damaged()
    source.at = start + length
    return start


cdef inline Py_ssize_t read_count(Reader* source, Py_ssize_t size) except -1:
    """Returns the count, whose values of at least so many bytes are there."""
    cdef uint16_t count
    memcpy(&count, skip(source, sizeof(count)), sizeof(count))
    if count * size > source.end - source.at:
        raise_damaged()
    return count


cdef object read_value(Reader* source, int depth):
    cdef char tag = skip(source, 1)[0]
    cdef Py_ssize_t count
    cdef long long integer
    cdef double number
    cdef object text
    if tag == Tag.ASCII:
        count = read_count(source, 1)
        text = PyUnicode_New(count, 127)
        memcpy(PyUnicode_DATA(text), skip(source, count), count)
        return text
    if tag == Tag.INTEGER:
        memcpy(&integer, skip(source, sizeof(integer)), sizeof(integer))
        return integer
    if tag == Tag.FLOAT:
        memcpy(&number, skip(source, sizeof(number)), sizeof(number))
        return number
    if tag == Tag.NONE:
        return None
    if tag == Tag.TRUE:
        return True
    if tag == Tag.FALSE:
        return False
    if tag == Tag.BYTES:
        count = read_count(source, 1)
        return PyBytes_FromStringAndSize(skip(source, count), count)
    if tag == Tag.TEXT:
        return read_text(source)
    if depth > 0:
        if tag == Tag.TUPLE:
            return read_tuple(source, depth - 1)
        if tag == Tag.LIST:
            return read_list(source, depth - 1)
        if tag == Tag.DICT:
            return read_dict(source, depth - 1)
    raise_damaged()


cdef object read_text(Reader* source):
    cdef Py_UCS4 aligned[CHARACTERS]
    cdef Py_ssize_t i
    cdef char width = skip(source, 1)[0]
    cdef Py_ssize_t count
    if width != 1 and width != 2 and width != 4:
        raise_damaged()
    count = read_count(source, width)
    if count > CHARACTERS:
        raise_damaged()
    memcpy(aligned, skip(source, count * width), count * width)
    if width == 4:
        for i in range(count):
            if aligned[i] > LAST_CHARACTER:
                raise_damaged()
    return PyUnicode_FromKindAndData(width, aligned, count)


cdef tuple read_tuple(Reader* source, int depth):
    cdef Py_ssize_t count = read_count(source, 1)
    cdef tuple item = PyTuple_New(count)
    cdef Py_ssize_t i
    cdef object value
    for i in range(count):
        value = read_value(source, depth)
        Py_INCREF(value)
        PyTuple_SET_ITEM(item, i, value)
    return item


cdef list read_list(Reader* source, int depth):
    cdef Py_ssize_t count = read_count(source, 1)
    cdef list item = PyList_New(count)
    cdef Py_ssize_t i
    cdef object value
    for i in range(count):
        value = read_value(source, depth)
        Py_INCREF(value)
        PyList_SET_ITEM(item, i, value)
    return item


cdef dict read_dict(Reader* source, int depth):
    cdef Py_ssize_t count = read_count(source, 2)
    cdef dict item = {}
    cdef Py_ssize_t i
    cdef object key
    for i in range(count):
        key = read_value(source, depth)
        item[key] = read_value(source, depth)
    return item
