# cython: language_level=3, binding=False, freethreading_compatible=True
"""Copies fields of records into columns, without Python for any single row, and without the GIL."""

from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int32_t, int64_t, uintptr_t
from libc.stdlib cimport free
from libcpp.vector cimport vector

from queueduct.native._native cimport array_data, import_array

import numpy

import_array()

cdef extern from "Python.h" nogil:
    bint Py_IsInitialized()

cdef extern from "arrow/gather/columns.hpp" namespace "queueduct::gather" nogil:
    cdef enum class PlaceKind "queueduct::gather::Place::Memory":
        nowhere, record, scratch, column
    cdef enum class StepKind "queueduct::gather::Step::Kind":
        copy, pairs, widen, split, bits, times, days, swap, words, bytes, points
    cdef enum class ShapeKind "queueduct::gather::Shape::Kind":
        values, bits, times, days, texts
    cdef enum class Isa:
        base, avx2, avx512
    struct Place:
        PlaceKind memory
        int64_t at
    struct Step:
        StepKind kind
        int64_t width
        int64_t count
        Place place "from"
        Place to
        Place second
    struct Shape:
        ShapeKind kind
        int64_t width
        int64_t count
    struct TooFar:
        int64_t element
        int64_t value
    struct Packed:
        int64_t end
        int64_t bad_row
        bint is_ascii
    struct Column:
        char* data
        int32_t* offsets
        TooFar too_far
        Packed packed
    cppclass Plan:
        int64_t itemsize
        int64_t scratch_bytes
        vector[Step] steps
        vector[Shape] shapes
        int64_t block_rows()
    Isa best_isa()
    int64_t lay_out(const Plan&, int64_t, char*, vector[Column]&) except +
    void gather(const Plan&, Isa, Column*, char*, const char*, int64_t, int64_t, int64_t)
    int64_t first_bad_text(const int32_t*, const char*, int64_t)

cdef extern from "arrow/gather/batch.hpp" namespace "queueduct::gather" nogil:
    cppclass ArrowArray:
        int64_t n_children
        void (*release)(ArrowArray*)
    struct Node:
        int64_t column
        int64_t count
        int64_t children
    char* allocate_block(int64_t)
    void prefer_huge_pages(char*, int64_t)
    cppclass Memory:
        char* data
        void* lender
        void (*give_back)(void*) noexcept
        void free()
    void export_batch(
        const Plan&, const vector[Node]&, const vector[Column]&, int64_t, Memory&, ArrowArray*) except +

MEMORIES = {"nowhere": <int>PlaceKind.nowhere, "record": <int>PlaceKind.record, "scratch": <int>PlaceKind.scratch,
            "column": <int>PlaceKind.column}
STEPS = {"copy": <int>StepKind.copy, "pairs": <int>StepKind.pairs, "widen": <int>StepKind.widen,
         "split": <int>StepKind.split, "bits": <int>StepKind.bits, "times": <int>StepKind.times,
         "days": <int>StepKind.days, "swap": <int>StepKind.swap, "words": <int>StepKind.words,
         "bytes": <int>StepKind.bytes, "points": <int>StepKind.points}
SHAPES = {"values": <int>ShapeKind.values, "bits": <int>ShapeKind.bits, "times": <int>ShapeKind.times,
          "days": <int>ShapeKind.days, "texts": <int>ShapeKind.texts}
ISAS = {"base": Isa.base, "avx2": Isa.avx2, "avx512": Isa.avx512}

cdef Isa isa = best_isa()
POOLED_BYTES = 1 << 17
cdef int64_t texts_limit = 0x7FFFFFFF    # offsets of texts have 4 bytes


cdef void give_back(void* lender) noexcept with gil:
    Py_DECREF(<object>lender)


cdef void give_back_in_time(void* lender) noexcept nogil:
    if Py_IsInitialized():  # else Python has freed it, or never will
        give_back(lender)


def use_isa(str name):
    """Uses these registers from now on, for tests. Returns false if this processor does not have them."""
    global isa
    if <int>ISAS[name] > <int>best_isa():
        return False
    isa = ISAS[name]
    return True


cdef class GatherPlan:
    """How fields of a record become columns. Never changes."""

    cdef Plan plan
    cdef vector[Node] nodes

    def __init__(self, itemsize, scratch_bytes, steps, shapes, nodes):
        cdef Step step
        cdef Shape shape
        cdef Node node
        self.plan.itemsize = itemsize
        self.plan.scratch_bytes = scratch_bytes
        for kind, width, count in shapes:
            shape.kind = <ShapeKind><int>SHAPES[kind]
            shape.width = width
            shape.count = count
            self.plan.shapes.push_back(shape)
        for kind, width, count, place, to, second in steps:
            step.kind = <StepKind><int>STEPS[kind]
            step.width = width
            step.count = count
            step.place = self.place_of(place)
            step.to = self.place_of(to)
            step.second = self.place_of(second)
            self.plan.steps.push_back(step)
        for node.column, node.count, node.children in nodes:
            self.nodes.push_back(node)

    cdef Place place_of(self, object given) except *:
        cdef Place place
        memory, at = given
        limits = {"nowhere": 0, "record": self.plan.itemsize, "scratch": self.plan.scratch_bytes,
                  "column": self.plan.shapes.size() - 1}
        if not 0 <= at <= limits[memory]:
            raise ValueError(f"a place must lie in its memory: {memory} {at}")
        place.memory = <PlaceKind><int>MEMORIES[memory]
        place.at = at
        return place


