"""OverwritingQueue: what goes when it is full, what is refused, and what it says of itself."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest

import queueduct
from queueduct import OverwritingQueue
from tests.support.deadline import until_parked

RECORD = np.dtype([("id", "<u4"), ("half", "<f8")])


def sums_up(stats):
    lost = stats.overwritten + stats.torn + stats.lost_with_consumer + stats.discarded
    return stats.puts == stats.gets + lost + stats.size


@pytest.fixture
def q(queue_dir):
    with OverwritingQueue.create("q", 4, item="<i8") as made:
        yield made


def test_a_full_queue_loses_its_oldest_and_counts_it(q):
    for i in range(11):
        q.put(i)
    assert q.full()
    stats = q.stats()
    assert (stats.puts, stats.overwritten, stats.size, stats.capacity) == (11, 7, 4, 4)
    assert q.get_many(9).tolist() == [7, 8, 9, 10]
    assert q.stats().gets == 4
    assert sums_up(q.stats())


def test_put_many_overwrites_too(q):
    assert q.put_many(range(10)) == 10
    assert q.put_many([]) == 0
    assert q.get_many(9).tolist() == [6, 7, 8, 9]
    assert q.stats().overwritten == 6


@pytest.mark.parametrize("put", ["put", "put_nowait", "try_put"])
def test_no_form_of_put_is_stopped_by_a_full_queue(q, put):
    for i in range(9):
        assert getattr(q, put)(i) in (None, True)
    assert q.get_many(9).tolist() == [5, 6, 7, 8]


def test_who_overwrites_nothing_is_refused_by_a_full_queue(q):
    assert [q.try_put(i, overwrite=False) for i in range(5)] == [True] * 4 + [False]
    with pytest.raises(queueduct.Full):
        q.put(9, timeout=0, overwrite=False)
    with pytest.raises(queueduct.Full):
        q.put(9, timeout=0.01, overwrite=False)
    with pytest.raises(queueduct.Full):
        q.put_nowait(9, overwrite=False)
    with pytest.raises(queueduct.Full):
        q.put_many([9], timeout=0, overwrite=False)
    assert q.get() == 0
    assert q.put_many([4, 5, 6], block=False, overwrite=False) == 1
    assert q.get_many(9).tolist() == [1, 2, 3, 4]
    assert q.stats().overwritten == 0


def test_who_overwrites_nothing_waits_for_room(q):
    q.put_many(range(4))
    putter = threading.Thread(target=q.put, args=(4,), kwargs={"overwrite": False})
    putter.start()
    until_parked(putter)
    assert q.get() == 0
    putter.join(30)
    assert q.get_many(9).tolist() == [1, 2, 3, 4]


def test_get_waits_when_it_is_empty_and_is_woken_by_a_put(q):
    got = []
    getter = threading.Thread(target=lambda: got.append(int(q.get())))
    getter.start()
    until_parked(getter)
    q.put(7)
    getter.join(30)
    assert got == [7]
    with pytest.raises(queueduct.Empty):
        q.get(timeout=0.01)
    with pytest.raises(queueduct.Empty):
        q.get_many(3, block=False)


@pytest.mark.parametrize("size", [0, 1, 63, 65, 72, 1 << 20])
@pytest.mark.parametrize("call", ["put", "try_put", "put_many"])
def test_a_wrong_size_is_refused_before_any_lock_is_taken(queue_dir, size, call):
    with OverwritingQueue.create("q", 2) as q, open(queue_dir / "q", "r+b") as file:
        before = file.read()
        with pytest.raises(ValueError, match=f"must have exactly 64 bytes: got {size}"):
            getattr(q, call)([bytes(64), bytes(size)] if call == "put_many" else bytes(size))
        file.seek(0)
        assert file.read() == before
        file.seek(16)
        file.write(b"\1")  # a stranger has the header: who waited for it would be there still
        file.flush()
        with pytest.raises(ValueError, match="exactly 64 bytes"):
            getattr(q, call)([bytes(size)] if call == "put_many" else bytes(size))


def test_an_object_that_can_never_fit_is_refused(queue_dir):
    with OverwritingQueue.create("q", 2, item=object, message_bytes=64) as q:
        q.put("short")
        with pytest.raises(ValueError, match="can never fit into 'q': message_bytes=64"):
            q.put("x" * 64)
        assert q.get() == "short"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"capacity": 0}, "capacity must be between 1 and 4294967295: capacity=0"),
        ({"capacity": 1 << 32}, "capacity must be between"),
        ({"capacity": -1}, "capacity must be between"),
        ({"message_bytes": 12}, "message_bytes must be a multiple of 8: message_bytes=12; try 16"),
        ({"message_bytes": 0}, "message_bytes must be between 8 and"),
        ({"message_bytes": 1 << 36}, "message_bytes must be between 8 and"),
        ({"capacity": (1 << 32) - 1, "message_bytes": 1 << 34}, r"capacity \* \(8 \+ message_bytes\) must be at most"),
        ({"item": "<f8", "message_bytes": 8}, "message_bytes of records follows from the dtype"),
        ({"participants": 0}, "participants must be between"),
    ],
)
def test_sizes_that_cannot_be_are_refused_with_the_rule(queue_dir, options, message):
    with pytest.raises(ValueError, match=message):
        OverwritingQueue.create("q", **options)
    assert queueduct.queues() == []


def test_it_lives_in_shared_memory_only():
    with pytest.raises(TypeError, match=r"use OverwritingQueue.create\(name"):
        OverwritingQueue()


@pytest.mark.parametrize("capacity", [1, 2, 3, 1000])
def test_any_capacity_holds_so_many(queue_dir, capacity):
    with OverwritingQueue.create("q", capacity, item="<i8") as q:
        assert q.capacity == capacity
        q.put_many(range(2 * capacity + 1))
        assert q.get_many(capacity + 5).tolist() == list(range(capacity + 1, 2 * capacity + 1))


def test_what_an_immediate_shutdown_throws_away_is_counted(q):
    q.put(1)
    q.shutdown(immediate=True)
    assert (q.qsize(), q.stats().discarded) == (0, 1)
    assert sums_up(q.stats())


def test_a_stopped_reader_keeps_no_writer_waiting(q, children):
    q.put(1)
    pid = children.fork(lambda: [q.put(i) for i in iter(lambda: q.try_get(0), -1)])
    for round_ in range(20):
        os.kill(pid, signal.SIGSTOP)
        q.try_put(round_)  # it may have the header, or be copying: then it is granted a moment, and no more
        os.kill(pid, signal.SIGCONT)
    children.kill(pid)
    for i in range(8):
        q.put(i, timeout=30)
    assert q.get_many(9).tolist() == [4, 5, 6, 7]
    assert sums_up(q.stats())


def test_records_come_back_as_they_were(queue_dir):
    with OverwritingQueue.create("q", 3, item=RECORD) as q:
        q.put_many([(i, i / 2) for i in range(5)])
        got = q.get_many(9)
        assert got.dtype == RECORD
        assert got.tolist() == [(2, 1.0), (3, 1.5), (4, 2.0)]
    with OverwritingQueue.create("frames", 2, item=np.dtype(("<f4", (3, 5)))) as q:
        frame = np.arange(15, dtype="<f4").reshape(3, 5)
        q.put(frame)
        assert (q.get() == frame).all()
        q.put_many(np.stack([frame, frame + 1, frame + 2]))
        assert (q.get_many(5) == np.stack([frame + 1, frame + 2])).all()


def test_long_messages_come_whole(queue_dir):
    with OverwritingQueue.create("q", 2, message_bytes=1 << 20) as q:
        for i in range(3):
            q.put(bytes([i]) * (1 << 20))
        assert [item == bytes([i]) * (1 << 20) for i, item in zip((1, 2), q.get_many(3), strict=True)] == [True, True]
        q.put(bytearray(1 << 20))
        q.put(memoryview(bytes(1 << 20)))
        assert q.get() == bytes(1 << 20)


def test_every_line_of_the_table_can_be_used_again(queue_dir):
    with OverwritingQueue.create("q", 2, item="<i8", participants=2) as q:
        q.put(0)
        for i in range(5):
            with OverwritingQueue.open("q") as other:
                other.put(i)
                assert q.stats().participants == 2
                with OverwritingQueue.open("q") as third, pytest.raises(queueduct.TooManyParticipants):
                    third.put(1)


def test_a_batch_lets_other_threads_run(queue_dir):
    """A long batch gives up the GIL: another thread gets while it is put."""
    with OverwritingQueue.create("q", 64, item="<i8") as q:
        getter_got = []
        getter = threading.Thread(target=lambda: getter_got.extend(int(i) for i in q))
        getter.start()
        until_parked(getter)
        q.put_many(np.arange(2_000_000))
        q.shutdown()
        getter.join(60)
        assert getter_got == sorted(getter_got)
        assert getter_got[-1] == 1_999_999
        assert sums_up(q.stats())
