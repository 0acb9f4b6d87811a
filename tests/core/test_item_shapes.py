"""Records in another shape or dtype: taken as they are, or refused; never reshaped, never changed in silence."""

from __future__ import annotations

import numpy as np
import pytest

from queueduct import BoundedQueue
from tests.support.kinds import CLASSES
from tests.support.reading import reader_of


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("<i4", np.int64(2**31)),
        ("<i4", np.array(-(2**40))),
        ("<i8", np.uint64(2**63)),
        ("S3", np.array(b"abcd")),
        ("M8[D]", np.datetime64("2024-01-01T12")),
        ("<f4", np.float64(1e300)),
        ([("a", "i1"), ("b", "<f8")], np.array((300, 1.0), [("a", "<i4"), ("b", "<f8")])),
    ],
)
def test_a_value_of_numpys_that_would_be_changed_is_refused(dtype, value):
    with BoundedQueue.create("q", 4, item=dtype) as q:
        with pytest.raises(ValueError, match=r"must come through unchanged.*convert them with astype first"):
            q.put(value)
        with pytest.raises(ValueError, match="must come through unchanged"):
            q.put_many(np.array([value]))
        assert q.empty()


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("<i8", np.uint64(7)),
        ("S3", np.array(b"abc", "S9")),
        ("M8[D]", np.datetime64("2024-01-01T00")),
        ("M8[D]", np.datetime64("NaT", "us")),
        ("<f4", np.float64(np.inf)),
        ([("a", "i1"), ("b", "<f4")], np.array((30, np.nan), [("a", "<i4"), ("b", "<f8")])),
    ],
)
def test_a_value_of_another_dtype_that_comes_through_unchanged_is_put(dtype, value):
    with BoundedQueue.create("q", 4, item=dtype) as q:
        q.put(value)
        assert repr(q.get().astype(value.dtype).tolist()) == repr(value.tolist())


@pytest.mark.parametrize("value", [0.1, np.float64(0.1), np.array(0.1), np.longdouble("0.1")])
def test_a_float_is_rounded_to_the_queues_precision_wherever_it_comes_from(value):
    with BoundedQueue.create("q", 4, item="<f4") as q:
        q.put(value)
        assert q.get() == np.float32(0.1)


def test_fields_of_other_names_further_in_are_refused():
    ours = np.dtype([("at", [("x", "<f4"), ("y", "<f4")])])
    theirs = np.dtype([("at", [("y", "<f4"), ("x", "<f4")])])
    with BoundedQueue.create("q", 4, item=ours) as q:
        with pytest.raises(TypeError, match="convert them with astype first"):
            q.put_many(np.zeros(2, theirs))
        assert q.empty()


FRAME = np.dtype(("<f4", (2, 3)))
NO_FRAMES = {
    "transposed": np.arange(6, dtype="<f4").reshape(3, 2),
    "flat": np.arange(6, dtype="<f4"),
    "one too many dimensions": np.zeros((1, 2, 3), "<f4"),
    "a flat list": [0, 1, 2, 3, 4, 5],
    "a transposed list": [[0, 1], [2, 3], [4, 5]],
    "a number": 1.5,
}
NO_BATCHES = {
    "transposed frames": np.zeros((5, 3, 2), "<f4"),
    "one frame": np.zeros((2, 3), "<f4"),
    "flat": np.arange(12, dtype="<f4"),
    "no frames of another shape": np.zeros((0, 3, 2), "<f4"),
    "a list of transposed frames": [np.zeros((3, 2), "<f4")] * 2,
    "a number": np.float32(1.5),
}


@pytest.mark.parametrize("kind", CLASSES)
class TestShapes:
    @pytest.fixture
    def q(self, kind):
        with CLASSES[kind].create("q", item=FRAME) as made:
            yield made

    @pytest.mark.parametrize("given", list(NO_FRAMES))
    def test_an_item_of_another_shape_is_refused_and_nothing_is_put(self, q, given):
        for put in (q.put, q.try_put, q.put_nowait):
            with pytest.raises(ValueError, match=r"put takes one item, of shape \(2, 3\): shape=.*; reshape it"):
                put(NO_FRAMES[given])
        assert q.empty()

    @pytest.mark.parametrize("given", list(NO_BATCHES))
    def test_a_batch_of_another_shape_is_refused_and_nothing_is_put(self, q, given):
        puts = [q.put_many]
        if hasattr(q, "put_once"):
            puts.append(lambda items: q.put_once(items, "me", 1))
        for put in puts:
            with pytest.raises(ValueError, match=r"items of shape \(n, 2, 3\): shape=.*; reshape them"):
                put(NO_BATCHES[given])
        assert q.empty()

    def test_items_and_batches_of_its_shape_come_out_as_they_went_in(self, q):
        reader = reader_of(q)
        frames = np.arange(30, dtype="<f4").reshape(5, 2, 3)
        for frame in (frames[0], frames[0].astype(">f4"), np.asfortranarray(frames[0]), frames[0].tolist()):
            q.put(frame)
            assert (reader.get() == frames[0]).all()
        for batch in (frames, list(frames), tuple(frames), frames.tolist(), iter(frames), frames[::-1][::-1]):
            assert q.put_many(batch) == 5
            assert (reader.get_many(9) == frames).all()

    @pytest.mark.parametrize("given", [[], (), np.zeros((0, 2, 3), "<f4"), np.zeros(0, "<f4")])
    def test_an_empty_batch_puts_nothing(self, q, given):
        assert q.put_many(given) == 0
        assert q.empty()


@pytest.mark.parametrize("given", [np.array([7]), np.array([[7]]), [7]])
def test_a_number_is_no_array_of_one(given):
    with BoundedQueue.create("q", 4, item="<i8") as q:
        with pytest.raises(ValueError, match=r"put takes one item, of shape \(\): shape=.*use put_many for several"):
            q.put(given)
        assert q.empty()
