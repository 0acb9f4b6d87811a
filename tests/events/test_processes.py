"""Processes and a log: forks in the middle of things, exits with everything open, and what is left behind: nothing."""

from __future__ import annotations

import os
import signal
import threading

import pytest

import queueduct
from queueduct import EventQueue, QueueClosed
from tests.support.children import open_descriptors
from tests.support.deadline import PATIENCE_SECONDS, until, until_parked


@pytest.fixture
def q():
    with EventQueue.create("q", max_bytes=1 << 16) as made:
        yield made


def test_a_child_puts_and_subscribes_with_its_parents_handle(q, children):
    reader = q.subscribe()

    def work():
        with q.subscribe() as mine:
            q.put(b"from the child")
            assert mine.get() == b"from the child"

    assert children.wait(children.fork(work)) == 0
    assert reader.get() == b"from the child"
    assert [info.is_attached for info in q.readers()] == [True]


@pytest.mark.parametrize("name", [None, "durable"])
def test_a_reader_stays_with_its_process_and_a_childs_end_does_it_no_harm(q, children, name):
    reader = q.subscribe(name, "earliest")

    def work():
        for call in (reader.get, reader.try_get, lambda: reader.position, reader.commit, lambda: next(reader)):
            with pytest.raises(QueueClosed, match="stays with the process that subscribed"):
                call()
        reader.close()

    assert children.wait(children.fork(work)) == 0
    assert [(info.name, info.is_attached) for info in q.readers()] == [(name, True)]
    q.put(b"1")
    assert reader.get() == b"1"


def test_a_child_that_only_exits_frees_nothing_of_its_parents(q, children):
    reader = q.subscribe(start="earliest")
    q.put(b"1")
    assert children.wait(children.fork(lambda: None)) == 0
    with EventQueue.open("q") as other:
        assert [info.is_attached for info in other.readers()] == [True]
    assert reader.get() == b"1"


def test_a_durable_reader_of_a_parent_is_not_a_childs_to_take(q, children):
    reader = q.subscribe("mine")

    def work():
        with pytest.raises(queueduct.ReaderInUse):
            q.subscribe("mine")

    assert children.wait(children.fork(work)) == 0
    reader.close()
    assert children.wait(children.fork(lambda: q.subscribe("mine").get_many)) == 0


def test_forks_while_other_threads_are_in_the_middle_of_operations(q, children):
    """A writer and two readers never stop; 30 children are forked among them, and each can use the queue at once."""
    stop = threading.Event()
    durable, ephemeral = q.subscribe("durable", "earliest"), q.subscribe(start="earliest")
    counts = [0, 0, 0]

    def write():
        while not stop.is_set():
            counts[0] += q.try_put(b"x" * 100)

    def read(reader, number):
        while not stop.is_set():
            counts[number] += reader.try_get() is not None
            if number == 1:
                reader.commit()

    threads = [threading.Thread(target=write)]
    threads += [threading.Thread(target=read, args=(r, n)) for n, r in ((1, durable), (2, ephemeral))]
    for thread in threads:
        thread.start()

    def work():
        with q.subscribe() as mine:
            q.put(b"from the child", timeout=PATIENCE_SECONDS)
            assert mine.get(timeout=PATIENCE_SECONDS)

    for _ in range(30):
        assert children.wait(children.fork(work)) == 0
    stop.set()
    for thread in threads:
        thread.join(30)
    assert counts[0] + 30 == q.end
    assert counts[1] + durable.lag == counts[2] + ephemeral.lag == q.end
    assert (q.stats().readers, q.stats().repairs) == (2, 0)


def test_a_fork_while_a_reader_and_a_writer_wait(q, children):
    reader, behind = q.subscribe(), q.subscribe("behind", "earliest")
    got = []
    waiting = threading.Thread(target=lambda: got.append(reader.get()))
    waiting.start()
    until_parked(waiting)
    assert children.wait(children.fork(lambda: q.put(b"from the child"))) == 0
    waiting.join(30)
    assert got == [b"from the child"]
    while q.try_put(b"x" * 1000):
        pass
    waiting = threading.Thread(target=q.put, args=(b"y" * 1000,))
    waiting.start()
    until_parked(waiting)
    assert children.wait(children.fork(lambda: None)) == 0
    while behind.try_get() is not None:
        behind.commit()
        reader.try_get()
    waiting.join(30)
    assert not waiting.is_alive()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_readers_of_a_process_that_dies_go_or_stay_as_they_should(q, children, number):
    read_end, write_end = os.pipe()

    def work():
        kept = [q.subscribe(start="earliest"), q.subscribe("durable", "earliest")]
        kept[1].get()
        kept[1].commit()
        os.write(write_end, b"x")
        signal.pause()

    q.put_many([b"1", b"2"])
    pid = children.fork(work)
    assert os.read(read_end, 1) == b"x"
    assert [info.is_attached for info in q.readers()] == [True, True]
    os.kill(pid, number)
    assert children.wait(pid) == -number
    assert [(info.name, info.position, info.is_attached) for info in q.readers()] == [("durable", 1, False)]
    with q.subscribe("durable") as again:
        assert again.get() == b"2"
    os.close(read_end)
    os.close(write_end)


