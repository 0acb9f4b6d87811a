"""How long a call waits: block and timeout as in queue.Queue, Ctrl-C, and what a wait costs."""

from __future__ import annotations

import math
import signal
import time
from fractions import Fraction
from functools import partial

import pytest

import queueduct
from queueduct import BoundedQueue
from tests.support.cases import CASES, EACH_ONCE, PLAIN
from tests.support.deadline import is_task_parked, until
from tests.support.threads import parked, results

ERRORS = {"put": queueduct.Full, "put_many": queueduct.Full, "get": queueduct.Empty, "get_many": queueduct.Empty}


class Waiting:
    """A full queue and an empty one of a row, and every call that has to wait there."""

    def __init__(self, case):
        self.case = case
        self.full, self.empty = case.make(2, "full"), case.make(2, "empty")
        self.reader, self.waiter = case.consumer(self.full), case.consumer(self.empty)
        case.fill(self.full)
        self.calls = {
            "put": partial(self.full.put, case.item(3)),
            "put_many": partial(self.full.put_many, case.items(3, 4)),
            "get": self.waiter.get,
            "get_many": partial(self.waiter.get_many, 5),
        }

    def let_go_on(self):
        """Make room in the one, and put an item into the other."""
        while self.reader.try_get() is not None:
            pass
        self.empty.put(self.case.item(1))


@pytest.fixture
def waiting(plain):
    return Waiting(plain)


@pytest.fixture(params=[name for name in PLAIN if name in EACH_ONCE])
def shared(request):
    """A row whose items go to one consumer each."""
    return CASES[request.param]


@pytest.mark.parametrize("call", ERRORS)
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
def test_what_may_not_wait_gives_up_at_once(waiting, call, how):
    with pytest.raises(ERRORS[call]):
        waiting.calls[call](**how)


@pytest.mark.parametrize("call", ERRORS)
@pytest.mark.parametrize("timeout", [-1, -1e-9, -math.inf, math.nan])
def test_a_timeout_that_is_no_length_of_time_is_refused(waiting, call, timeout):
    with pytest.raises(ValueError, match="timeout must be a non-negative number or None"):
        waiting.calls[call](timeout=timeout)


@pytest.mark.parametrize("call", ERRORS)
@pytest.mark.parametrize("timeout", ["1", b"1", [1], 1j])
def test_a_timeout_that_is_no_number_is_a_type_error(waiting, call, timeout):
    with pytest.raises(TypeError):
        waiting.calls[call](timeout=timeout)


@pytest.mark.parametrize("call", ERRORS)
@pytest.mark.parametrize("timeout", [None, 1e9, 1e300, math.inf, 10**30])
def test_a_very_long_timeout_waits_for_ever(waiting, call, timeout):
    threads = parked([partial(waiting.calls[call], timeout=timeout)])
    waiting.let_go_on()
    assert ERRORS[call] not in results(threads)


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


def test_a_timeout_lasts_as_long_as_it_says(waiting):
    for call, error in ERRORS.items():
        start = time.monotonic()
        with pytest.raises(error):
            waiting.calls[call](timeout=0.25)  # longer than one sleep
        assert time.monotonic() - start >= 0.25


def test_every_waiter_is_served_in_the_end(shared):
    q = shared.make(2)
    waiters = parked([q.get] * 20)
    for i in range(20):
        q.put(shared.item(i))
    assert sorted(shared.numbers(results(waiters))) == list(range(20))


def test_one_batch_wakes_all_who_wait_for_its_items(shared):
    """One wake-up is sent; each woken one sends the next as long as something is left."""
    q = shared.make(64)
    waiters = parked([q.get] * 10)
    q.put_many(shared.items(*range(10)))
    assert sorted(shared.numbers(results(waiters))) == list(range(10))


def test_a_batch_out_wakes_all_who_wait_for_room(shared):
    q = shared.make(2)
    shared.fill(q)
    waiters = parked(partial(q.put, shared.item(7)) for _ in range(2))
    assert shared.numbers(q.get_many(2)) == [0, 1]
    results(waiters)
    assert shared.numbers(q.get_many(9)) == [7, 7]


INTERRUPTED = """
import sys, time
from tests.support.cases import CASES
case = CASES[sys.argv[1]]
full, empty = case.make(2, "full"), case.make(2, "empty")
reader, waiter = case.consumer(full), case.consumer(empty)
case.fill(full)
for wait in (
    lambda: waiter.get(),
    lambda: waiter.get(timeout=60),
    lambda: waiter.get_many(5),
    lambda: list(waiter),
    lambda: full.put(case.item(3)),
    lambda: full.put_many(case.items(3, 4)),
):
    print("ready", flush=True)
    try:
        wait()
    except KeyboardInterrupt:
        print("interrupted", time.monotonic(), flush=True)
        sys.stdin.readline()
"""


@pytest.mark.parametrize("name", PLAIN)
def test_ctrl_c_ends_a_wait_within_a_second(children, name):
    child = children.start(INTERRUPTED, name)
    for _ in range(6):
        assert child.stdout.readline() == "ready\n"
        until(lambda: is_task_parked(f"/proc/{child.pid}"), "the wait")
        start = time.monotonic()
        child.send_signal(signal.SIGINT)
        word, at = child.stdout.readline().split()
        assert word == "interrupted"
        assert float(at) - start < 1
        child.stdin.write("go on\n")
        child.stdin.flush()
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
from tests.support.cases import CASES
case, how = CASES[sys.argv[1]], sys.argv[2]
q = case.make(2, how)
reader = case.consumer(q)
if how == "put":
    case.fill(q)
def spent():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
def wait(seconds):
    try:
        q.put(case.item(3), timeout=seconds) if how == "put" else reader.get(timeout=seconds)
    except (queueduct.Empty, queueduct.Full):
        pass
wait(0.1)   # joins, warms up
before, start = spent(), time.monotonic()
wait(2)
print((spent() - before) / (time.monotonic() - start))
"""


@pytest.mark.parametrize("name", PLAIN)
def test_a_waiting_process_costs_next_to_nothing(children, name):
    """Processor time of two seconds of waiting: below 1 % of a core when the machine is calm, 5 % is the limit here."""
    for how, process in [(how, children.start(IDLE, name, how)) for how in ("get", "put")]:
        out, err = process.communicate(timeout=60)
        assert err == ""
        assert float(out) < 0.05, f"{how}: {float(out):.2%} of a core"
