"""loan() and take(): arrays and memoryviews on the slot itself, and when they end."""

from __future__ import annotations

import contextlib
import copy
import gc
import pickle
import re

import numpy as np
import pytest

import penstock
from penstock import Empty, Full, QueueClosed, ShutDown, SlotQueue

FRAME = np.dtype(("f4", (4, 6)))


@pytest.fixture
def frames():
    with SlotQueue.create("frames", 3, item=FRAME) as q:
        yield q


@pytest.fixture
def blobs():
    with SlotQueue.create("blobs", 3, slot_bytes=100) as q:
        yield q


def counts(q):
    stats = q.stats()
    assert stats.free + stats.loaned + stats.queued + stats.taken == stats.slots
    return stats.free, stats.loaned, stats.queued, stats.taken


def test_a_frame_goes_through_without_a_copy(frames):
    with frames.loan() as slot:
        slot.array[...] = np.arange(24).reshape(4, 6)
        place = slot.index, slot.array.__array_interface__["data"][0]
    with frames.take() as slot:
        assert slot.array.shape == (4, 6)
        assert slot.array.dtype == np.float32
        assert (np.asarray(slot.array) == np.arange(24).reshape(4, 6)).all()
        assert (slot.index, slot.array.__array_interface__["data"][0]) == place


def test_a_large_frame_works():
    with SlotQueue.create("large", 2, item=np.dtype(("f4", (1080, 1920)))) as q:
        with q.loan() as slot:
            assert slot.array.shape == (1080, 1920)
            slot.array[:] = 1
            slot.array[7, 9] = 2
        with q.take() as slot:
            assert slot.array[7, 9] == 2
            assert slot.array.sum() == 1080 * 1920 + 1
        q.put(np.zeros((1080, 1920), "f4"))
        assert q.get().shape == (1080, 1920)


def test_a_record_is_an_array_without_dimensions():
    with SlotQueue.create("records", 2, item=np.dtype([("id", "u4"), ("price", "f8")])) as q:
        with q.loan() as slot:
            slot.array["id"] = 7
            slot.array["price"] = 1.5
        assert q.get().tolist() == (7, 1.5)


def test_bytes_are_seen_as_a_memoryview_and_as_an_array_of_bytes(blobs):
    with blobs.loan(length=5) as slot:
        assert len(slot) == len(slot.view) == len(slot.array) == 5
        slot.view[:] = b"hello"
        slot.array[0] = ord("j")
    with blobs.take() as slot:
        assert slot.view == b"jello"
        assert slot.array.dtype == np.uint8
        assert bytes(slot.view) == slot.copy() == b"jello"


def test_a_loan_is_as_long_as_it_is_published(blobs):
    with blobs.loan() as slot:
        assert len(slot) == 100
        slot.view[:3] = b"abc"
        slot.publish(length=3)
    assert blobs.get() == b"abc"
    with blobs.loan():
        pass
    assert len(blobs.get()) == 100
    with blobs.loan(length=0):
        pass
    assert blobs.get() == b""


@pytest.mark.parametrize("length", [-1, 101])
def test_a_length_that_does_not_fit_is_refused_and_the_slot_kept(blobs, length):
    with pytest.raises(ValueError, match=r"length must not be negative|an item of 101 bytes does not fit into a slot"):
        blobs.loan(length=length)
    assert counts(blobs) == (3, 0, 0, 0)
    with blobs.loan() as slot:
        with pytest.raises(ValueError, match="length must be between 0 and the slot's 100 bytes"):
            slot.publish(length=length)
        assert not slot.closed
        slot.cancel()
    assert counts(blobs) == (3, 0, 0, 0)


def test_a_record_has_no_other_length(frames):
    with pytest.raises(ValueError, match="a record has the length of its dtype"):
        frames.loan(length=3)
    with frames.loan() as slot, pytest.raises(ValueError, match="a record has the length of its dtype"):
        slot.publish(length=3)


def test_where_a_slot_is_can_be_seen(frames):
    assert counts(frames) == (3, 0, 0, 0)
    with frames.loan():
        assert counts(frames) == (2, 1, 0, 0)
        assert frames.qsize() == 0
    assert counts(frames) == (2, 0, 1, 0)
    with frames.take():
        assert counts(frames) == (2, 0, 0, 1)
        assert frames.qsize() == 0
    assert counts(frames) == (3, 0, 0, 0)


