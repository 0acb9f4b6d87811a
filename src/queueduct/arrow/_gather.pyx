# cython: language_level=3, binding=False, freethreading_compatible=True
"""Copies fields of records into columns, without Python for any single row, and without the GIL."""

from libc.stdint cimport int32_t, int64_t, uintptr_t
from libcpp.vector cimport vector

cdef extern from "arrow/_texts.hpp" namespace "queueduct":
    struct Packed:
        int64_t end
        int64_t bad_row
        bint is_ascii

cdef extern from "arrow/_gather.hpp" namespace "queueduct":
    cdef enum class Kind "queueduct::GatheredField::Kind":
        copied
        bytes
        text
    struct GatheredField:
        Kind kind
        int64_t offset
        int64_t width
        char* to
        int32_t* offsets
        Packed packed
    void gather(GatheredField*, int64_t, const char*, int64_t, int64_t, int64_t) nogil


cdef uintptr_t address_of(object array) except? 0:
    if not (array.flags.c_contiguous and array.flags.writeable):
        raise TypeError("a column must be contiguous and writeable")
    return array.__array_interface__["data"][0]


cdef class Gatherer:
    """Copies fields of at most ``rows`` records. One thread at a time uses it."""

    cdef vector[GatheredField] fields
    cdef list columns    # keeps their memory
    cdef int64_t itemsize
    cdef int64_t rows
    cdef int64_t row

    def __init__(self, itemsize, rows):
        self.columns = []
        self.itemsize = itemsize
        self.rows = rows

    cdef int add(self, Kind kind, int64_t offset, int64_t width, object column, uintptr_t offsets) except -1:
        cdef GatheredField field
        if self.row or offset < 0 or width < 0 or offset + width > self.itemsize:
            raise ValueError(f"a field must lie in the record: offset={offset}, width={width}")
        field.kind = kind
        field.offset = offset
        field.width = width
        field.to = <char*>address_of(column)
        field.offsets = <int32_t*>offsets
        field.packed.end = 0
        field.packed.bad_row = -1
        field.packed.is_ascii = True
        self.columns.append(column)
        self.fields.push_back(field)
        return 0

    def add_values(self, offset, width, column):
        """The field at this offset goes as it is into this array of bytes."""
        if column.nbytes < self.rows * width:
            raise ValueError(f"no room for {self.rows} values of {width} bytes: {column.nbytes} bytes")
        self.add(Kind.copied, offset, width, column, 0)

    def add_texts(self, offset, width, is_text, offsets, data):
        """The text at this offset is packed as Arrow has it. Returns its number, for packed()."""
        if len(offsets) <= self.rows or offsets.dtype != "i4":
            raise ValueError(f"no room for {self.rows} offsets: {len(offsets)}")
        if not self.rows * width + 8 <= data.nbytes <= 0x7FFFFFFF:
            raise ValueError(f"no room for {self.rows} texts of {width} bytes: {data.nbytes} bytes")
        self.add(Kind.text if is_text else Kind.bytes, offset, width, data, address_of(offsets))
        self.columns.append(offsets)
        return self.fields.size() - 1

    def gather(self, records):
        """Appends records of any stride."""
        cdef uintptr_t source = records.__array_interface__["data"][0]
        cdef int64_t stride = records.strides[0]
        cdef int64_t count = len(records)
        cdef int64_t row = self.row
        if self.row + count > self.rows or records.dtype.itemsize != self.itemsize:
            raise ValueError(f"no room for {count} records after {self.row}: rows={self.rows}")
        self.row += count
        if count == 0 or self.fields.size() == 0:
            return
        with nogil:
            gather(self.fields.data(), self.fields.size(), <const char*>source, stride, count, row)

    def packed(self, number):
        """Returns whether all texts of this field are ASCII, and the first row that is no Unicode, or -1."""
        cdef GatheredField field = self.fields.at(number)
        return bool(field.packed.is_ascii), field.packed.bad_row
