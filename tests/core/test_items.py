"""What an item is: bytes and buffers, every dtype that means something elsewhere, and pickled objects."""

from __future__ import annotations

import array
import ctypes
import mmap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra import numpy as hnp

import queueduct
from queueduct import BoundedQueue
from queueduct.items.types import ItemType, describe, restore

NESTED = np.dtype([("id", "<u8"), ("at", [("x", "<f4"), ("y", "<f4")]), ("tags", "S4", (3,))])

DTYPES = {
    "bool": np.dtype("?"),
    "int8": np.dtype("i1"),
    "uint64": np.dtype("u8"),
    "big-endian int": np.dtype(">i4"),
    "float16": np.dtype("f2"),
    "big-endian float": np.dtype(">f8"),
    "long double": np.dtype("g"),
    "complex": np.dtype("c16"),
    "big-endian complex": np.dtype(">c8"),
    "bytes": np.dtype("S7"),
    "text": np.dtype("<U5"),
    "big-endian text": np.dtype(">U5"),
    "void": np.dtype("V9"),
    "datetime": np.dtype("M8[us]"),
    "datetime in steps": np.dtype("M8[25s]"),
    "datetime without a unit": np.dtype("M8"),
    "big-endian datetime": np.dtype(">M8[ns]"),
    "timedelta": np.dtype("m8[D]"),
    "record": np.dtype([("sym", "S8"), ("px", "f8"), ("ts", "M8[us]")]),
    "nested": NESTED,
    "nested twice": np.dtype([("a", [("b", [("c", ">i2"), ("d", "?")])]), ("e", NESTED)]),
    "aligned": np.dtype([("a", "i1"), ("b", "f8"), ("c", "i2")], align=True),
    "padded": np.dtype({"names": ["a", "b"], "formats": ["i1", "<i4"], "offsets": [3, 8], "itemsize": 24}),
    "overlapping": np.dtype({"names": ["whole", "low"], "formats": ["<u4", "<u2"], "offsets": [0, 0]}),
    "out of order": np.dtype({"names": ["b", "a"], "formats": ["<i4", "i1"], "offsets": [4, 0]}),
    "no fields": np.dtype({"names": [], "formats": [], "itemsize": 8}),
    "empty field": np.dtype([("a", "<i4"), ("nothing", "S0")]),
    "unicode names": np.dtype([("größe", "f4"), ("名前", "S3"), ("a b'\"\\\n", "i1"), ("🐟", "?")]),
    "titles": np.dtype([(("the price", "px"), "<f8"), (("the size", "qty"), "<i4")]),
    "sub-array": np.dtype(("<f4", (3,))),
    "sub-array of two dimensions": np.dtype(("<i2", (2, 3))),
    "sub-array of one": np.dtype(("<i2", (1,))),
    "sub-array of records": np.dtype(([("a", "i1"), ("b", "<f8")], (2,))),
    "sub-array of sub-arrays": np.dtype((np.dtype(("<i2", (2,))), (3,))),
    "sub-arrays in a record": np.dtype([("m", "<f8", (2, 2)), ("v", ("<i4", (3,)))]),
}


def filled(dtype, count):
    """An array with a pattern in every byte of every field, and zeros in the gaps between them."""
    made = np.zeros(count, dtype)
    generator = np.random.default_rng(7)

    def fill(part):
        if part.dtype.names is not None:
            for name in part.dtype.names:
                fill(part[name])
        elif part.dtype.itemsize:
            values = generator.integers(1, 100, part.shape)
            part[...] = values.astype("S") if part.dtype.kind in "SV" else values.astype(part.dtype)

    fill(made)
    return made


def same(left, right):
    """Equal in every field; what lies in the gaps between fields means nothing."""
    left, right = np.asarray(left), np.asarray(right)
    return left.dtype == right.dtype and left.shape == right.shape and repr(left.tolist()) == repr(right.tolist())


