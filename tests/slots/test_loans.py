"""loan() and take(): slots that are filled and read where they are, and how they are given back."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest

import queueduct
from queueduct import Empty, Full, QueueClosed, ShutDown, SlotQueue
from tests.slots.lent import counts


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
        assert (slot.copy(), slot.position, slot.is_redelivered) == (b"1", 0, True)
    with blobs.take() as slot:
        assert (slot.copy(), slot.position, slot.is_redelivered) == (b"2", 1, False)
    assert blobs.stats().redelivered == 1


def test_what_was_given_back_comes_first_and_in_order(blobs):
    blobs.put_many([b"1", b"2", b"3"])
    first, second = blobs.take(), blobs.take()
    second.give_back()
    first.give_back()
    assert blobs.qsize() == 3
    assert blobs.get_many(9) == [b"1", b"2", b"3"]


def test_a_lease_can_be_ended_by_hand_and_once_only(blobs):
    slot = blobs.loan()
    slot.publish(length=0)
    taken = blobs.take()
    taken.release()
    for work in (slot.publish, slot.cancel, taken.release, taken.give_back, taken.copy, lambda: taken.view):
        with pytest.raises(ValueError, match="given back already"):
            work()
    with pytest.raises(ValueError, match="given back already"), slot:
        pass
    assert slot.closed
    assert counts(blobs) == (3, 0, 0, 0)


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
    assert blobs.stats().puts == 10


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
    for kind in (queueduct.LoanedSlot, queueduct.TakenSlot):
        with pytest.raises(TypeError, match=re.escape("a slot is lent by SlotQueue.loan() or SlotQueue.take()")):
            kind()
    with pytest.raises(TypeError, match="a slot cannot be pickled"), frames.loan() as slot:
        pickle.dumps(slot)
