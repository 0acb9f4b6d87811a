"""Leases: claimed, kept, released or given back; delivered again at the same positions when their holder dies."""

import copy
import gc
import os
import pickle
import signal

import numpy as np
import pytest

import queueduct
from tests.support.kinds import CLASSES

RECORD = np.dtype([("number", "i8"), ("half", "f4")])


# How a number becomes an item, and back; and what a queue of them is made with.
BYTES = (lambda n: b"%d" % n, int, {"item": bytes})
LONG_BYTES = (lambda n: b"%0*d" % (1 + n % 90, n), int, {"item": bytes, "slot_bytes": 16})
FULL_BYTES = (lambda n: b"%064d" % n, int, {"item": bytes})
RECORDS = (lambda n: (n, n / 2), lambda item: int(item["number"]), {"item": RECORD})
OBJECTS = (lambda n: {"n": n}, lambda item: item["n"], {"item": object})

ALL = {"bytes": BYTES, "long bytes": LONG_BYTES, "records": RECORDS, "objects": OBJECTS}
FORMS = {
    "bounded": ALL,
    "growing": ALL,
    "slots": {**ALL, "long bytes": (*LONG_BYTES[:2], {"item": bytes, "slot_bytes": 128})},  # one slot for each
    "overwriting": {"bytes": FULL_BYTES, "records": RECORDS, "objects": OBJECTS},
}
SIZES = {"growing": {}}


def make(kind, name, form, **options):
    """A queue of 64 items, where that can be chosen."""
    return CLASSES[kind].create(name, **SIZES.get(kind, {"capacity": 64}), **form[2], **options)


@pytest.fixture(params=[f"{kind} {form}" for kind, forms in FORMS.items() for form in forms])
def made(request):
    """A kind and a form of items."""
    kind, form = request.param.split(" ", 1)
    return kind, FORMS[kind][form]


@pytest.fixture
def form(made):
    return made[1]


@pytest.fixture
def queue(made):
    with make(made[0], "jobs", made[1]) as queue:
        yield queue


def put(queue, form, *numbers):
    for number in numbers:
        queue.put(form[0](number))


def numbers_of(lease, form):
    return [form[1](item) for item in lease.items]


def count_redelivered(queue):
    return queue.stats().redelivered


def test_a_lease_has_items_and_positions_and_is_released_at_its_end(queue, form):
    put(queue, form, 1, 2, 3)
    with queue.lease(2) as lease:
        assert numbers_of(lease, form) == [1, 2]
        assert lease.positions.dtype == np.int64
        assert lease.positions[0] == 0
        assert np.all(np.diff(lease.positions) > 0)
        assert (len(lease), lease.is_held, lease.is_redelivered) == (2, True, False)
        assert list(queue.unreleased(lease.positions)) == lease.positions.tolist()
    assert not lease.is_held
    assert queue.unreleased(lease.positions) == []
    with queue.lease(100) as lease:
        assert numbers_of(lease, form) == [3]
    assert queue.empty()
    with pytest.raises(queueduct.Empty):
        queue.lease(1, block=False)


def test_what_an_exception_leaves_is_delivered_again_at_the_same_positions(queue, form):
    put(queue, form, *range(5))
    with pytest.raises(ZeroDivisionError), queue.lease(3) as first:
        _ = 1 // 0
    with queue.lease(100) as again:
        assert again.is_redelivered
        assert numbers_of(again, form) == [0, 1, 2]
        assert again.positions.tolist() == first.positions.tolist()
    with queue.lease(100) as rest:
        assert numbers_of(rest, form) == [3, 4]
    assert count_redelivered(queue) == 3


def test_of_a_lease_only_what_was_released_is_done_with(queue, form):
    put(queue, form, *range(6))
    first = queue.lease(5)
    first.release(2)
    with queue.lease(2) as again:
        assert numbers_of(again, form) == [2, 3]
        again.release(1)
    found = []
    while not queue.empty() or queue.unreleased(first.positions):
        with queue.lease(100, timeout=10) as lease:
            found += numbers_of(lease, form)
    assert sorted(found) == [3, 4, 5]


def test_a_lease_that_is_forgotten_is_given_back(queue, form):
    put(queue, form, 7)
    lease = queue.lease(1)
    del lease
    gc.collect()
    assert form[1](queue.get(timeout=10)) == 7


def test_the_holders_threads_use_the_queue_meanwhile(queue, form):
    put(queue, form, 1, 2)
    with queue.lease(1) as lease:
        assert form[1](queue.get()) == 2
        put(queue, form, 3)
        with queue.lease(1) as other:
            assert numbers_of(other, form) == [3]
        assert numbers_of(lease, form) == [1]
        assert count_redelivered(queue) == 0


