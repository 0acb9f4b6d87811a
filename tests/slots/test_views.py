"""Arrays and memoryviews on a slot itself, and when they end."""

from __future__ import annotations

import contextlib
import copy
import gc
import pickle

import numpy as np
import pytest

from queueduct import SlotQueue
from tests.slots.lent import FRAME, counts

READS = {
    "an element": lambda a: a[0],
    "a slice": lambda a: a[1:],
    "a sum": lambda a: a.sum(),
    "numpy's sum": lambda a: np.sum(a),
    "an operator": lambda a: a + 1,
    "a comparison": lambda a: a == 1,
    "a loop": lambda a: list(a),
    "a copy": lambda a: a.copy(),
    "bytes": lambda a: a.tobytes(),
    "a list": lambda a: a.tolist(),
    "a transposed one": lambda a: a.T,
    "a view": lambda a: a.view("u4"),
    "a reshaped one": lambda a: a.reshape(-1),
    "a stack": lambda a: np.stack([a, a]),
    "its address": lambda a: a.ctypes.data,
    "its interface": lambda a: a.__array_interface__,
    "a pickle": lambda a: pickle.dumps(a),
    "a sort": lambda a: np.sort(a),
    "its data": lambda a: a.data,
    "what it lies on": lambda a: a.base,
    "a copy by the module copy": lambda a: copy.copy(a),
    "a deep copy": lambda a: copy.deepcopy(a),
    "a deep copy of what holds it": lambda a: copy.deepcopy({"frame": a}),
}
WRITES = {
    "an element": lambda a: a.__setitem__(0, 1),
    "all of it": lambda a: a.__setitem__(..., 1),
    "in place": lambda a: a.__iadd__(1),
    "numpy's add": lambda a: np.add(a, 1, out=a),
    "numpy's copyto": lambda a: np.copyto(a, 1),
    "a fill": lambda a: a.fill(1),
    "a sort": lambda a: a.sort(),
    "a put": lambda a: a.put(0, 1),
}


@pytest.mark.parametrize("use", list(READS))
@pytest.mark.parametrize("of", ["the array", "a part of it"])
def test_an_array_read_after_its_slot_raises(frames, use, of):
    with frames.loan() as slot:
        loaned = slot.array if of == "the array" else slot.array[1:3]
    with frames.take() as slot:
        taken = slot.array if of == "the array" else slot.array[1:3]
        READS[use](taken)
    for array in (loaned, taken):
        with pytest.raises(ValueError, match="this view is no longer valid: its slot was given back"):
            READS[use](array)
        assert "no longer valid" in repr(array)


@pytest.mark.parametrize("use", list(WRITES))
def test_an_array_written_after_its_slot_raises(frames, use):
    with frames.loan() as slot:
        array = slot.array
        WRITES[use](array)
        slot.array[...] = 5
    with pytest.raises(ValueError, match="this view is no longer valid"):
        WRITES[use](array)
    assert (frames.get() == 5).all()


@pytest.mark.parametrize("use", list(WRITES))
def test_a_taken_array_is_read_only(frames, use):
    frames.put(np.zeros((4, 6), "f4"))
    with frames.take() as slot:
        with pytest.raises(ValueError, match=r"read-only|not writeable|WRITEABLE"):
            WRITES[use](slot.array)
        with pytest.raises(ValueError, match="WRITEABLE"):
            slot.array.flags.writeable = True
        assert (np.asarray(slot.array) == 0).all()


def test_a_taken_memoryview_is_read_only(blobs):
    blobs.put(b"abc")
    with blobs.take() as slot:
        assert slot.view.readonly
        with pytest.raises(TypeError, match="read-only"):
            slot.view[0] = 1
        with pytest.raises((TypeError, BufferError, ValueError)):
            np.frombuffer(slot.view, "u1").flags.writeable = True


def test_a_memoryview_used_after_its_slot_raises(blobs):
    with blobs.loan(length=4) as slot:
        loaned = slot.view
        loaned[:] = b"abcd"
    with blobs.take() as slot:
        taken = slot.view
    for view in (loaned, taken):
        for work in (lambda v: v[0], bytes, lambda v: v[1:], len, lambda v: v.tobytes()):
            with pytest.raises(ValueError, match="released memoryview"):
                work(view)


