"""How long a call waits: block and timeout as in queue.Queue, Ctrl-C, and what a wait costs."""

from __future__ import annotations

import math
import signal
import threading
import time
from fractions import Fraction

import pytest

import queueduct
from queueduct import BoundedQueue
from tests.support.deadline import is_task_parked, until, until_parked


def full_and_empty(named):
    make = (lambda name: BoundedQueue.create(name, 2)) if named else (lambda name: BoundedQueue(2))
    full, empty = make("full"), make("empty")
    full.put_many([b"1", b"2"])
    return full, empty


CALLS = {
    "put": (queueduct.Full, lambda full, empty, **how: full.put(b"3", **how)),
    "put_many": (queueduct.Full, lambda full, empty, **how: full.put_many([b"3", b"4"], **how)),
    "get": (queueduct.Empty, lambda full, empty, **how: empty.get(**how)),
    "get_many": (queueduct.Empty, lambda full, empty, **how: empty.get_many(5, **how)),
}


@pytest.fixture(params=[False, True], ids=["local", "named"])
def queues(request):
    return full_and_empty(request.param)


@pytest.fixture(params=list(CALLS))
def call(request, queues):
    error, function = CALLS[request.param]
    return error, lambda **how: function(*queues, **how)


@pytest.mark.parametrize(
    "how",
    [
        {"block": False},
        {"block": False, "timeout": 100},
        {"block": False, "timeout": -1},
        {"block": 0, "timeout": None},
        {"timeout": 0},
        {"timeout": 0.0},
        {"timeout": -0.0},
        {"timeout": 1e-9},
        {"timeout": Fraction(1, 1000)},
        {"timeout": False},
    ],
    ids=str,
)
def test_what_may_not_wait_gives_up_at_once(call, how):
    error, wait = call
    with pytest.raises(error):
        wait(**how)


@pytest.mark.parametrize("timeout", [-1, -1e-9, -math.inf, math.nan])
def test_a_timeout_that_is_no_length_of_time_is_refused(call, timeout):
    _, wait = call
    with pytest.raises(ValueError, match="timeout must be a non-negative number or None"):
        wait(timeout=timeout)


@pytest.mark.parametrize("timeout", ["1", b"1", [1], 1j])
def test_a_timeout_that_is_no_number_is_a_type_error(call, timeout):
    _, wait = call
    with pytest.raises(TypeError):
        wait(timeout=timeout)


@pytest.mark.parametrize("timeout", [None, 1e9, 1e300, math.inf, 10**30])
@pytest.mark.parametrize("name", list(CALLS))
def test_a_very_long_timeout_waits_for_ever(queues, name, timeout):
    full, empty = queues
    done = []
    waiter = threading.Thread(target=lambda: done.append(CALLS[name][1](full, empty, timeout=timeout)))
    waiter.start()
    until_parked(waiter)
    full.get_many(2)
    empty.put(b"1")
    waiter.join(30)
    assert len(done) == 1


def test_positional_arguments_are_those_of_queue_queue():
    q = BoundedQueue(2)
    q.put(1, True, 0.01)
    q.put(2, False)
    with pytest.raises(queueduct.Full):
        q.put(3, True, 0.01)
    assert q.get(True, 0.01) == 1
    assert q.get(False) == 2
    with pytest.raises(queueduct.Empty):
        q.get(True, 0.01)


def test_a_timeout_lasts_as_long_as_it_says(call):
    error, wait = call
    start = time.monotonic()
    with pytest.raises(error):
        wait(timeout=0.25)  # longer than one sleep
    assert time.monotonic() - start >= 0.25


def test_every_waiter_is_served_in_the_end(queues):
    _, q = queues
    got = []
    waiters = [threading.Thread(target=lambda: got.append(q.get())) for _ in range(20)]
    for waiter in waiters:
        waiter.start()
    until_parked(*waiters)
    for i in range(20):
        q.put(b"%d" % i)
    for waiter in waiters:
        waiter.join(30)
    assert sorted(got) == sorted(b"%d" % i for i in range(20))


def test_one_batch_wakes_all_who_wait_for_its_items(queues):
    """One wake-up is sent; each woken one sends the next as long as something is left."""
    _, q = queues
    big = BoundedQueue.create("big", 64) if q.name else BoundedQueue(64)
    got = []
    waiters = [threading.Thread(target=lambda: got.append(big.get())) for _ in range(10)]
    for waiter in waiters:
        waiter.start()
    until_parked(*waiters)
    big.put_many([b"x"] * 10)
    for waiter in waiters:
        waiter.join(30)
    assert got == [b"x"] * 10


