# cython: language_level=3, binding=False, freethreading_compatible=True
"""Values are stored unchanged or refused: numpy would cut, round to a whole number, parse or broadcast some.

A value is unchanged if the stored one is equal. These changes are allowed, and no others:
a float is rounded to the precision of its field, but not to infinity, and NaN stays NaN;
text of ASCII goes into bytes and back; NULs at the end of text or bytes are padding, as they are to numpy.
"""

from cpython.buffer cimport PyObject_CheckBuffer
from libc.math cimport fabs
from libc.string cimport memcpy

from queueduct.items._exact_arrays cimport are_same_times, check_mask, converted
from queueduct.native._native cimport array_data, import_array

import datetime
import decimal
import fractions
import numbers
from collections.abc import Mapping

import numpy

from queueduct.errors import UnfitItem

import_array()

cdef object NONE = object()    # numpy could not convert the value
cdef object INFINITY = float("inf")
cdef double LARGE = 2.0 ** 53    # from here on not every whole number is a double


cdef class Rule:
    """The rule for one field, or for a whole record: which values it can hold unchanged."""

    def __init__(self, dtype, str path=""):
        self.shape = dtype.shape
        dtype = dtype.base
        self.dtype = dtype
        self.itemsize = dtype.itemsize
        self.name = path.rpartition(".")[2]
        self.path = path
        self.kind = dtype.kind
        prefix = path + "." if path else ""
        self.fields = tuple([Rule(dtype[name], prefix + name) for name in dtype.names or ()])
        self.has_arrays = any([(<Rule>field).shape != () or (<Rule>field).has_arrays for field in self.fields])
        self.is_wide = dtype.kind == "f" and dtype.itemsize > 8 or dtype.kind == "c" and dtype.itemsize > 16
        self.is_subtle = (
            dtype.kind in "mM" or self.is_wide or dtype.kind in "fc" and not dtype.isnative
            or any([(<Rule>field).is_subtle for field in self.fields])
        )

        self._find_floats(dtype, 0)

    cdef int _find_floats(self, object dtype, int64_t offset) except -1:
        cdef int64_t part, parts, width
        if dtype.names is not None:
            for name in dtype.names:
                self._find_floats(dtype.fields[name][0], offset + <int64_t>dtype.fields[name][1])
        elif dtype.kind in "fc" and dtype.subdtype is None and not self.is_wide:
            parts = 2 if dtype.kind == "c" else 1
            width = dtype.itemsize // parts
            for part in range(parts):
                if width == sizeof(double):
                    self.doubles.push_back(offset + part * width)
                elif width == sizeof(float):
                    self.floats.push_back(offset + part * width)
        return 0

    cdef object ordered(self, object given, object index):
        """Returns a value with each record as a tuple, as numpy wants it, also where it was given as a dict or a list.

        Returns the same object if there is nothing to change.
        """
        return self._ordered_array(given, self.shape, index)

    cdef object _ordered_array(self, object given, tuple shape, object index):
        cdef list parts
        cdef Py_ssize_t i
        if not self.fields:
            return given
        if not shape:
            return self._ordered_record(given, index)
        if not isinstance(given, (list, tuple)):
            return given
        parts = [self._ordered_array(part, shape[1:], index) for part in given]
        for i in range(len(parts)):
            if parts[i] is not given[i]:
                return parts
        return given

    cdef object _ordered_record(self, object given, object index):
        cdef object values = given
        cdef bint is_same = isinstance(given, tuple)
        cdef list parts = []
        cdef Py_ssize_t i
        cdef Rule field
        if is_mapping(given):
            values = self.by_name(given, index)
        elif not isinstance(given, (list, tuple)) or len(given) != len(self.fields):
            return given
        for i in range(len(self.fields)):
            field = self.fields[i]
            part = field._ordered_array(values[i], field.shape, index)
            is_same = is_same and part is values[i]
            parts.append(part)
        return given if is_same else tuple(parts)

    cdef list by_name(self, object given, object index):
        """Returns the values of a dict in the order of the fields. Raises unless its keys are exactly their names."""
        cdef list values = []
        cdef Rule field
        for field in self.fields:
            if field.name not in given:
                self._misnamed(given, index)
            values.append(given[field.name])
        if len(given) != len(values):
            self._misnamed(given, index)
        return values

    cdef int _misnamed(self, object given, object index) except -1:
        """Raises the error of a dict whose keys are not the names of the fields."""
        cdef list names = [(<Rule>field).name for field in self.fields]
        cdef list missing = [name for name in names if name not in given]
        cdef list unknown = [key for key in given if key not in names]
        cdef str what = f"the record {self.path!r}" if self.path else "a record"
        where = "" if index is None else f" of item {index}"
        problem = "; ".join(
            [f"{label}: {', '.join(map(repr, keys))}" for label, keys in (("missing", missing), ("unknown", unknown))
             if keys]
        )
        raise UnfitItem(
            f"{what}{where} must have exactly the fields {', '.join(map(repr, names))}: {shortened(given)}: {problem}; "
            + ("give each field a value" if missing else "leave out what is unknown")
            + (", under its own name" if missing and unknown else "")
        )

    cdef bint is_equal(self, object given, object stored, object array) except -1:
        """Returns true if one comparison shows that no value changed. If not, each value must be checked."""
        # None equals NaT, a number may equal any time, and numpy rounds a Python number beside a long double
        if self.has_arrays or self.is_subtle:
            return False
        try:
            if not stored == given:
                return False
        except Exception:  # a user's __eq__ may raise anything
            return False
        return not self._has_large(array, stored)

    cdef bint _has_large(self, object array, object stored) except -1:
        """Returns true if a float may equal another whole number: numpy rounds its own to compare them."""
        cdef const int64_t* offsets = self.doubles.data()
        cdef const char* at
        cdef int64_t count, field, i
        cdef double double_
        cdef float float_
        if self.doubles.empty() and self.floats.empty():
            return False
        count = array.size if self.shape else len(<list>stored) if type(stored) is list else 1
        for field in range(<int64_t>self.doubles.size()):
            at = <const char*>array_data(array) + offsets[field]
            for i in range(count):
                memcpy(&double_, at + i * self.itemsize, sizeof(double))
                if fabs(double_) >= LARGE:
                    return True
        offsets = self.floats.data()
        for field in range(<int64_t>self.floats.size()):
            at = <const char*>array_data(array) + offsets[field]
            for i in range(count):
                memcpy(&float_, at + i * self.itemsize, sizeof(float))
                if fabs(float_) >= LARGE:
                    return True
        return False

    cdef int check(self, object given, object stored, object index) except -1:
        """``stored`` is numpy's value as tolist() returns it, or NONE; ``index`` is the number in a batch, or None."""
        return self._check_array(given, stored, self.shape, index)

    cdef int _check_array(self, object given, object stored, tuple shape, object index) except -1:
        cdef Py_ssize_t i
        if not shape:
            return self._check_one(given, stored, index)
        if isinstance(stored, numpy.ndarray):
            stored = stored.tolist()
        if isinstance(given, (str, bytes)) or not hasattr(given, "__len__") or is_mapping(given):
            self._refuse(given, f"an array of shape {shape} is needed", index)
        if isinstance(given, numpy.ndarray) or PyObject_CheckBuffer(given) or hasattr(given, "__array__"):
            given = numpy.asanyarray(given)  # asanyarray keeps a mask
            if given.shape != shape:
                self._refuse(given, f"an array of shape {shape} is needed", index)
            return self._check_numpys(given, index)
        if len(given) != shape[0]:
            self._refuse(given, f"an array of shape {shape} is needed, not {len(given)} long", index)
        try:
            given = list(given)
        except TypeError:
            self._refuse(given, f"an array of shape {shape} is needed", index)
        for i in range(len(given)):
            self._check_array(given[i], NONE if stored is NONE else stored[i], shape[1:], index)
        return 0

    cdef int _check_one(self, object given, object stored, object index) except -1:
        if self.fields:
            return self._check_record(given, stored, index)
        if given is None:
            self._refuse(given, "None is no value, and not NaN or NaT either", index)
        if stored is NONE:
            try:
                stored = numpy.array((given,), [("value", self.dtype)])["value"].item()  # converted as in a record
            except Exception as error:
                self._refuse(given, str(error), index)
        return self._check_leaf(given, stored, index)

    cdef int _check_record(self, object given, object stored, object index) except -1:
        cdef Py_ssize_t i
        if not isinstance(given, tuple):
            if isinstance(given, (numpy.void, numpy.ndarray)):
                return self._check_numpys(given, index)
            self._refuse(given, "a record is a tuple or a list of its values, or a dict by its fields' names", index)
        if len(given) != len(self.fields):
            self._refuse(given, f"a record has {len(self.fields)} fields", index)
        for i in range(len(self.fields)):
            (<Rule>self.fields[i])._check_field(given[i], NONE if stored is NONE else stored[i], index)
        return 0

    cdef int _check_field(self, object given, object stored, object index) except -1:
        if self.shape:
            return self._check_array(given, stored, self.shape, index)
        return self._check_one(given, stored, index)

    def _check_numpys(self, given, index):
        """Checks a numpy value inside a record, as if it were put alone."""
        try:
            check_mask(given)
            if given.dtype != self.dtype:
                converted(given, self.dtype)
        except (TypeError, ValueError) as error:
            self._refuse(given, str(error), index)
        return 0

    cdef int _check_leaf(self, object given, object stored, object index) except -1:
        if self.kind == u"S" and type(given) is str:  # the common case first
            if (<str>given).isascii() and (<bytes>stored).decode("ascii") == given:
                return 0
        if self.kind == u"m" or self.kind == u"M":
            return self._check_time(given, stored, index)
        if self.is_wide and isinstance(given, (numbers.Rational, decimal.Decimal)):
            return 0 if is_exact(given, stored) else self._refuse(given, f"it would be {stored!r}", index)
        if self.kind == u"f" or self.kind == u"c":
            if isinstance(given, numpy.integer):
                given = int(given)  # numpy would round it to compare it
        try:
            if given is stored or given == stored and not isinstance(given, (numpy.datetime64, numpy.timedelta64)):
                return 0
        except Exception:  # a user's __eq__ may raise anything
            pass
        return 0 if self._is_same(given, stored) else self._refuse(given, f"it would be {stored!r}", index)

    cdef bint _is_same(self, object given, object stored) except -1:
        """Returns true if values that are not equal still count as unchanged."""
        if self.kind == u"S":
            if isinstance(given, str):
                return given.isascii() and given.rstrip("\0").encode("ascii") == stored
            return isinstance(given, (bytes, bytearray)) and given.rstrip(b"\0") == stored
        if self.kind == u"U":
            if isinstance(given, bytes):
                return given.isascii() and given.rstrip(b"\0").decode("ascii") == stored
            return isinstance(given, str) and given.rstrip("\0") == stored
        if self.kind == u"f":
            has_float = hasattr(type(given), "__float__")
            if has_float and not isinstance(given, (numbers.Number, numpy.ndarray, numpy.generic)):
                given = float(given)  # the object's own __float__ decides
            return isinstance(given, (float, numpy.floating)) and is_rounded(given, stored)
        if self.kind == u"c":
            return (
                isinstance(given, (float, complex, numpy.inexact))
                and is_rounded(given.real, stored.real) and is_rounded(given.imag, stored.imag)
            )
        return self.kind == u"V" and isinstance(given, numpy.void) and given.tobytes() == stored

    cdef int _check_time(self, object given, object stored, object index) except -1:
        if type(given) is datetime.datetime and given == stored or is_same_time(given, stored, self.dtype):
            return 0
        return self._refuse(given, why_no_time(given), index)

    cdef int _refuse(self, object given, str why, object index) except -1:
        where = f"field {self.path!r}" if self.path else "the value"
        if index is not None:
            where += f" of item {index}"
        raise UnfitItem(
            f"{where} must come through unchanged as {self.dtype}: {shortened(given)}: "
            f"{why}; convert it first, or create the queue with a dtype that holds it"
        )