def test_a_slot_stays_ours_as_long_as_a_part_of_its_memoryview_is_in_use(blobs):
    blobs.put(b"abcd")
    slot = blobs.take()
    part = slot.view[1:3]
    with pytest.raises(BufferError, match="is still in use"):
        slot.release()
    assert counts(blobs) == (2, 0, 0, 1)
    assert part == b"bc"
    part.release()
    slot.release()
    assert counts(blobs) == (3, 0, 0, 0)


def test_a_slot_is_not_published_as_long_as_somebody_can_write_into_it(blobs):
    with contextlib.ExitStack() as stack:
        slot = stack.enter_context(blobs.loan(length=4))
        array = np.frombuffer(slot.view, "u1")
        with pytest.raises(BufferError, match="is still in use"):
            slot.publish()
        assert blobs.qsize() == 0
        del array
    assert blobs.qsize() == 1


@pytest.mark.parametrize("what", ["loan", "take"])
def test_an_exception_is_not_hidden_by_a_view_that_is_still_in_use(blobs, what):
    blobs.put(b"1")
    kept = []

    def fail():
        with getattr(blobs, what)() as slot:
            kept.append(np.frombuffer(slot.view, "u1"))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert counts(blobs) == ((1, 1, 1, 0) if what == "loan" else (2, 0, 0, 1))
    kept.clear()
    assert counts(blobs) == (2, 0, 1, 0)


def test_a_loan_that_is_dropped_is_not_published(frames):
    slot = frames.loan()
    slot.array[...] = 1
    del slot
    gc.collect()
    assert counts(frames) == (3, 0, 0, 0)


def test_a_taken_slot_that_is_dropped_is_delivered_again(blobs):
    blobs.put(b"1")
    slot = blobs.take()
    del slot
    gc.collect()
    with blobs.take(0) as slot:
        assert slot.is_redelivered


def test_a_slot_stays_ours_as_long_as_its_array_is_kept(blobs):
    blobs.put(b"1")
    array = blobs.take().array
    gc.collect()
    assert counts(blobs) == (2, 0, 0, 1)
    assert array.tobytes() == b"1"
    del array
    gc.collect()
    assert counts(blobs) == (2, 0, 1, 0)


def test_a_plain_array_outlives_the_handle_and_the_queue():
    q = SlotQueue.create("gone", 2, item=FRAME)
    q.put(np.full((4, 6), 3, "f4"))
    with q.take() as slot:
        plain = np.asarray(slot.array)
    q.close()
    q.unlink()
    del q, slot
    gc.collect()
    assert plain.sum() == 72


PAST_THE_CHECK = [
    np.array,
    np.asarray,
    lambda a: np.frombuffer(bytes(a), "f4"),
    lambda a: np.frombuffer(bytearray(a), "f4"),
    lambda a: np.asarray(memoryview(a)),
    lambda a: [float(each) for each in np.nditer(a)],
    lambda a: np.lib.stride_tricks.as_strided(a, (2, 2), (4, 4)),
    np.vectorize(float),
]


def test_what_reads_past_the_check_never_crashes():
    """As documented: it may see a later frame. It must not see freed memory."""
    q = SlotQueue.create("past", 1, item=FRAME)
    q.put(np.full((4, 6), 3, "f4"))
    with q.take() as slot:
        array = slot.array
    q.put(np.full((4, 6), 4, "f4"))
    q.close()
    q.unlink()
    del q, slot
    gc.collect()
    for use in PAST_THE_CHECK:
        assert set(np.ravel(use(array)).tolist()) <= {3.0, 4.0}


def test_a_plain_array_of_a_loan_does_not_hold_up_its_publishing(frames):
    """As documented: who has one can write into what others read."""
    with frames.loan() as slot:
        slot.array[...] = 1
        plain = np.asarray(slot.array)
    plain[0] = 2
    assert frames.get()[0].tolist() == [2] * 6
