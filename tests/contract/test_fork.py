"""Forks: a child has no part in what its parent had under way, and its end does the parent no harm."""

from __future__ import annotations

import os
import signal
import threading

import pytest

import queueduct
from queueduct import BoundedQueue
from tests.support.children import fork
from tests.support.deadline import PATIENCE_SECONDS, is_task_parked, until
from tests.support.raw import RawSegment
from tests.support.threads import parked, results


@pytest.fixture
def q():
    with BoundedQueue.create("q", 64) as made:
        yield made


def test_a_forked_child_uses_its_parents_handle_and_joins_by_itself(plain_named, children):
    with plain_named.make(8) as q:
        reader = plain_named.consumer(q)

        def work():
            mine = plain_named.consumer(q)
            q.put(plain_named.item(2))
            assert plain_named.number(mine.get()) == 1

        q.put(plain_named.item(1))
        assert children.wait(children.fork(work)) == 0
        expected = [1, 2] if plain_named.is_for_all else [2]
        assert plain_named.numbers(reader.get_many(9)) == expected
        assert q.stats().participants == 1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_child_that_dies_leaves_the_parent_unaffected(plain_named, children, number):
    q = plain_named.make(8)
    reader = plain_named.consumer(q)
    q.put(plain_named.item(1))
    read_end, write_end = os.pipe()

    def work():
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)  # whoever started the tests may have had it ignored
        q.put(plain_named.item(2))
        os.write(write_end, b"x")
        signal.pause()

    pid = children.fork(work)
    assert os.read(read_end, 1) == b"x"
    assert q.stats().participants == 2
    os.kill(pid, number)
    assert children.wait(pid) == -number
    assert q.stats().participants == 1
    assert plain_named.numbers(reader.get_many(9)) == [1, 2]
    q.put(plain_named.item(3))
    assert plain_named.number(reader.get()) == 3
    os.close(read_end)
    os.close(write_end)


def test_the_parents_locks_survive_the_end_of_an_idle_child(plain_named, children):
    q = plain_named.make(8)
    q.put(plain_named.item(1))
    assert children.wait(children.fork(lambda: None)) == 0
    with queueduct.open("q") as other:
        plain_named.consumer(other).get()
        assert other.stats().participants == 2


def test_a_child_that_closes_its_handle_leaves_the_parents_open(plain_named, children):
    q = plain_named.make(8)
    reader = plain_named.consumer(q)
    q.put(plain_named.item(1))
    assert children.wait(children.fork(q.close)) == 0
    assert plain_named.number(reader.get()) == 1
    assert q.stats().participants == 1


def test_a_child_that_exits_leaves_the_parents_handle_open(plain_named, children):
    """sys.exit in a fork runs the finalizers of what it inherited."""
    q = plain_named.make(8)  # what opens it here sees that its maker still has it there
    out = children.run(
        """
import os, sys, queueduct
from tests.support.children import fork
q = queueduct.open("q")
reader = q.subscribe(start="earliest") if hasattr(q, "subscribe") else q
q.put(b"%-64d" % 1)
pid = fork()
if pid == 0:
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
print(int(reader.get()), q.stats().participants)
"""
    )
    assert out == "1 1\n"
    q.close()


def test_a_fork_while_other_threads_are_in_the_middle_of_operations(plain_named, children):
    """A producer and a consumer never stop; 30 children are forked among them, and each can use the queue at once."""
    q = plain_named.make(64)
    reader = plain_named.consumer(q)
    stop = threading.Event()
    counts = [0, 0]

    def produce():
        while not stop.is_set():
            counts[0] += q.try_put(plain_named.item(1))

    def consume():
        while not stop.is_set():
            counts[1] += reader.try_get() is not None

    threads = [threading.Thread(target=work) for work in (produce, consume)]
    for thread in threads:
        thread.start()

    mine = q  # a variable of its own: without a GIL CPython may fork while another thread has the lock of `q`

    def work():
        with BoundedQueue.open("back") as other:
            mine.put(plain_named.item(2), timeout=PATIENCE_SECONDS)
            other.put(b"done", timeout=PATIENCE_SECONDS)

    back = BoundedQueue.create("back", 64)
    for _ in range(30):
        assert children.wait(children.fork(work)) == 0
    stop.set()
    for thread in threads:
        thread.join(30)
    assert back.qsize() == 30
    rest = 0
    while reader.try_get() is not None:
        rest += 1
    assert counts[0] + 30 == counts[1] + rest
    stats = q.stats()._asdict()
    repairs = ("tombstones", "redelivered", "recovered", "repairs", "torn")
    assert {name: stats[name] for name in repairs if stats.get(name)} == {}