@pytest.mark.parametrize("dtype", list(DTYPES.values()), ids=list(DTYPES))
class TestEveryDtype:
    def test_whoever_opens_the_queue_gets_the_same_dtype(self, dtype):
        made = BoundedQueue.create("q", 4, item=dtype)
        opened = BoundedQueue.open("q")
        assert made.item == opened.item
        assert opened.item.itemsize == opened.stats().slot_bytes == dtype.itemsize
        assert same(np.zeros(3, opened.item), np.zeros(3, dtype))
        if dtype.base.subdtype is None:  # arrays of arrays become arrays of more dimensions
            assert opened.item == dtype

    def test_the_same_dtype_is_the_same_shape_for_exist_ok(self, dtype):
        BoundedQueue.create("q", 4, item=dtype).close()
        BoundedQueue.create("q", 4, item=dtype, exist_ok=True).close()

    def test_single_items_come_out_as_they_went_in(self, dtype):
        written = filled(dtype, 6)
        with BoundedQueue.create("q", 4, item=dtype) as q:
            for item in written:
                q.put(item)
                got = q.get()
                assert same(got, item)

    def test_batches_come_out_as_they_went_in(self, dtype):
        written = filled(dtype, 7)
        with BoundedQueue.create("q", 8, item=dtype) as q:
            for _ in range(3):
                assert q.put_many(written) == 7
                got = q.get_many(8)
                assert same(got, written)


def test_a_scalar_comes_out_as_a_scalar_of_numpy():
    with BoundedQueue.create("q", 4, item="<f8") as q:
        q.put(1.5)
        assert type(q.get()) is np.float64


def test_a_record_comes_out_with_its_fields():
    with BoundedQueue.create("q", 4, item=[("a", "<i4"), ("b", "<f8")]) as q:
        q.put((3, 1.5))
        got = q.get()
        assert (got["a"], got["b"]) == (3, 1.5)
        got["a"] = 4  # it is ours
        assert got["a"] == 4


def test_a_batch_is_a_copy_of_its_own():
    with BoundedQueue.create("q", 4, item="<i8") as q:
        q.put_many([1, 2, 3])
        first = q.get_many(4)
        q.put_many([7, 8, 9, 10])
        assert first.tolist() == [1, 2, 3]
        first[:] = 0
        assert q.get_many(4).tolist() == [7, 8, 9, 10]


@given(dtype=hnp.array_dtypes(allow_subarrays=True) | hnp.nested_dtypes() | hnp.scalar_dtypes())
@settings(max_examples=150, deadline=None)
def test_any_dtype_is_described_exactly_or_refused(dtype):
    try:
        item = ItemType.of(dtype)
    except (TypeError, ValueError):
        assert dtype.hasobject or dtype.itemsize == 0
        return
    again = ItemType.from_header(item.kind, item.text)
    assert again == item
    assert again.dtype == dtype
    assert restore(describe(dtype)) == dtype


@pytest.mark.parametrize(
    ("dtype", "field"),
    [
        (np.dtype([("a", "i4"), ("b", "O")]), "field 'b'"),
        (np.dtype([("a", "i4"), ("n", [("x", "i4"), ("deep", "O")])]), "field 'n.deep'"),
        (np.dtype([("m", "O", (2, 2))]), "field 'm'"),
        (np.dtype("O"), "the dtype holds"),
        (np.dtype(("O", (3,))), "the dtype holds"),
    ],
)
def test_objects_in_records_are_refused_with_the_fields_name(dtype, field):
    with pytest.raises(TypeError, match="holds Python objects") as caught:
        BoundedQueue.create("q", 4, item=dtype)
    assert field in str(caught.value)
    assert queueduct.queues() == []


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="needs numpy 2")
def test_strings_of_varying_length_are_refused():
    """numpy keeps them in memory of the process."""
    with pytest.raises(TypeError, match="holds Python objects"):
        BoundedQueue.create("q", 4, item=np.dtypes.StringDType())


@pytest.mark.parametrize("item", ["S0", "U0", "V0", "S", "U", "V", np.dtype([]), {}, np.dtype(("i4", (0,)))])
def test_an_item_without_a_byte_is_refused(item):
    with pytest.raises(ValueError, match="at least one byte"):
        BoundedQueue.create("q", 4, item=item)


@pytest.mark.parametrize("item", [str, b"bytes", bytearray(b"x"), 5, "no dtype", "i4(", object(), [("a",)]])
def test_what_is_no_item_type_is_a_type_error(item):
    with pytest.raises(TypeError, match="item must be bytes, object or a numpy dtype"):
        BoundedQueue.create("q", 4, item=item)
    assert queueduct.queues() == []