def test_slots_that_are_held_make_producers_of_a_ring_wait_and_nobody_else():
    with queueduct.BoundedQueue.create("small", 4, item="i8") as small:
        small.put_many(range(4))
        lease = small.lease(1)
        assert small.get_many(10).tolist() == [1, 2, 3]
        assert not small.try_put(4)
        lease.release()
        assert small.put_many(range(4, 8)) == 4


def test_slots_that_are_held_are_missed_by_producers_and_no_other():
    with queueduct.SlotQueue.create("small", 4, item="i8") as small:
        small.put_many(range(4))
        lease = small.lease(1)
        assert small.get_many(10).tolist() == [1, 2, 3]
        assert small.put_many(range(4, 8), block=False) == 3
        assert not small.try_put(7)
        lease.release()
        assert small.try_put(7)


def test_shutdown_ends_leases_as_it_ends_gets(queue, form):
    put(queue, form, 1, 2)
    held = queue.lease(1)
    queue.shutdown()
    with queue.lease(1) as lease:
        assert numbers_of(lease, form) == [2]
    with pytest.raises(queueduct.ShutDown):
        queue.lease(1)
    held.give_back()
    with queue.lease(1) as lease:
        assert numbers_of(lease, form) == [1]
    with pytest.raises(queueduct.ShutDown):
        queue.lease(1)


def test_a_lease_waits_for_the_first_item_only(queue, form):
    with pytest.raises(queueduct.Empty):
        queue.lease(1, timeout=0.01)
    put(queue, form, 1)
    with queue.lease(1000, timeout=10) as lease:
        assert len(lease) == 1


def test_what_cannot_be_is_refused(queue, form):
    put(queue, form, 1)
    with pytest.raises(ValueError, match="max_items must be at least 1"):
        queue.lease(0)
    lease = queue.lease(1)
    with pytest.raises(ValueError, match="between 0 and the lease's 1 items: count=2"):
        lease.release(2)
    lease.release()
    with pytest.raises(ValueError, match="is over"):
        lease.release()


@pytest.mark.parametrize("kind", [queueduct.BoundedQueue, queueduct.GrowingQueue])
def test_a_queue_without_a_name_has_no_leases(kind):
    with pytest.raises(ValueError, match="without a name has no leases"):
        kind().lease(1)


def test_every_line_of_the_table_comes_back(made):
    kind, form = made
    with make(kind, "narrow", form, participants=2) as narrow:
        for number in range(20):
            put(narrow, form, number)
            with narrow.lease(1) as lease:
                if number % 2:
                    lease.give_back()
            if number % 2:
                narrow.lease(1).release()


def test_a_lease_of_a_ring_has_a_line_of_the_table_to_itself():
    with queueduct.BoundedQueue.create("narrow", 64, participants=2) as narrow:
        narrow.put_many([b"a", b"b"])
        held = narrow.lease(1)
        with pytest.raises(queueduct.TooManyParticipants):
            narrow.lease(1, block=False)
        held.release()