def test_a_batch_out_wakes_all_who_wait_for_room(queues):
    q, _ = queues
    waiters = [threading.Thread(target=q.put, args=(b"x",)) for _ in range(2)]
    for waiter in waiters:
        waiter.start()
    until_parked(*waiters)
    assert q.get_many(2) == [b"1", b"2"]
    for waiter in waiters:
        waiter.join(30)
    assert q.get_many(9) == [b"x", b"x"]


INTERRUPTED = """
import sys, time, queueduct
how, named = sys.argv[1], sys.argv[2] == "named"
q = queueduct.BoundedQueue.create("q", 2) if named else queueduct.BoundedQueue(2)
if how.startswith("put"):
    q.put_many([b"1", b"2"])
calls = {
    "get": lambda: q.get(),
    "get with timeout": lambda: q.get(timeout=60),
    "put": lambda: q.put(b"3"),
    "get_many": lambda: q.get_many(5),
    "put_many": lambda: q.put_many([b"3", b"4"]),
    "iteration": lambda: list(q),
}
print("ready", flush=True)
try:
    calls[how]()
except KeyboardInterrupt:
    print("interrupted", time.monotonic(), flush=True)
"""


@pytest.mark.parametrize("named", ["local", "named"])
@pytest.mark.parametrize("how", ["get", "get with timeout", "put", "get_many", "put_many", "iteration"])
def test_ctrl_c_ends_a_wait_within_a_second(children, how, named):
    child = children.start(INTERRUPTED, how, named)
    assert child.stdout.readline() == "ready\n"
    until(lambda: is_task_parked(f"/proc/{child.pid}"), "the wait")
    start = time.monotonic()
    child.send_signal(signal.SIGINT)
    word, at = child.stdout.readline().split()
    assert word == "interrupted"
    assert float(at) - start < 1
    assert child.wait(30) == 0
    assert child.stderr.read() == ""


def test_a_signal_handler_that_returns_does_not_end_a_wait(children):
    child = children.start(
        """
import signal, queueduct
q = queueduct.BoundedQueue.create("q", 2)
signal.signal(signal.SIGUSR1, lambda *_: print("handled", flush=True))
signal.signal(signal.SIGUSR2, lambda *_: q.put(b"from a handler"))
print("ready", flush=True)
print(q.get())
"""
    )
    assert child.stdout.readline() == "ready\n"
    for _ in range(3):
        until(lambda: is_task_parked(f"/proc/{child.pid}"), "the wait")
        child.send_signal(signal.SIGUSR1)
        assert child.stdout.readline() == "handled\n"
    child.send_signal(signal.SIGUSR2)
    assert child.stdout.readline() == "b'from a handler'\n"


def test_a_signal_handler_may_close_the_queue_that_waits(children):
    child = children.start(
        """
import signal, queueduct
q = queueduct.BoundedQueue.create("q", 2)
signal.signal(signal.SIGUSR1, lambda *_: q.close())
print("ready", flush=True)
try:
    q.get()
except queueduct.QueueClosed:
    print("closed")
"""
    )
    assert child.stdout.readline() == "ready\n"
    until(lambda: is_task_parked(f"/proc/{child.pid}"), "the wait")
    child.send_signal(signal.SIGUSR1)
    assert child.stdout.readline() == "closed\n"


IDLE = """
import resource, sys, time, queueduct
how, named = sys.argv[1:]
q = queueduct.BoundedQueue.create(how, 2) if named == "named" else queueduct.BoundedQueue(2)
if how == "put":
    q.put_many([b"1", b"2"])
def spent():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
def wait(seconds):
    try:
        q.put(b"3", timeout=seconds) if how == "put" else q.get(timeout=seconds)
    except (queueduct.Empty, queueduct.Full):
        pass
wait(0.1)   # joins, warms up
before, start = spent(), time.monotonic()
wait(2)
print((spent() - before) / (time.monotonic() - start))
"""


def test_a_waiting_process_costs_next_to_nothing(children):
    """Processor time of two seconds of waiting: below 1 % of a core when the machine is calm, 5 % is the limit here."""
    waiting = {(how, named): children.start(IDLE, how, named) for how in ("get", "put") for named in ("local", "named")}
    for case, process in waiting.items():
        out, err = process.communicate(timeout=60)
        assert err == ""
        assert float(out) < 0.05, f"{case}: {float(out):.2%} of a core"
