# cython: language_level=3, binding=False, freethreading_compatible=True
"""Texts of fixed width (numpy's S and U) as Arrow needs them, without Python for any single row."""

from libc.stdint cimport int32_t, int64_t, uintptr_t

cdef extern from "arrow/_texts.hpp" namespace "queueduct":
    struct Packed:
        int64_t end
        int64_t bad_row
        bint is_ascii
    Packed pack_bytes(const char*, int64_t, int64_t, int64_t, int32_t*, char*, int64_t) nogil
    Packed pack_text(const char*, int64_t, int64_t, int64_t, int32_t*, char*, int64_t) nogil

SPARE = 8    # bytes that the data needs beyond all texts at their full width


def pack(values, offsets, data, row):
    """Appends the texts after those of ``row`` earlier rows; ``offsets[row]`` says where these end.

    Returns whether the new ones are ASCII, and which of them is no Unicode, or -1.
    """
    cdef int64_t first = row
    cdef int64_t rows = values.shape[0]
    cdef int64_t width = values.dtype.itemsize
    cdef bint is_text = values.dtype.kind == "U"
    cdef int64_t at = offsets[first]
    cdef int64_t stride = values.strides[0]
    cdef uintptr_t source = values.__array_interface__["data"][0]
    cdef uintptr_t starts = offsets.__array_interface__["data"][0]
    cdef uintptr_t target = data.__array_interface__["data"][0]
    cdef Packed packed
    if values.ndim != 1 or values.dtype.kind not in "SU" or not values.dtype.isnative or offsets.dtype != "i4":
        raise TypeError("texts of native byte order and offsets of 4 bytes are needed")
    if not (offsets.flags.c_contiguous and data.flags.c_contiguous and offsets.flags.writeable):
        raise TypeError("offsets and data must be contiguous")
    if first + rows >= len(offsets) or at + rows * width + 8 > data.nbytes or data.nbytes > 0x7FFFFFFF:
        raise ValueError(f"no room for {rows} texts of {width} bytes after {at}: {data.nbytes} bytes")
    with nogil:
        if is_text:
            packed = pack_text(
                <const char*>source, stride, width // 4, rows, <int32_t*>starts + first, <char*>target, at
            )
        else:
            packed = pack_bytes(<const char*>source, stride, width, rows, <int32_t*>starts + first, <char*>target, at)
    return packed.is_ascii, packed.bad_row