def test_a_dtype_whose_description_is_too_long_is_refused():
    dtype = np.dtype([(f"{'x' * 1000}{i}", "i1") for i in range(1100)])
    with pytest.raises(ValueError, match="description is too long"):
        BoundedQueue.create("q", 4, item=dtype)


def test_a_dtype_of_a_thousand_fields_is_fine():
    dtype = np.dtype([(f"field{i}", "i1") for i in range(1000)])
    with BoundedQueue.create("q", 4, item=dtype), BoundedQueue.open("q") as q:
        assert q.item == dtype


def test_slot_bytes_of_records_are_the_dtypes():
    with pytest.raises(ValueError, match="slot_bytes of records is the dtype's itemsize"):
        BoundedQueue.create("q", 4, item="f8", slot_bytes=16)
    assert BoundedQueue.create("q", 4, item="f8", slot_bytes=8).stats().slot_bytes == 8


@pytest.mark.parametrize("item", ["text", None, object(), [], {"a": 1}, (1, 2, 3)])
def test_what_is_no_record_is_refused_and_nothing_is_put(item):
    with BoundedQueue.create("q", 4, item=[("a", "<i4"), ("b", "<f8")]) as q:
        for put in (q.put, q.try_put, q.put_nowait):
            with pytest.raises((TypeError, ValueError)):
                put(item)
        assert q.empty()


@pytest.mark.parametrize("form", ["record", "array", "batch"])
def test_fields_of_other_names_or_in_another_order_are_refused(form):
    """numpy assigns them by place: what was called b would arrive as a."""
    ours, theirs = np.dtype([("a", "<f8"), ("b", "<f8")]), np.dtype([("b", "<f8"), ("a", "<f8")])
    written = np.array([(1.0, 2.0)], theirs)
    with BoundedQueue.create("q", 4, item=ours) as q:
        with pytest.raises(TypeError, match="convert them with astype first"):
            {
                "record": lambda: q.put(written[0]),
                "array": lambda: q.put(written),
                "batch": lambda: q.put_many(written),
            }[form]()
        assert q.empty()


@pytest.mark.parametrize("value", [np.float64(1.9), np.array(1.9), np.array([1.9]), np.complex128(1), np.str_("1")])
def test_a_value_of_numpys_that_would_be_narrowed_is_refused(value):
    with BoundedQueue.create("q", 4, item="<i4") as q:
        with pytest.raises(TypeError, match="convert them with astype first"):
            q.put(value)
        assert q.empty()


@pytest.mark.parametrize("value", [np.int64(7), np.int8(7), np.array(7), np.bool_(True)])
def test_a_value_of_numpys_that_fits_is_put(value):
    with BoundedQueue.create("q", 4, item="<i4") as q:
        q.put(value)
        assert q.get() == int(value)


def test_a_number_that_does_not_fit_is_refused():
    with BoundedQueue.create("q", 4, item="u1") as q:
        with pytest.raises(OverflowError):
            q.put(256)
        assert q.empty()


