# cython: language_level=3, binding=False, freethreading_compatible=True
"""Arrays of another dtype go into a queue unchanged, or are refused: numpy would cut, wrap and round them."""

import numpy

cdef dict CAST_KINDS = {  # by numpy's letters: which other kinds mean the same in a field of this kind
    "i": "bu", "u": "bi", "f": "biu", "c": "biuf", "m": "iu", "U": "ST", "S": "T",
}


cdef bint has_fields_of(object theirs, object ours) except -1:
    """Returns true if all fields have the same names, in the same order, and the same shapes, and compatible kinds.

    numpy would match fields by their order, and broadcast other shapes.
    """
    if theirs.shape != ours.shape:
        return False
    theirs, ours = theirs.base, ours.base
    if theirs.names is not None or ours.names is not None:
        return theirs.names == ours.names and all([has_fields_of(theirs[name], ours[name]) for name in theirs.names])
    if theirs.kind == "V":
        return theirs == ours  # numpy would pad bytes without a meaning
    return theirs.kind == ours.kind or theirs.kind in CAST_KINDS.get(ours.kind, "")


cdef bint is_unchanged(object before, object after) except -1:
    """Returns true if every value is the same. Floats may be rounded, but not to infinity; whole numbers may not."""
    if after.dtype.names is not None:
        return all([is_unchanged(before[name], after[name]) for name in after.dtype.names])
    if after.dtype == before.dtype:
        return True
    if after.dtype.kind in "fc":
        if before.dtype.kind in "iu":
            with numpy.errstate(invalid="ignore"):
                return bool(numpy.isfinite(after).all()) and are_exact(before, after.real)
        return (numpy.isfinite(before) == numpy.isfinite(after)).all()
    if after.dtype.kind == "V":
        return False
    if after.dtype.kind in "mM" and before.dtype.kind == after.dtype.kind:
        return are_same_times(before, after)
    if after.dtype.kind == "m":  # the lowest whole number would be NaT
        return not numpy.isnat(after).any() and (after.astype(after.dtype.newbyteorder("=")).view("i8") == before).all()
    return (before == after).all()


cdef bint are_exact(object whole, object floats) except -1:
    """Converts back and compares. A float above the largest whole number would come back as that number."""
    cdef object limit = numpy.iinfo(whole.dtype).max
    return ((floats.astype(numpy.longdouble) <= numpy.longdouble(limit)) & (floats.astype(whole.dtype) == whole)).all()


cdef bint may_change(object theirs, object ours) except -1:
    """numpy calls it safe to round large whole numbers to floats, and to convert times to a unit that overflows."""
    if theirs.subdtype is not None and ours.subdtype is not None:
        return may_change(theirs.base, ours.base)
    if theirs.names is not None:
        return any([may_change(theirs[name], ours[name]) for name in theirs.names])
    if theirs.kind in "iu" and ours.kind in "fcm":
        return True
    if theirs.kind in "mM":
        return numpy.datetime_data(theirs) != numpy.datetime_data(ours)
    return not numpy.can_cast(theirs, ours, "safe")


cdef int check_mask(object given) except -1:
    """Refuses masked values: numpy would store the value behind the mask."""
    if isinstance(given, numpy.ma.MaskedArray) and any(numpy.ma.getmaskarray(given).tobytes()):
        raise ValueError("a masked value cannot be put: fill it with filled(), or leave it out with compressed()")
    return 0


cdef object converted(object given, object base):
    """Returns an array or a scalar of another dtype as one of ours. Raises if that would change a value."""
    cdef object array
    if not (has_fields_of(given.dtype, base) and numpy.can_cast(given.dtype, base, "same_kind")):
        raise TypeError(f"cannot put items of dtype {given.dtype} as {base}: convert them with astype first")
    try:
        with numpy.errstate(over="ignore"):
            array = numpy.asarray(given, dtype=base)
    except OverflowError:  # newer versions of numpy raise it for times; older ones change them
        array = None
    if array is None or may_change(given.dtype, base) and not is_unchanged(numpy.asarray(given), array):
        raise ValueError(
            f"values of dtype {given.dtype} must come through unchanged as {base}, and some do not; "
            "convert them with astype first"
        )
    return array


cdef bint are_same_times(object before, object after) except -1:
    """Converts back and compares: a time that was cut, or overflowed its unit, differs then."""
    return (after.astype(before.dtype).astype(before.dtype.newbyteorder("=")).view("i8")
            == before.astype(before.dtype.newbyteorder("=")).view("i8")).all()