cdef bint is_mapping(object given) except -1:
    return isinstance(given, dict) or isinstance(given, Mapping)


cdef str shortened(object given):
    cdef str text = repr(given)
    return text if len(text) <= 80 else text[:77] + "..."


cdef Rule rule_of(object dtype):
    """Returns the rule of a dtype, which is made once."""
    cdef Rule rule = RULES.get(dtype)
    if rule is None:
        if len(RULES) >= 256:
            RULES.clear()
        rule = RULES[dtype] = Rule(dtype)
    return rule

cdef dict RULES = {}


cdef bint is_rounded(object given, object stored) except -1:
    """Compares without a conversion to float, in which a large long double would be infinite."""
    if given != given or stored != stored:  # NaN
        return given != given and stored != stored
    return (
        (abs(given) == INFINITY) == (abs(stored) == INFINITY)
        and (given > 0) >= (stored > 0) and (given < 0) >= (stored < 0)
    )


cdef bint is_exact(object given, object stored) except -1:
    """Compares a long double exactly: numpy would round the other value first."""
    cdef object value = stored.real
    if stored.imag != 0 or value != value or abs(value) == INFINITY:
        return False
    try:
        return fractions.Fraction(*value.as_integer_ratio()) == fractions.Fraction(given)
    except (ValueError, OverflowError):  # a Decimal that is NaN or infinite
        return False


