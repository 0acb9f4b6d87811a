"""Record types and values for hypothesis: every kind of field, either byte order, nested, in arrays, of any bits."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from queueduct.items.types import ItemType

UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns")
ARROW_SPANS = ("W", "D", "h", "m", "s", "ms", "us", "ns")
NUMBERS = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "b1")

numbers = st.builds(lambda order, kind: np.dtype(order + kind), st.sampled_from("<>"), st.sampled_from(NUMBERS))
texts = st.builds(lambda kind, n: np.dtype(f"{kind}{n}"), st.sampled_from("SU"), st.integers(1, 6))
times = st.builds(lambda kind, unit: np.dtype(f"{kind}[{unit}]"), st.just("M8"), st.sampled_from(UNITS))
spans = st.builds(lambda kind, unit: np.dtype(f"{kind}[{unit}]"), st.just("m8"), st.sampled_from(ARROW_SPANS))
leaves = numbers | texts | times | spans
shapes = st.lists(st.integers(1, 3), min_size=1, max_size=2).map(tuple)


def with_fields(inner):
    fields = st.lists(inner, min_size=1, max_size=4)
    return fields.map(lambda kinds: np.dtype([(f"field {i}", kind) for i, kind in enumerate(kinds)]))


def kinds_of(inner):
    return with_fields(inner) | st.builds(lambda dtype, shape: np.dtype((dtype, shape)), inner, shapes)


dtypes = st.recursive(leaves, kinds_of, max_leaves=6).map(lambda dtype: ItemType.of(dtype).dtype)


def fill(out, draw, is_columnar):
    """Fills an array with values of any bits, as far as the kind has them; times that are near, for Arrow's columns."""
    if out.dtype.names is not None:
        for name in out.dtype.names:
            fill(out[name], draw, is_columnar)
        return
    kind, size = out.dtype.kind, out.dtype.itemsize
    for index in np.ndindex(out.shape):
        if kind == "U":
            alphabet = st.characters(exclude_categories=["Cs"] if is_columnar else [])
            out[index] = draw(st.text(alphabet, max_size=size // 4))
        elif kind == "S":
            odd = st.sampled_from([b"base64", b'"', b"a,b", b"\r\n", b"\xff"])
            out[index] = draw(st.binary(max_size=size) | odd)[:size]
        elif kind == "b":
            out[index] = draw(st.booleans())
        elif kind == "f":
            out[index] = draw(st.floats(width=size * 8))
        elif kind in "Mm":
            near = st.integers(-(10**4), 10**4) | st.none()
            far = 10**7 if kind == "m" else 2**50  # a put takes spans as far as 8 bytes of microseconds reach
            count = draw(near if is_columnar else near | st.integers(-far, far))
            out[index] = np.array("NaT" if count is None else count, out.dtype)
        else:
            limits = np.iinfo(out.dtype)
            out[index] = draw(st.integers(int(limits.min), int(limits.max)))


@st.composite
def arrays(draw, is_columnar=False):
    dtype = draw(dtypes)
    out = np.zeros(draw(st.integers(1, 4)), dtype)
    fill(out, draw, is_columnar)
    return dtype, out


def bits(array):
    """The bytes of an array in which every NaN is the same one: a format keeps that it is none, not which."""
    out = np.array(array)
    canonical(out)
    return out.tobytes()


def canonical(out):
    if out.dtype.names is not None:
        for name in out.dtype.names:
            canonical(out[name])
    elif out.dtype.kind == "f":
        out[np.isnan(out)] = np.nan
