"""Names change hands: a queue replaced by another one, a name removed only by its owner, an opener that comes first."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import threading
import time

import pytest

import queueduct
from queueduct import (
    BoundedQueue,
    EventQueue,
    GrowingQueue,
    OverwritingQueue,
    QueueExists,
    QueueNotFound,
    QueueReplaced,
    SlotQueue,
)
from queueduct.segments import creation

KINDS = [BoundedQueue, EventQueue, GrowingQueue, OverwritingQueue, SlotQueue]
kinds = pytest.mark.parametrize("cls", KINDS, ids=lambda cls: cls.__name__)


@kinds
def test_a_replaced_queue_goes_on_for_those_who_have_it(cls):
    with cls.create("q", item="i8") as old, cls.create("q", item="i8", replace=True) as new:
        old.put(1)
        new.put_many([2, 3])
        assert (old.qsize(), new.qsize(), old.segment_id == new.segment_id) == (1, 2, False)
        with cls.open("q") as opened:
            assert opened.segment_id == new.segment_id
    assert [each for each in os.listdir(new.directory) if each.startswith(".")] == []


@kinds
def test_replace_creates_a_queue_that_is_not_there(cls):
    with cls.create("q", replace=True) as q:
        assert queueduct.queues()[0].name == q.name


@kinds
def test_a_queue_of_another_kind_and_shape_is_replaced(cls):
    for other in KINDS:
        other.create("q", item="f4", replace=True).close()
        with cls.create("q", item="i8", replace=True):
            pass
        assert type(queueduct.open("q")) is cls


@kinds
def test_replace_and_exist_ok_exclude_each_other(cls):
    with pytest.raises(ValueError, match="exclude each other"):
        cls.create("q", exist_ok=True, replace=True)
    assert queueduct.queues() == []


@kinds
def test_exist_ok_says_at_once_that_a_queue_is_shut_down(cls):
    with cls.create("q", item="i8") as q:
        q.put(1)
        q.shutdown()
        with pytest.raises(QueueExists, match=r"is shut down: .* open\(\) .* replace=True"):
            cls.create("q", item="i8", exist_ok=True)
        with cls.open("q") as opened:
            assert opened.qsize() == 1
        with cls.create("q", item="i8", replace=True) as new:
            new.put(2)


@kinds
def test_the_handle_of_a_replaced_queue_does_not_unlink_the_new_one(cls):
    with cls.create("q") as old, cls.create("q", replace=True) as new:
        for missing_ok in (False, True):
            with pytest.raises(QueueReplaced, match="another queue than this handle's"):
                old.unlink(missing_ok)
        new.unlink()
        with pytest.raises(QueueNotFound):
            new.unlink()
        new.unlink(missing_ok=True)
        old.unlink(missing_ok=True)


@kinds
def test_a_closed_handle_unlinks_its_own_queue_only(cls):
    q = cls.create("q")
    q.close()
    q.unlink()
    cls.create("q").close()  # perhaps with the inode of the old one
    with pytest.raises(QueueReplaced):
        q.unlink()


def test_unlink_by_name_may_miss():
    queueduct.unlink("q", missing_ok=True)
    with pytest.raises(QueueNotFound):
        queueduct.unlink("q")


def test_unlink_in_a_directory_that_is_missing(tmp_path):
    queueduct.unlink("q", directory=tmp_path / "none", missing_ok=True)
    with pytest.raises(QueueNotFound):
        queueduct.unlink("q", directory=tmp_path / "none")


@pytest.mark.parametrize("make", ["write", "mkdir", "symlink"])
def test_only_a_queue_is_replaced(queue_dir, make):
    path = queue_dir / "q"
    {"write": lambda: path.write_text("mine"), "mkdir": path.mkdir, "symlink": lambda: path.symlink_to("x")}[make]()
    with pytest.raises(QueueExists, match="is not a queue, and is not replaced"):
        BoundedQueue.create("q", 4, replace=True)
    assert os.listdir(queue_dir) == ["q"]


def test_a_damaged_queue_can_be_replaced(queue_dir):
    BoundedQueue.create("q", 4).close()
    with (queue_dir / "q").open("r+b") as file:
        file.seek(8)
        file.write(b"\xff" * 100)
    with BoundedQueue.create("q", 4, replace=True) as q:
        q.put(b"1")


def test_a_replacement_without_room_keeps_the_old_queue(queue_dir):
    with BoundedQueue.create("q", 4) as old:
        with pytest.raises(OSError, match="no room for a segment"):
            BoundedQueue.create("q", 1 << 28, slot_bytes=1 << 12, replace=True)
        with BoundedQueue.open("q") as q:
            assert q.segment_id == old.segment_id
    assert os.listdir(queue_dir) == ["q"]


def test_an_interrupt_between_link_and_rename_leaves_the_old_queue(queue_dir, monkeypatch):
    old = BoundedQueue.create("q", 4)

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(creation.os, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        BoundedQueue.create("q", 4, replace=True)
    with BoundedQueue.open("q") as q:
        assert q.segment_id == old.segment_id
    assert os.listdir(queue_dir) == ["q"]


def test_what_a_killed_replacer_left_is_removed_by_the_next(queue_dir):
    BoundedQueue.create("q", 4).close()
    (queue_dir / ".replace-0123456789abcdef").write_bytes(b"left")
    assert [each.name for each in queueduct.queues()] == ["q"]
    BoundedQueue.create("q", 4, replace=True).close()
    assert os.listdir(queue_dir) == ["q"]


def test_a_waiting_consumer_of_the_old_queue_keeps_waiting_for_it():
    with BoundedQueue.create("q", 4) as old:
        got: list[bytes] = []
        consumer = threading.Thread(target=lambda: got.append(old.get(timeout=30)))
        consumer.start()
        with BoundedQueue.create("q", 4, replace=True) as new:
            new.put(b"new")
            old.put(b"old")
            consumer.join(30)
            assert (got, new.get()) == ([b"old"], b"new")


def replace_for_ever(kind, ready):
    ready.set()
    while True:
        with KINDS[kind].create("q", item="i8", replace=True) as q:
            q.put(7)


def test_racing_replacers_that_are_killed_leave_one_complete_queue_at_any_moment(queue_dir):
    context = multiprocessing.get_context("spawn")
    BoundedQueue.create("q", item="i8").close()
    for _ in range(2):
        ready = [context.Event(), context.Event()]
        workers = [context.Process(target=replace_for_ever, args=(i, ready[i]), daemon=True) for i in range(2)]
        for worker in workers:
            worker.start()
        assert all(each.wait(60) for each in ready)
        end = time.monotonic() + 0.3
        seen = set()
        while time.monotonic() < end:
            with queueduct.open("q") as q:  # never missing, never incomplete
                seen.add(q.segment_id)
        for worker in workers:
            os.kill(worker.pid, signal.SIGKILL)
            worker.join()
        assert len(seen) > 1
    with BoundedQueue.create("q", 4, replace=True) as q:
        q.put(b"1")
    assert os.listdir(queue_dir) == ["q"]


@kinds
def test_an_opener_waits_for_the_queue_and_its_directory(cls, tmp_path):
    folder = tmp_path / "later"
    creator = threading.Timer(0.05, lambda: cls.create("q", directory=folder).close())
    creator.start()
    with cls.open("q", directory=folder, timeout=60) as q, queueduct.open("q", directory=folder, timeout=0) as again:
        assert q.segment_id == again.segment_id
    creator.join()


@pytest.mark.parametrize("timeout", [None, 0, 0.02])
def test_an_opener_gives_up_in_time(timeout):
    start = time.monotonic()
    with pytest.raises(QueueNotFound, match="after 0.02 s; start its creator" if timeout else "there is no queue"):
        queueduct.open("q", timeout=timeout)
    assert time.monotonic() - start >= (timeout or 0)


@pytest.mark.parametrize("timeout", [-1, math.nan, -(10**400)])
def test_an_opener_refuses_times_that_are_none(timeout):
    with pytest.raises(ValueError, match="timeout must be a non-negative number or None"):
        queueduct.open("q", timeout=timeout)
    with pytest.raises(TypeError, match="timeout must be a non-negative number or None"):
        BoundedQueue.open("q", timeout="1")


def test_ctrl_c_ends_the_wait_for_a_queue():
    threading.Timer(0.05, lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        queueduct.open("q", timeout=60)


def test_other_errors_end_the_wait_at_once(queue_dir):
    (queue_dir / "q").write_text("mine")
    with pytest.raises(queueduct.CorruptSegment):
        queueduct.open("q", timeout=60)
    with pytest.raises(ValueError, match="must not contain"):
        queueduct.open("a/b", timeout=60)
    with pytest.raises(NotADirectoryError):
        queueduct.open("q", directory=queue_dir / "q", timeout=60)