cdef bint is_same_time(object given, object stored, object dtype) except -1:
    """``stored`` is as tolist() returns it: None for NaT, a number for a unit that Python has no type for."""
    cdef object before, after
    if isinstance(given, (int, numpy.integer)) and not isinstance(given, (bool, numpy.timedelta64)):
        return stored is not None and numpy.array(stored, dtype.newbyteorder("=")).view("i8") == given
    if hasattr(given, "to_datetime64"):  # of pandas: more precise than datetime
        before = given.to_datetime64()
    elif hasattr(given, "to_timedelta64"):
        before = given.to_timedelta64()
    elif isinstance(given, datetime.datetime):
        if given.tzinfo is not None:
            return False
        before = numpy.datetime64(given)
    elif isinstance(given, datetime.date):
        before = numpy.datetime64(given)
    elif isinstance(given, datetime.timedelta):
        before = numpy.timedelta64(given)
    elif isinstance(given, (numpy.datetime64, numpy.timedelta64)):
        before = given
    else:
        return False
    if before.dtype.kind != dtype.kind:
        return False
    after = numpy.array(stored, dtype)
    return are_same_times(numpy.asarray(before), after)


cdef str why_no_time(object given):
    if isinstance(given, datetime.datetime) and given.tzinfo is not None:
        return "a time zone has no place in it, give it in UTC: astimezone(timezone.utc).replace(tzinfo=None)"
    return "it is no time, or more precise than this unit, or beyond it"