def test_handles_and_readers_leave_no_descriptor(queue_dir):
    def use():
        with EventQueue.create("q", exist_ok=True) as q, EventQueue.open("q") as other:
            with q.subscribe() as reader, other.subscribe("durable"):
                q.put(b"1")
                assert reader.get() == b"1"
            other.subscribe()  # and is forgotten

    before = open_descriptors()
    for _ in range(20):
        use()
    assert open_descriptors() == before
    queueduct.unlink("q")
    assert list(queue_dir.iterdir()) == []


EXITS = """
import sys, threading, queueduct
from tests.support.deadline import until_parked
named, how = sys.argv[1] == "named", sys.argv[2]
q = queueduct.EventQueue.create("q", max_bytes=4096, exist_ok=True) if named else queueduct.EventQueue(max_bytes=4096)
behind = q.subscribe(start="earliest")
while q.try_put(b"x" * 100):
    pass
readers = [q.subscribe() for _ in range(4)] + ([q.subscribe("durable")] if named else [])
calls = [readers[0].get, lambda: readers[1].get_many(3), lambda: list(readers[2]), lambda: readers[3].get(timeout=1000)]
calls += [lambda: q.put(b"y" * 100), lambda: q.put_many([b"y" * 100])]
threads = [threading.Thread(target=call, daemon=True) for call in calls]
for thread in threads:
    thread.start()
until_parked(*threads)
cycle = [q, behind]
cycle.append(cycle)
print("waiting", flush=True)
if how == "exception":
    sys.excepthook = lambda *_: None
    raise RuntimeError
if how == "exit":
    sys.exit(0)
"""


@pytest.mark.parametrize("named", ["named", "local"])
@pytest.mark.parametrize("how", ["end", "exit", "exception"])
def test_a_process_ends_without_a_word_whatever_is_open_or_waits(children, named, how):
    child = children.start(EXITS, named, how, options=("-W", "error", "-X", "dev"))
    out, err = child.communicate(timeout=60)
    assert (out, err) == ("waiting\n", "")
    assert child.returncode == (1 if how == "exception" else 0)
    if named == "named":
        with EventQueue.open("q") as q:
            assert [(info.name, info.is_attached) for info in q.readers()] == [("durable", False)]


def test_threads_in_full_swing_do_not_disturb_the_end(children):
    for _ in range(3):
        children.run(
            """
import threading, queueduct
from tests.support.deadline import until
logs = [queueduct.EventQueue.create("q", item=object, max_bytes=1 << 14, exist_ok=True), queueduct.EventQueue()]
counts = [0]
def write(q):
    while True:
        q.put({"a": 1})
def read(reader):
    for _ in reader:
        counts[0] += 1
for q in logs:
    for work in (lambda q=q: write(q), lambda r=q.subscribe(): read(r)):
        threading.Thread(target=work, daemon=True).start()
until(lambda: counts[0] > 1000)
"""
        )


def test_multiprocessing_s_resource_tracker_knows_nothing_of_our_logs(children, queue_dir):
    """It unlinks what it knows when a process ends, also what others still use."""
    children.run(
        """
import multiprocessing, queueduct
from multiprocessing import resource_tracker
resource_tracker.ensure_running()
q = queueduct.EventQueue.create("q")
q.subscribe("durable", "earliest")
q.put(b"1")
"""
    )
    assert (queue_dir / "q").exists()
    assert children.run("import queueduct; print(queueduct.open('q').subscribe('durable').get())") == "b'1'\n"


def test_a_log_goes_to_spawned_processes_by_name(children):
    children.run(
        """
import multiprocessing, queueduct
q = queueduct.EventQueue.create("q", item="<u8")
reader = q.subscribe()
context = multiprocessing.get_context("spawn")
workers = [context.Process(target=q.put_many, args=([n] * 10,)) for n in range(2)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
assert sorted(reader.get_many(99).tolist()) == [0] * 10 + [1] * 10
"""
    )


def test_a_log_on_a_disk_writes_itself_down_in_a_child_too(q, children, tmp_path, monkeypatch):
    """The thread that does so is the parent's; a fork starts its own."""
    monkeypatch.setenv("QUEUEDUCT_DIR", str(tmp_path))
    with EventQueue.create("q", sync="interval", sync_interval=0.01) as kept:
        kept.put(b"1")

        def work():
            kept.put(b"2")
            until(lambda: kept.stats().synced == 2, "the child's sync")

        assert children.wait(children.fork(work)) == 0