cdef class Gatherer:
    """Gathers the columns of at most ``rows`` records. One thread at a time uses it.

    Large memory comes from ``lend``, Arrow's own pool: it uses again what it has freed, and new memory costs more than
    the copy.
    """

    cdef GatherPlan plan
    cdef vector[Column] columns
    cdef Memory memory
    cdef char* scratch
    cdef int64_t rows
    cdef int64_t row
    cdef ArrowArray exported

    def __cinit__(self, GatherPlan plan, int64_t rows, lend):
        cdef int64_t size
        cdef Shape shape
        self.exported.release = NULL
        if rows < 0:
            raise ValueError(f"rows must not be negative: rows={rows}")
        for shape in plan.plan.shapes:
            if shape.kind == ShapeKind.texts and rows * shape.count * shape.width + 64 > texts_limit:
                raise ValueError(f"no room for {rows} texts of {shape.count * shape.width} bytes in one batch of 2 GB")
        self.plan = plan
        self.rows = rows
        size = lay_out(plan.plan, rows, NULL, self.columns)
        if size < POOLED_BYTES:
            self.memory.data = allocate_block(size)
        else:
            lender = lend(size)
            self.memory.data = <char*><uintptr_t>lender.address
            Py_INCREF(lender)
            self.memory.lender = <void*>lender
            self.memory.give_back = give_back_in_time
            prefer_huge_pages(self.memory.data, size)
        size = plan.plan.scratch_bytes * plan.plan.block_rows()
        if size > 0 and self.memory.data != NULL:
            self.scratch = allocate_block(size)
        if self.memory.data == NULL or (size > 0 and self.scratch == NULL):
            raise MemoryError(f"no memory for the columns of {rows} records")
        lay_out(plan.plan, rows, self.memory.data, self.columns)

    def __dealloc__(self):
        self.memory.free()
        free(self.scratch)
        if self.exported.release != NULL:
            self.exported.release(&self.exported)

    def gather(self, records not None):
        """Appends records of any stride."""
        cdef const char* source = <const char*>array_data(records)
        cdef int64_t count = len(records)
        cdef int64_t stride = records.strides[0]
        cdef int64_t row = self.row
        if self.memory.data == NULL or row + count > self.rows or records.dtype.itemsize != self.plan.plan.itemsize:
            raise ValueError(f"no room for {count} records after {row}: rows={self.rows}")
        self.row += count
        if count == 0 or self.plan.plan.steps.empty():
            return
        with nogil:
            gather(self.plan.plan, isa, self.columns.data(), self.scratch, source, stride, count, row)

    def batch_address(self, int64_t rows):
        """Returns where the first ``rows`` records are, as a struct ArrowArray to import. The columns go with it."""
        if self.memory.data == NULL or not 0 <= rows <= self.row:
            raise ValueError(f"no {rows} records are there: {self.row}")
        export_batch(self.plan.plan, self.plan.nodes, self.columns, rows, self.memory, &self.exported)
        return <uintptr_t>&self.exported

    def has_doubts(self):
        """Returns false if all values are what their columns can hold. Else bad_text and too_far tell."""
        for column in self.columns:
            if column.packed.bad_row >= 0 or not column.packed.is_ascii or column.too_far.element >= 0:
                return True
        return False

    def bad_text(self, size_t column, int64_t rows, bint is_utf8):
        """Returns the first of these elements that is no Unicode, or with ``is_utf8`` no UTF-8; -1 if there is none."""
        cdef Column* texts = &self.columns.at(column)
        cdef int64_t found = texts.packed.bad_row
        if 0 <= found < rows or not is_utf8 or texts.packed.is_ascii:
            return found if found < rows else -1
        with nogil:
            found = first_bad_text(texts.offsets, texts.data, rows)
        return found

    def text_at(self, size_t column, int64_t element):
        cdef Column* texts = &self.columns.at(column)
        cdef int64_t start = texts.offsets[element]
        return texts.data[start:<int64_t>texts.offsets[element + 1]]

    def too_far(self, size_t column):
        """Returns the first element with a day that has no room, or -1, and the day."""
        cdef TooFar found = self.columns.at(column).too_far
        return found.element, found.value
