# cython: language_level=3, binding=False, freethreading_compatible=True
"""Copies columns into fields of records, without Python for any single row, and without the GIL."""

from libc.stdint cimport int32_t, int64_t, uintptr_t
from libcpp.vector cimport vector

cdef extern from "arrow/scatter/_scatter.hpp" namespace "queueduct":
    cdef enum class Kind "queueduct::ScatteredField::Kind":
        copied
        chosen
        bytes
        text
    struct ScatteredField:
        Kind kind
        int64_t offset
        int64_t width
        const char* from_ "from"
        int64_t size
        const int32_t* places
        int64_t bad_row
    void scatter(ScatteredField*, int64_t, char*, int64_t, int64_t) nogil


cdef uintptr_t address_of(object array) except? 0:
    if not array.flags.c_contiguous:
        raise TypeError("a column must be contiguous")
    return array.__array_interface__["data"][0]


cdef class Scatterer:
    """Copies columns into fields of these records, of any stride. Each column is as long as they are."""

    cdef vector[ScatteredField] fields
    cdef list columns    # keeps their memory
    cdef object records
    cdef int64_t itemsize
    cdef int64_t rows

    def __init__(self, records):
        if records.ndim != 1 or not records.flags.writeable:
            raise TypeError("records to fill must be writeable, of one dimension")
        self.columns = []
        self.records = records
        self.itemsize = records.dtype.itemsize
        self.rows = len(records)

    cdef int add(self, Kind kind, int64_t offset, int64_t width, object values, object places) except -1:
        cdef ScatteredField field
        cdef uintptr_t address = 0
        if offset < 0 or width < 0 or offset + width > self.itemsize:
            raise ValueError(f"a field must lie in the record: offset={offset}, width={width}")
        if places is not None:
            if places.dtype != "i4":
                raise TypeError(f"places in a column have 4 bytes: {places.dtype}")
            address = address_of(places)
        field.kind = kind
        field.offset = offset
        field.width = width
        field.from_ = <const char*>address_of(values)
        field.size = values.nbytes
        field.places = <const int32_t*>address
        field.bad_row = -1
        self.columns.append((values, places))
        self.fields.push_back(field)
        return self.fields.size() - 1

    def add_values(self, offset, width, values):
        """The field at this offset is a column of its own type. Returns the field's number, as all of these do."""
        if values.nbytes < self.rows * width:
            raise ValueError(f"there are no {self.rows} values of {width} bytes: {values.nbytes} bytes")
        return self.add(Kind.copied, offset, width, values, None)

    def add_chosen(self, offset, values, chosen):
        """The field at this offset is one of these values, by number."""
        if len(chosen) < self.rows:
            raise ValueError(f"there are no {self.rows} numbers of values: {len(chosen)}")
        return self.add(Kind.chosen, offset, values.dtype.itemsize, values, chosen)

    def add_texts(self, offset, width, is_text, offsets, data):
        """The field at this offset has bytes, or text, that lie end to end as Arrow has them."""
        if len(offsets) <= self.rows:
            raise ValueError(f"there are no {self.rows + 1} offsets: {len(offsets)}")
        return self.add(Kind.text if is_text else Kind.bytes, offset, width, data, offsets)

    def scatter(self):
        """Copies all columns. Returns the numbers of the fields with a value that does not fit as it is."""
        cdef uintptr_t target = self.records.__array_interface__["data"][0]
        cdef int64_t stride = self.records.strides[0]
        if self.rows and self.fields.size():
            with nogil:
                scatter(self.fields.data(), self.fields.size(), <char*>target, stride, self.rows)
        return [number for number in range(self.fields.size()) if self.fields[number].bad_row >= 0]
