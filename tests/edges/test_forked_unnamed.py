"""Queues without a name in a forked child: an error that says what to use, and never an item that nobody sees."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import warnings

import pytest

import queueduct
from queueduct import BoundedQueue, EventQueue, GrowingQueue, IndexQueue, QueueNotShared
from tests.support.children import fork

MAKERS = {"bounded": lambda: BoundedQueue(8), "growing": GrowingQueue, "events": EventQueue}

CALLS = {
    "put": lambda q: q.put("x"),
    "put_nowait": lambda q: q.put_nowait("x"),
    "try_put": lambda q: q.try_put("x"),
    "put_many": lambda q: q.put_many(["x", "y"]),
    "get": lambda q: q.get(timeout=5),
    "try_get": lambda q: q.try_get(),
    "get_many": lambda q: q.get_many(5),
    "iterate": lambda q: next(iter(q)),
    "qsize": lambda q: q.qsize(),
    "len": len,
    "empty": lambda q: q.empty(),
    "full": lambda q: q.full(),
    "stats": lambda q: q.stats(),
    "shutdown": lambda q: q.shutdown(),
    "aput": lambda q: asyncio.run(q.aput("x")),
    "aget": lambda q: asyncio.run(q.aget(timeout=5)),
}
READER_CALLS = {
    "get": lambda reader: reader.get(timeout=5),
    "try_get": lambda reader: reader.try_get(),
    "get_many": lambda reader: reader.get_many(5),
    "aget": lambda reader: asyncio.run(reader.aget(timeout=5)),
}


def is_refused(call, on):
    try:
        call(on)
    except QueueNotShared as error:
        assert ".create(name, ...)" in str(error) or "named queue" in str(error), error
        return True
    return False


@pytest.mark.parametrize("kind", MAKERS)
def test_every_call_in_a_forked_child_is_refused(kind, children):
    q = MAKERS[kind]()
    q.put("parent's")

    def work():
        assert [name for name, call in CALLS.items() if not is_refused(call, q)] == []

    assert children.wait(children.fork(work)) == 0
    assert q.qsize() == 1


def test_readers_in_a_forked_child_are_refused(children):
    q = EventQueue()
    reader = q.subscribe(start="earliest")
    q.put("parent's")

    def work():
        assert [name for name, call in READER_CALLS.items() if not is_refused(call, reader)] == []
        assert is_refused(lambda q: q.subscribe(), q)
        assert is_refused(lambda q: q.read(0, 1), q)
        assert is_refused(lambda q: q.clear(), q)

    assert children.wait(children.fork(work)) == 0
    assert reader.get() == "parent's"


def test_an_index_queue_in_a_forked_child_is_refused(children):
    indices = IndexQueue(4, full=True)

    def work():
        for call in (IndexQueue.pop, IndexQueue.pop_if_full, IndexQueue.qsize, len, lambda q: q.push(0)):
            assert is_refused(call, indices)
        own = IndexQueue(4, full=True)
        assert own.pop() == 0

    assert children.wait(children.fork(work)) == 0
    assert indices.pop() == 0


@pytest.mark.parametrize("kind", MAKERS)
def test_a_queue_that_the_child_makes_itself_works_there(kind, children):
    q = MAKERS[kind]()

    def work():
        own = MAKERS[kind]()
        taken = own.subscribe() if kind == "events" else own
        own.put("x")
        assert taken.get(timeout=5) == "x"

    assert children.wait(children.fork(work)) == 0
    q.put("the parent goes on")


@pytest.mark.parametrize("kind", MAKERS)
def test_a_child_may_look_at_it_close_it_and_collect_it(kind, children):
    q = MAKERS[kind]()
    for number in range(5):
        q.put([number])
    q.put(q)  # a cycle

    def work():
        nonlocal q
        assert "without a name" in repr(q)
        assert q.closed
        q.close()
        q = None
        gc.collect()

    assert children.wait(children.fork(work)) == 0
    assert q.qsize() == 6


@pytest.mark.parametrize("kind", MAKERS)
def test_a_process_of_multiprocessing_that_gets_one_ends_with_an_error(kind):
    """It would lose what it puts, and exit with 0."""
    q = MAKERS[kind]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads, from Python 3.12 on
        process = multiprocessing.get_context("fork").Process(target=q.put, args=("x",))
        process.start()
    process.join(60)
    assert process.exitcode == 1
    assert q.qsize() == 0


@pytest.mark.parametrize("maker", ["BoundedQueue(8)", "GrowingQueue()"])
def test_a_child_that_returns_from_a_handler_into_a_wait_is_refused(maker, children):
    child = children.start(
        f"""
import os, signal, queueduct
from tests.support.children import fork
q = queueduct.{maker}
forked = []
def on_signal(*_):
    forked.append(fork())
    if forked[0] != 0:
        q.put("x")
signal.signal(signal.SIGALRM, on_signal)
signal.setitimer(signal.ITIMER_REAL, 0.05)
try:
    item = q.get(timeout=60)
except queueduct.QueueNotShared:
    os._exit(7)
print(item, os.waitstatus_to_exitcode(os.waitpid(forked[0], 0)[1]))
"""
    )
    out, err = child.communicate(timeout=60)
    assert (out, err) == ("x 7\n", "")


class Forking:
    """An argument whose conversion forks; the parent goes on when the child has ended."""

    def __init__(self) -> None:
        self.pid = -1

    def fork(self):
        self.pid = fork()
        if self.pid:
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return 1

    __index__ = fork

    def __float__(self):
        return float(self.fork())

    def __iter__(self):
        yield "y"
        self.fork()
        yield "z"


FORKED_IN = {
    "put_many": lambda q, taken, x: q.put_many(x),
    "put": lambda q, taken, x: q.put("y", timeout=x),
    "get": lambda q, taken, x: taken.get(timeout=x),
    "get_many": lambda q, taken, x: taken.get_many(x),
    "get_many_timeout": lambda q, taken, x: taken.get_many(5, timeout=x),
}


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("call", FORKED_IN)
def test_a_call_whose_own_argument_forks_is_refused_in_the_child(kind, call):
    q = MAKERS[kind]()
    taken = q.subscribe() if kind == "events" else q
    q.put("x")
    argument = Forking()
    try:
        FORKED_IN[call](q, taken, argument)
    except QueueNotShared:
        os._exit(7 if argument.pid == 0 else 1)
    if argument.pid == 0:
        os._exit(0)
    assert argument.status == 7


def test_a_fork_that_executes_another_program_is_no_concern(children):
    q = BoundedQueue(8)
    q.put("x")
    assert children.run("print('other')") == "other\n"
    assert q.get() == "x"


def test_the_error_is_a_queueduct_error_and_no_closed_handle():
    """Who ends quietly when a handle was closed must not do so here."""
    assert issubclass(QueueNotShared, queueduct.QueueductError)
    assert not issubclass(QueueNotShared, queueduct.QueueClosed)
