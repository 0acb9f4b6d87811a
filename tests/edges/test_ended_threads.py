"""Threads that have ended: their lines are free for everybody, except for what they have left in others' hands."""

from __future__ import annotations

import functools
import threading

import numpy as np
import pytest

import queueduct
from queueduct import SlotQueue
from tests.edges.kinds import KINDS, item, number_of
from tests.support.deadline import until
from tests.support.raw import POP, PUBLISHED, RawSegment, claim_as_the_dead

JOINS = "import sys, queueduct; from tests.edges.kinds import item; queueduct.open('q').put(item(9)); print('in')"


def run_at_once(count, work):
    """So many threads at the same time, to their end."""
    gate = threading.Barrier(count)

    def meet():
        gate.wait(60)
        work()
        gate.wait(60)

    threads = [threading.Thread(target=meet) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


@pytest.mark.parametrize("kind", KINDS)
def test_the_lines_of_ended_threads_are_free_for_other_processes(kind, children):
    """Their own process never calls again."""
    q = KINDS[kind].create("q", participants=8)
    run_at_once(8, lambda: q.put(item(1)))
    until(lambda: q.stats().participants == 0, "the threads' lines are free")
    assert children.run(JOINS) == "in\n"


@pytest.mark.parametrize("kind", KINDS)
def test_whoever_waited_for_the_end_of_threads_is_not_refused_for_their_lines(kind):
    """Not even in the moment between the end that Python sees and the end of the thread."""
    KINDS[kind].create("q", participants=4).close()
    for _ in range(5):
        with queueduct.open("q") as q:
            run_at_once(4, functools.partial(q.put, item(1)))
            q.put(item(2))
            if KINDS[kind].has_leases:
                with q.lease(9):
                    pass
            else:
                q.clear()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if KINDS[kind].has_leases])
def test_a_lease_outlives_the_thread_that_took_it(kind, children):
    q = KINDS[kind].create("q", participants=4)
    q.put(item(1))
    held = []
    run_at_once(1, lambda: held.append(q.lease(1)))
    with pytest.raises(queueduct.Empty):
        q.get(timeout=0.2)
    assert children.run(JOINS) == "in\n"
    assert number_of(q.get(timeout=30)) == 9
    held[0].release()
    assert q.try_get() is None
    held.clear()
    q.close()


def test_slots_of_an_ended_thread_keep_its_line_until_they_are_given_back():
    q = SlotQueue.create("q", capacity=8, slot_bytes=64, participants=8)
    for number in range(3):
        q.put(item(number))
    taken, loaned = [], []
    run_at_once(1, lambda: (taken.extend([q.take(), q.take()]), loaned.append(q.loan())))
    other = queueduct.open("q")
    assert number_of(other.get(timeout=30)) == 2
    assert other.try_get() is None  # the two are in use
    until(lambda: q.stats().participants == 3)
    assert number_of(taken[0].copy()) == 0
    taken[0].release()
    taken[1].give_back()
    assert q.stats().participants == 3
    loaned[0].cancel()
    until(lambda: q.stats().participants == 2, "only our line is left, and other's")
    assert number_of(other.get(timeout=30)) == 1


def test_a_new_thread_has_the_line_that_is_kept_when_there_is_no_other():
    q = SlotQueue.create("q", capacity=8, slot_bytes=64, participants=1)
    q.put(item(1))
    taken = []

    def take_later():
        until(lambda: try_to(lambda: taken.append(q.take())))

    def try_to(call):
        try:
            call()
        except queueduct.TooManyParticipants:
            return False
        return True

    q.close()
    q = queueduct.open("q")
    run_at_once(1, take_later)
    later = []
    run_at_once(1, lambda: until(lambda: try_to(lambda: later.append(q.try_get("nothing")))))
    assert later == ["nothing"]
    taken[0].release()
    until(lambda: q.stats().participants == 0)


@pytest.mark.parametrize("apart", [1, 1 << 10, (1 << 22) + 12345])
def test_two_dead_consumers_of_one_line_keep_nobody_out_however_far_apart(apart):
    """Both had an item that nobody else has had since, and there is no other line."""
    q = queueduct.BoundedQueue.create("q", 1 << 23, item="u1", participants=1)
    count = apart + 1
    with RawSegment("q") as raw:  # as a producer leaves it, without the time that takes
        generations = memoryview(raw.memory)[raw.field("generations_offset") :].cast("Q")
        for position in (0, apart):
            generations[position] = PUBLISHED | position
        words = np.frombuffer(generations, np.uint64)
        words[1:apart] = np.arange(1, apart, dtype=np.uint64) + np.uint64(1 << 23)
        del words
        generations.release()
        raw.push_position = count
    q.close()
    claim_as_the_dead("q", 0, POP, 0, 1)
    with queueduct.BoundedQueue.open("q") as one:
        one.qsize()
        assert one.try_put(5) is True  # joins the line of the first: it is inherited
    with RawSegment("q") as raw:
        raw.pop_position = apart
        assert raw.word(raw.line_offset(0) + 40) != 0
    claim_as_the_dead("q", 0, POP, apart, 1)
    with queueduct.BoundedQueue.open("q") as again:
        assert [int(again.get(timeout=30)) for _ in range(3)].count(5) == 1
        assert again.stats().redelivered == 2
        with RawSegment("q") as raw:
            assert again.try_get() is None
            until(lambda: again.try_get() is None and raw.word(raw.line_offset(0) + 40) == 0)
