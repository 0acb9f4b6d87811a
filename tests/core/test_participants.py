"""The participant table: who has a line, what happens when there is none, and what the dead leave behind."""

from __future__ import annotations

import contextlib
import os
import threading

import pytest

import queueduct
from queueduct import BoundedQueue, TooManyParticipants
from tests.support.deadline import until
from tests.support.raw import POP, PUSH, RawSegment, claim_as_the_dead


def test_ten_thousand_short_threads_do_not_use_the_table_up():
    q = BoundedQueue.create("q", 64, participants=64)
    errors = []

    def work():
        try:
            q.put(b"x")
            q.get()
        except BaseException as error:
            errors.append(error)

    for _ in range(500):
        threads = [threading.Thread(target=work) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert errors == []
    assert q.empty()
    assert q.stats().participants <= 64


def test_more_threads_than_lines_are_told_so_and_can_try_again_later():
    q = BoundedQueue.create("q", 8, participants=2)
    q.put(b"1")
    hold, release = threading.Event(), threading.Event()

    def occupy():
        q.put(b"2")
        hold.set()
        release.wait(30)

    occupier = threading.Thread(target=occupy)
    occupier.start()
    hold.wait(30)
    outcomes = []

    def third():
        for call in (lambda: q.put(b"3"), q.get, lambda: q.get_many(3), lambda: q.put_many([b"3"]), q.try_get):
            try:
                call()
            except TooManyParticipants as error:
                outcomes.append(str(error))

    thread = threading.Thread(target=third)
    thread.start()
    thread.join(30)
    assert len(outcomes) == 5
    assert "all 2 participants of 'q' are in use" in outcomes[0]
    assert "participants=" in outcomes[0]
    release.set()
    occupier.join(30)
    later = []

    def fourth():
        until(lambda: later or try_it(), "a free line")

    def try_it():
        try:
            later.append(q.get())
        except TooManyParticipants:
            return False
        return True

    thread = threading.Thread(target=fourth)
    thread.start()
    thread.join(60)
    assert later == [b"1"]


def test_a_thread_that_was_refused_has_the_line_of_one_that_ended_since():
    q = BoundedQueue.create("q", 8, participants=2)
    q.put(b"1")
    is_refused, may_end = threading.Event(), threading.Event()
    got = []

    def occupy():
        q.put(b"2")
        is_refused.wait(30)

    def insist():
        with pytest.raises(TooManyParticipants):
            q.get()
        is_refused.set()
        may_end.wait(30)
        until(try_again, "the line of the ended thread")

    def try_again():
        with contextlib.suppress(TooManyParticipants):
            got.append(q.get())
        return got

    occupier = threading.Thread(target=occupy)
    occupier.start()
    until(lambda: q.qsize() == 2)
    insister = threading.Thread(target=insist)
    insister.start()
    occupier.join(30)
    may_end.set()
    insister.join(60)
    assert got == [b"1"]
    # a thread gives its line back in its last moments, which join() does not wait for
    until(lambda: q.stats().participants == 1, "the lines of both threads that have ended")


def test_looking_at_a_queue_takes_no_line():
    q = BoundedQueue.create("q", 8, participants=1)
    q.put(b"1")
    with BoundedQueue.open("q") as watcher:
        assert (watcher.qsize(), watcher.empty(), watcher.full(), len(watcher)) == (1, False, False, 1)
        assert watcher.stats().participants == 1
        assert "size=1" in repr(watcher)
        with pytest.raises(TooManyParticipants):
            watcher.get()
    assert q.get() == b"1"


def test_a_closed_handles_line_is_free_for_the_next():
    first = BoundedQueue.create("q", 8, participants=1)
    for i in range(20):
        first.put(b"%d" % i)
        first.close()
        first = BoundedQueue.open("q")
        assert first.get() == b"%d" % i
    with RawSegment("q") as raw:
        assert raw.participants_used == 1


def test_a_killed_processs_line_is_free_for_the_next(children):
    q = BoundedQueue.create("q", 8, participants=2)
    q.put(b"1")
    for _ in range(5):
        read_end, write_end = os.pipe()

        def work(write_end=write_end):
            q.put(b"2")
            os.write(write_end, b"x")
            threading.Event().wait()

        pid = children.fork(work)
        assert os.read(read_end, 1) == b"x"
        children.kill(pid)
        assert q.get_many(8)
        os.close(read_end)
        os.close(write_end)
    with RawSegment("q") as raw:
        assert raw.participants_used == 2


def test_a_dead_producers_slot_is_buried_and_passed_over():
    q = BoundedQueue.create("q", 8, item="<u8")
    q.put(1)
    claim_as_the_dead("q", 5, PUSH, 1, 3)
    q.put(2)
    assert [int(q.get(timeout=30)), int(q.get(timeout=30))] == [1, 2]
    stats = q.stats()
    assert (stats.tombstones, stats.redelivered, stats.size) == (3, 0, 0)
    with RawSegment("q") as raw:
        assert raw.generations() == [8, 9, 10, 11, 12, 5, 6, 7]
        assert not any(raw.intents())


def test_a_dead_consumers_items_are_delivered_to_another():
    q = BoundedQueue.create("q", 8, item="<u8")
    q.put_many([1, 2, 3, 4])
    claim_as_the_dead("q", 5, POP, 0, 3)
    assert sorted(int(q.get(timeout=30)) for _ in range(4)) == [1, 2, 3, 4]
    stats = q.stats()
    assert (stats.tombstones, stats.redelivered, stats.size) == (0, 3, 0)
    assert q.try_get() is None
    with RawSegment("q") as raw:
        assert raw.generations() == [8, 9, 10, 11, 4, 5, 6, 7]


@pytest.mark.parametrize("released", range(4))
def test_a_dead_consumers_long_item_is_delivered_whole_or_was_delivered(released):
    """It had released the first so many slots, head first: with none released the item is owed, else it is not."""
    q = BoundedQueue.create("q", 8, slot_bytes=8)
    item = b"abcdefgh" * 3
    q.put(item)
    q.put(b"next")
    claim_as_the_dead("q", 5, POP, 0, 3)
    with RawSegment("q") as raw:
        for i in range(released):
            raw.set_generation(i, 8 + i)
    expected = [b"next"] if released else [item, b"next"]
    got = []
    until(
        lambda: got.extend(q.get_many(8) if q.qsize() or not got else [q.get(timeout=0.5)]) or len(got) >= len(expected)
    )
    assert sorted(got) == sorted(expected)
    assert q.put_many([b"%d" % i for i in range(8)], timeout=30) == 8
    assert q.get_many(8) == [b"%d" % i for i in range(8)]


def test_a_full_queue_of_a_dead_consumer_takes_puts_after_redelivery():
    q = BoundedQueue.create("q", 4, item="<u8")
    q.put_many([1, 2, 3, 4])
    claim_as_the_dead("q", 5, POP, 0, 4)
    assert q.try_put(5) is False
    getter = BoundedQueue.open("q")
    assert sorted(int(getter.get(timeout=30)) for _ in range(4)) == [1, 2, 3, 4]
    q.put(5, timeout=30)
    assert getter.get() == 5


@pytest.mark.parametrize("participants", [1, 2])
def test_a_table_full_of_dead_producers_keeps_nobody_out(participants):
    q = BoundedQueue.create("q", 8, item="<u8", participants=participants)
    q.close()
    for line in range(participants):
        claim_as_the_dead("q", line, PUSH, line, 1)
    with BoundedQueue.open("q") as again:
        again.put(7)
        assert again.get(timeout=30) == 7


@pytest.mark.parametrize("participants", [1, 2, 3])
def test_a_table_full_of_dead_consumers_keeps_nobody_out_and_nothing_back(participants):
    q = BoundedQueue.create("q", 8, item="<u8", participants=participants)
    q.put_many([1, 2, 3])
    q.close()
    for line in range(participants):
        claim_as_the_dead("q", line, POP, line, 1)
    with BoundedQueue.open("q") as again:
        assert sorted(int(again.get(timeout=30)) for _ in range(3)) == [1, 2, 3]
        again.put(4)
        assert again.get() == 4


def test_a_queue_from_before_a_reboot_works_for_whoever_opens_it():
    """Nobody holds a lock, and the lines name processes that are long gone."""
    q = BoundedQueue.create("q", 8)
    q.put_many([b"1", b"2"])
    q.close()
    with RawSegment("q") as raw:
        for line in range(3):
            at = raw.line_offset(line)
            raw.memory[at + 8 : at + 48] = b"\x55" * 40
        raw.participants_used = 3
    with BoundedQueue.open("q") as again:
        assert again.stats().participants == 0
        assert again.get_many(8) == [b"1", b"2"]


def test_the_threads_of_one_process_are_limited_with_a_clear_error(children):
    out = children.run(
        """
import threading, queueduct
q = queueduct.BoundedQueue.create("q", 4096, participants=4096)
threading.stack_size(64 * 1024)
release = threading.Event()
outcomes = []
def work():
    try:
        outcomes.append(q.put(b"x"))
    except queueduct.TooManyParticipants as error:
        outcomes.append(str(error))
    release.wait()
threads = [threading.Thread(target=work) for _ in range(1030)]
for thread in threads:
    thread.start()
from tests.support.deadline import until
until(lambda: len(outcomes) == 1030, "everybody's turn")
release.set()
for thread in threads:
    thread.join()
print(outcomes.count(None), set(outcomes) - {None})
q.put(b"x")   # the numbers are free again
"""
    )
    assert out == "1024 {'more than 1024 threads of this process use queueduct at once'}\n"


def test_the_largest_table_works():
    with BoundedQueue.create("q", 8, participants=queueduct.native._layout.PARTICIPANTS_LIMIT) as q:
        q.put(b"1")
        assert q.get() == b"1"
