# cython: language_level=3, binding=False, freethreading_compatible=True
"""Texts of fixed width (numpy's S and U) as Arrow needs them, and back, without Python for any single row."""

from libc.stdint cimport int32_t, int64_t, uintptr_t

cdef extern from "arrow/gather/columns.hpp" namespace "queueduct::gather" nogil:
    const int64_t spare
    cdef enum class Isa:
        base
    struct Packed:
        int64_t bad_row
        bint is_ascii
    Isa best_isa()
    Packed pack_column(Isa, bint, const char*, int64_t, int64_t, int64_t, int32_t*, char*)
    int64_t first_bad_text(const int32_t*, const char*, int64_t)

SPARE = spare    # bytes that the data needs beyond all texts at their full width


def pack(values, offsets, data, is_utf8):
    """Writes where each text begins and, end to end, the texts.

    Returns the first row that is no Unicode, or with ``is_utf8`` no UTF-8; -1 if there is none.
    """
    cdef int64_t rows = values.shape[0]
    cdef int64_t width = values.dtype.itemsize
    cdef bint is_points = values.dtype.kind == "U"
    cdef bint must_be_utf8 = is_utf8
    cdef int64_t stride = values.strides[0]
    cdef uintptr_t source = values.__array_interface__["data"][0]
    cdef uintptr_t starts = offsets.__array_interface__["data"][0]
    cdef uintptr_t target = data.__array_interface__["data"][0]
    cdef Packed packed
    if values.ndim != 1 or values.dtype.kind not in "SU" or not values.dtype.isnative or offsets.dtype != "i4":
        raise TypeError("texts of native byte order and offsets of 4 bytes are needed")
    if not (offsets.flags.c_contiguous and data.flags.c_contiguous and offsets.flags.writeable):
        raise TypeError("offsets and data must be contiguous")
    if rows >= len(offsets) or rows * width + spare > data.nbytes or data.nbytes > 0x7FFFFFFF:
        raise ValueError(f"no room for {rows} texts of {width} bytes: {data.nbytes} bytes")
    with nogil:
        packed = pack_column(
            best_isa(), is_points, <const char*>source, stride, width, rows, <int32_t*>starts, <char*>target
        )
        if packed.bad_row < 0 and must_be_utf8 and not packed.is_ascii:
            packed.bad_row = first_bad_text(<const int32_t*>starts, <const char*>target, rows)
    return packed.bad_row