def test_an_exception_inside_a_loan_gives_the_slot_back_unpublished(frames):
    def fill_half_of_it():
        with frames.loan() as slot:
            slot.array[:2] = 1
            raise KeyError

    with pytest.raises(KeyError):
        fill_half_of_it()
    assert counts(frames) == (3, 0, 0, 0)
    assert frames.qsize() == 0


def test_an_exception_inside_a_take_gives_the_item_to_another(blobs):
    blobs.put_many([b"1", b"2"])
    with pytest.raises(KeyError), blobs.take() as slot:
        raise KeyError
    assert counts(blobs) == (1, 0, 2, 0)
    with blobs.take() as slot:
        assert (slot.copy(), slot.position, slot.redelivered) == (b"1", 0, True)
    with blobs.take() as slot:
        assert (slot.copy(), slot.position, slot.redelivered) == (b"2", 1, False)
    assert blobs.stats().redelivered == 1


def test_what_was_put_back_comes_first_and_in_order(blobs):
    blobs.put_many([b"1", b"2", b"3"])
    first, second = blobs.take(), blobs.take()
    second.put_back()
    first.put_back()
    assert blobs.qsize() == 3
    assert blobs.get_many(9) == [b"1", b"2", b"3"]


def test_a_lease_can_be_ended_by_hand_and_once_only(blobs):
    slot = blobs.loan()
    slot.publish(length=0)
    taken = blobs.take()
    taken.release()
    for work in (slot.publish, slot.cancel, taken.release, taken.put_back, taken.copy, lambda: taken.view):
        with pytest.raises(ValueError, match="given back already"):
            work()
    with pytest.raises(ValueError, match="given back already"), slot:
        pass
    assert slot.closed
    assert counts(blobs) == (3, 0, 0, 0)


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
        assert slot.redelivered


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


def test_there_are_as_many_loans_as_slots(frames):
    slots = [frames.loan() for _ in range(3)]
    assert sorted(slot.index for slot in slots) == [0, 1, 2]
    with pytest.raises(Full):
        frames.loan(timeout=0)
    with pytest.raises(Full):
        frames.loan(0.01)
    slots[1].cancel()
    with frames.loan(0) as slot:
        assert slot.index == slots[1].index


def test_take_from_an_empty_queue_waits_for_its_time(frames):
    with pytest.raises(Empty):
        frames.take(timeout=0)
    with pytest.raises(Empty):
        frames.take(0.01)
    with pytest.raises(ValueError, match="timeout must be a non-negative number"):
        frames.take(-1)


def test_positions_count_what_was_published(blobs):
    for i in range(10):
        blobs.loan().cancel()  # is no item
        blobs.put(b"%d" % i)
        with blobs.take() as slot:
            assert slot.position == i
    assert blobs.stats().published == 10


def test_a_loan_of_objects_is_refused_and_a_take_shows_the_pickle():
    with SlotQueue.create("objects", 2, item=object) as q:
        with pytest.raises(TypeError, match="a slot of pickled objects cannot be filled in place"):
            q.loan()
        q.put({"a": 1})
        with q.take() as slot:
            assert pickle.loads(slot.view) == slot.copy() == {"a": 1}


def test_a_loan_that_is_published_after_a_shutdown_raises_and_the_slot_is_free(frames):
    slot = frames.loan()
    frames.shutdown()
    with pytest.raises(ShutDown):
        slot.publish()
    with pytest.raises(ShutDown):
        frames.loan()
    with pytest.raises(ShutDown):
        frames.take()
    assert counts(frames) == (3, 0, 0, 0)


def test_slots_outlive_a_close_of_their_handle():
    q = SlotQueue.create("closed", 3)
    q.put(b"1")
    loaned, taken = q.loan(), q.take()
    other = SlotQueue.open("closed")
    q.close()
    assert taken.view == b"1"
    taken.release()
    with pytest.raises(QueueClosed):
        loaned.publish()
    assert counts(other) == (3, 0, 0, 0)
    other.close()


def test_a_slot_has_no_constructor_and_no_pickle(frames):
    for kind in (penstock.LoanedSlot, penstock.TakenSlot):
        with pytest.raises(TypeError, match=re.escape("a slot is lent by SlotQueue.loan() or SlotQueue.take()")):
            kind()
    with pytest.raises(TypeError, match="a slot cannot be pickled"), frames.loan() as slot:
        pickle.dumps(slot)