def test_a_fork_does_not_share_a_lease(queue, form):
    put(queue, form, 1)
    lease = queue.lease(1)
    child = os.fork()
    if child == 0:
        try:
            lease.release()
        except queueduct.QueueClosed as error:
            os._exit(0 if "another process" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert lease.is_held
    assert list(queue.unreleased(lease.positions)) == lease.positions.tolist()
    lease.release()


@pytest.mark.parametrize("released", [0, 1, 3, 4])
def test_what_a_killed_holder_had_goes_to_the_next_at_the_same_positions(queue, form, released):
    put(queue, form, *range(6))
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        lease = queue.lease(4)
        os.write(tell, lease.positions.tobytes())
        if released:
            lease._holding.release(released)  # and killed before it returns to its caller
        os.kill(os.getpid(), signal.SIGKILL)
    positions = np.frombuffer(os.read(told, 32), np.int64)
    os.waitpid(child, 0)
    os.close(told)
    os.close(tell)
    found = {}
    while not queue.empty() or queue.unreleased(positions):
        with queue.lease(100, timeout=10) as lease:
            found |= dict(zip(lease.positions.tolist(), numbers_of(lease, form), strict=True))
            assert lease.is_redelivered == (lease.positions[0] <= positions[-1])
    assert sorted(found.values()) == list(range(released, 6))
    assert list(found)[: 4 - released] == positions[released:].tolist()


def test_a_lease_says_how_often_each_item_was_delivered(queue, form):
    """A holder that gave it back counts, and one that was killed."""
    put(queue, form, 1, 2, 3)
    lease = queue.lease(3)
    assert (lease.deliveries.dtype, lease.deliveries.tolist()) == (np.int64, [1, 1, 1])
    lease.release(1)
    lease = queue.lease(3)
    assert lease.deliveries.tolist() == [2, 2]
    lease.give_back()
    child = os.fork()
    if child == 0:
        lease = queue.lease(3)
        if lease.deliveries.tolist() == [3, 3]:
            os.kill(os.getpid(), signal.SIGKILL)
        os._exit(1)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    put(queue, form, 4)
    with queue.lease(3, timeout=30) as lease:
        assert lease.deliveries.tolist() == [4, 4]
    with queue.lease(3) as lease:
        assert lease.deliveries.tolist() == [1]


def test_a_taken_slot_says_how_often_its_item_was_delivered():
    with queueduct.SlotQueue.create("jobs", 2, slot_bytes=8) as queue:
        for _ in range(3):  # what was in the slot before does not count
            queue.put(b"job")
            for expected in range(1, 4):
                slot = queue.take()
                assert (slot.deliveries, slot.is_redelivered) == (expected, expected > 1)
                slot.give_back()
            lease = queue.lease(1)
            assert lease.deliveries.tolist() == [4]
            lease.give_back()
            assert queue.get() == b"job"


@pytest.mark.parametrize("capacity", [1, 3])
def test_a_count_of_deliveries_that_is_too_large_for_its_word_is_never_small_again(capacity):
    with queueduct.BoundedQueue.create("jobs", capacity) as queue:
        queue.put(b"poison")
        for expected in range(1, 16385):
            lease = queue.lease(1)
            assert lease.deliveries[0] == expected
            lease.give_back()
        for _ in range(100):
            lease = queue.lease(1)
            assert lease.deliveries[0] >= 8193
            lease.give_back()


def test_a_holder_that_is_stopped_keeps_what_it_has(queue, form):
    put(queue, form, 1, 2)
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        held = queue.lease(1)
        os.write(tell, b"%d" % len(held))
        signal.pause()
    try:
        assert os.read(told, 1) == b"1"
        os.kill(child, signal.SIGSTOP)
        with queue.lease(2, timeout=10) as lease:
            assert numbers_of(lease, form) == [2]
        with pytest.raises(queueduct.Empty):
            queue.lease(1, timeout=0.3)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with queue.lease(1, timeout=10) as lease:
        assert numbers_of(lease, form) == [1]


@pytest.mark.parametrize("kind", FORMS)
class TestWhatMakesNoSense:
    @pytest.fixture
    def queue(self, kind):
        with CLASSES[kind].create("jobs", item="i8") as queue:
            queue.put_many(range(5))
            yield queue

    def test_a_position_that_nothing_can_have_is_not_unreleased(self, queue):
        with queue.lease(3):
            assert queue.unreleased([-1, 2, 3, 2**62, 2**63, 2**64 + 2]) == [2]
            assert queue.unreleased(np.array([2, 3])) == [2]

    @pytest.mark.parametrize("position", ["a", 1.0, None, True])
    def test_a_position_that_is_no_int_is_refused(self, queue, position):
        with pytest.raises(TypeError, match=f"position must be an int: position={position!r}"):
            queue.unreleased([0, position])
        with queue.lease(3), pytest.raises(TypeError, match="position must be an int"):
            queue.unreleased([position])

    @pytest.mark.parametrize("count", ["a", 1.0, True])
    def test_a_count_that_is_no_int_is_refused_and_the_lease_kept(self, queue, count):
        with queue.lease(3) as lease:
            with pytest.raises(TypeError, match=f"count must be an int or None: count={count!r}"):
                lease.release(count)
            assert lease.is_held

    def test_a_count_of_numpys_is_an_int(self, queue):
        with queue.lease(3) as lease:
            lease.release(np.int64(2))
        assert queue.lease(9).positions[0] == 2

    @pytest.mark.parametrize("end", ["release", "give_back"])
    def test_a_lease_that_is_over_is_not_entered(self, queue, end):
        lease = queue.lease(3)
        getattr(lease, end)()
        with pytest.raises(ValueError, match="this lease of the queue 'jobs' is over: take another one"), lease:
            pass

    def test_a_lease_ended_inside_its_own_block_is_left_in_peace(self, queue):
        with queue.lease(3) as lease:
            lease.release()
        assert not lease.is_held

    @pytest.mark.parametrize("dump", [pickle.dumps, copy.copy, copy.deepcopy])
    def test_a_lease_cannot_be_pickled(self, queue, dump):
        lease = queue.lease(3)
        with pytest.raises(TypeError, match=r"a lease cannot be pickled.*pickle lease\.items and lease\.positions"):
            dump(lease)