def test_a_fork_while_other_threads_wait(plain_named, children):
    q = plain_named.make(4)
    behind = plain_named.consumer(q)
    waiters = parked([plain_named.consumer(q).get])
    assert children.wait(children.fork(lambda: q.put(plain_named.item(1)))) == 0
    assert plain_named.numbers(results(waiters)) == [1]
    plain_named.fill(q)
    waiters = parked([lambda: q.put(plain_named.item(2))])
    assert children.wait(children.fork(lambda: None)) == 0
    while waiters[0].is_alive():
        behind.try_get()
    assert results(waiters) == [None]


def test_a_fork_in_a_signal_handler_during_a_wait(children):
    """Parent and child both return from the handler into the wait; each then gets one of two items."""
    child = children.start(
        """
import os, signal, queueduct
from tests.support.children import fork
q = queueduct.BoundedQueue.create("q", 4)
forked = []
def on_signal(*_):
    forked.append(fork())
signal.signal(signal.SIGUSR1, on_signal)
print("ready", flush=True)
item = q.get()
if forked[0] == 0:
    os._exit(0 if item in (b"1", b"2") else 1)
status = os.waitstatus_to_exitcode(os.waitpid(forked[0], 0)[1])
print(item in (b"1", b"2"), status, q.qsize(), q.stats().participants)
"""
    )
    assert child.stdout.readline() == "ready\n"
    until(lambda: is_task_parked(f"/proc/{child.pid}"), "the wait")
    with queueduct.open("q") as q:
        child.send_signal(signal.SIGUSR1)
        q.put(b"1")
        q.put(b"2")
        assert child.stdout.readline() == "True 0 0 2\n"


def test_a_child_of_a_child_of_a_child_works(q, children):
    def deeper(levels):
        q.put(b"%d" % levels)
        if levels:
            pid = fork()
            if pid == 0:
                deeper(levels - 1)
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

    assert children.wait(children.fork(lambda: deeper(4))) == 0
    assert q.get_many(9) == [b"4", b"3", b"2", b"1", b"0"]


def test_a_fork_with_no_descriptor_left_is_a_clean_error_in_the_child(children):
    out = children.run(
        """
import os, resource, queueduct
from tests.support.children import fork
q = queueduct.BoundedQueue.create("q", 4)
q.put(b"1")
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
try:
    while True:
        os.open("/dev/null", os.O_RDONLY)
except OSError:
    pass
read_end = 3
pid = fork()
if pid == 0:
    try:
        q.get()
    except queueduct.QueueClosed as error:
        os._exit(7 if "too many files were open" in str(error) else 8)
    os._exit(9)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), q.get())
"""
    )
    assert out == "7 b'1'\n"


def test_intents_of_the_parent_are_not_touched_by_a_child(q, children):
    """The parent's line belongs to the parent: a child takes another one."""
    q.put(b"1")
    with RawSegment("q") as raw:
        owner = raw.memory[raw.line_offset(0) + 8 : raw.line_offset(0) + 12]
        assert int.from_bytes(owner, "little") == os.getpid()
        pid = children.fork(lambda: q.put(b"2"))
        assert children.wait(pid) == 0
        assert raw.memory[raw.line_offset(0) + 8 : raw.line_offset(0) + 12] == owner
        second = raw.memory[raw.line_offset(1) + 8 : raw.line_offset(1) + 12]
        assert int.from_bytes(second, "little") == pid