class TestBytes:
    @pytest.fixture
    def q(self):
        with BoundedQueue.create("q", 8) as made:
            yield made

    @pytest.mark.parametrize(
        "item",
        [
            b"",
            b"\0",
            b"abc",
            bytes(64),
            bytearray(b"abc"),
            memoryview(b"abc"),
            memoryview(b"xabcx")[1:4],
            memoryview(bytearray(b"abc")).toreadonly(),
            array.array("d", [1.5, 2.5]),
            np.arange(5, dtype="<u2"),
            np.float64(1.5),
            np.zeros((2, 3), "u1"),
            np.array(7, "<i4"),
            ctypes.create_string_buffer(b"abc"),
            (ctypes.c_int * 3)(1, 2, 3),
        ],
        ids=lambda item: type(item).__name__,
    )
    def test_anything_contiguous_is_an_item(self, q, item):
        q.put(item)
        q.put_many([item])
        got = q.get()
        assert type(got) is bytes
        assert got == bytes(memoryview(item).cast("B") if memoryview(item).nbytes else b"")
        assert q.get() == got

    def test_a_subclass_of_bytes_is_an_item(self, q):
        class Tagged(bytes):
            def __len__(self):
                return 1000  # what it says of itself does not matter

        q.put(Tagged(b"abc"))
        assert q.get() == b"abc"

    def test_a_datetime_array_is_an_item(self, q):
        stamps = np.array(["2024-01-01"], "M8[us]")
        q.put(stamps)
        assert q.get() == stamps.tobytes()

    def test_a_mapping_is_an_item(self, q):
        with mmap.mmap(-1, 16) as mapped:
            mapped[:3] = b"abc"
            q.put(mapped)
        assert q.get() == b"abc" + bytes(13)

    @pytest.mark.parametrize(
        "item",
        [memoryview(b"abcdef")[::2], np.arange(6)[::2], np.asfortranarray(np.zeros((2, 3))), memoryview(b"ab")[::-1]],
        ids=["memoryview", "numpy", "fortran", "reversed"],
    )
    def test_a_buffer_with_gaps_is_refused(self, q, item):
        with pytest.raises(TypeError, match="contiguous buffer"):
            q.put(item)
        with pytest.raises(TypeError, match="contiguous buffer"):
            q.put_many([b"a", item])
        assert q.empty()

    @pytest.mark.parametrize("item", [5, None, 1.5, [1], (b"a",), object(), {b"a"}])
    def test_what_has_no_bytes_is_refused_with_the_remedy(self, q, item):
        with pytest.raises(TypeError, match="create the queue with item=object"):
            q.put(item)

    def test_text_is_refused_with_the_remedy(self, q):
        class Text(str):
            pass

        for item in ("text", "", Text("text")):
            with pytest.raises(TypeError, match="takes bytes, not str: encode it first"):
                q.put(item)

    def test_an_array_of_objects_is_refused(self, q):
        """Its bytes are addresses."""
        with pytest.raises(TypeError, match="Python objects"):
            q.put(np.array([object()]))
        with pytest.raises(TypeError, match="Python objects"):
            q.put_many([np.array([(1, None)], dtype=[("a", "i4"), ("b", "O")])])
        assert q.empty()

    def test_a_released_buffer_is_refused(self, q):
        view = memoryview(b"abc")
        view.release()
        with pytest.raises(TypeError, match="contiguous buffer"):
            q.put(view)

    def test_a_lent_buffer_is_given_back(self, q):
        item = bytearray(b"abc")
        q.put(item)
        with pytest.raises(ValueError, match="can never fit"):
            q.put(bytearray(10_000))
        item.append(1)  # fails while it is lent
        q.put_many([item])
        item.append(2)

    def test_what_comes_out_does_not_follow_what_went_in(self, q):
        item = bytearray(b"abc")
        q.put(item)
        item[:] = b"xyz"
        assert q.get() == b"abc"


class TestObjects:
    @pytest.fixture
    def q(self):
        with BoundedQueue.create("q", 64, item=object) as made:
            yield made

    @pytest.mark.parametrize(
        "item", [None, 0, "text", b"bytes", [1, [2]], {"a": (1, 2)}, {1, 2}, 1.5, 10**50, Exception, np.float64(1)]
    )
    def test_anything_that_pickles_comes_out_equal(self, q, item):
        q.put(item)
        q.put_many([item, item])
        assert q.get() == item
        assert q.get_many(5) == [item, item]

    def test_what_does_not_pickle_is_refused_and_nothing_is_put(self, q):
        with pytest.raises((TypeError, AttributeError)):
            q.put(i for i in range(3))
        with pytest.raises((TypeError, AttributeError)):
            q.put_many([1, (i for i in range(3))])
        assert q.empty()

    def test_an_opener_can_refuse_to_unpickle(self, q):
        for opener in (BoundedQueue.open, queueduct.open):
            with pytest.raises(ValueError, match="unpickling runs code"):
                opener("q", allow_pickle=False)
        assert BoundedQueue.open("q", allow_pickle=True).item is object

    def test_other_queues_need_no_pickle(self):
        BoundedQueue.create("plain", 4).close()
        assert BoundedQueue.open("plain", allow_pickle=False).item is bytes
