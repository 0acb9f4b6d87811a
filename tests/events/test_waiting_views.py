"""Reader.view with block or timeout: it waits in its with block, and an interrupt loses no record."""

from __future__ import annotations

import signal
import threading
import time

import pytest

import queueduct
from queueduct import EventQueue, ShutDown
from tests.support.deadline import PATIENCE_SECONDS


@pytest.fixture
def q():
    with EventQueue.create("q", item="i8") as made:
        yield made


@pytest.fixture
def reader(q):
    return q.subscribe(start="earliest")


def test_a_view_without_both_still_never_waits(reader):
    with reader.view() as array:
        assert len(array) == 0
    with reader.view(10, timeout=None) as array:
        assert len(array) == 0


def test_a_view_with_a_timeout_waits_and_raises_empty(q, reader):
    start = time.monotonic()
    with pytest.raises(queueduct.Empty), reader.view(timeout=0.1):
        pass
    assert time.monotonic() - start >= 0.09
    with pytest.raises(queueduct.Empty), reader.view(timeout=0):
        pass
    q.put(7)
    with reader.view(timeout=0) as array:
        assert array.tolist() == [7]


@pytest.mark.parametrize("options", [{"block": True}, {"timeout": PATIENCE_SECONDS}])
def test_a_view_waits_for_the_first_record(q, reader, options):
    thread = threading.Timer(0.05, q.put, (1,))
    thread.start()
    with reader.view(5, **options) as array:
        assert array.tolist() == [1]
    thread.join(PATIENCE_SECONDS)
    assert reader.position == 1


@pytest.mark.parametrize("end", ["shutdown", "close"])
def test_a_waiting_view_is_told_of_the_end(q, reader, end):
    thread = threading.Timer(0.05, getattr(q, end))
    thread.start()
    expected = ShutDown if end == "shutdown" else queueduct.QueueClosed
    with pytest.raises(expected), reader.view(block=True):
        pass
    thread.join(PATIENCE_SECONDS)


def test_a_handler_that_raises_ends_the_wait_and_loses_nothing(q, reader):
    class Interrupted(Exception):
        pass

    def handler(number, frame):
        raise Interrupted

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(Interrupted), reader.view(block=True):
            pass
    finally:
        signal.signal(signal.SIGALRM, before)
    q.put(3)
    with reader.view(timeout=PATIENCE_SECONDS) as array:
        assert array.tolist() == [3]


@pytest.mark.parametrize("timeout", [-1, float("nan")])
def test_a_wrong_timeout_is_refused_before_the_with(reader, timeout):
    with pytest.raises(ValueError, match="timeout must be a non-negative number or None"):
        reader.view(timeout=timeout)
