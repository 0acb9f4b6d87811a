"""Participants of real queues: who lives, who was killed, who is missed, and what each does."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

import queueduct
from tests.monitoring.looking import by_pid, look, watched_until
from tests.support.kinds import CLASSES


@pytest.mark.parametrize("kind", CLASSES)
def test_a_killed_producer_is_missed_at_the_next_look(monitor, children, kind):
    with CLASSES[kind].create("q", item="f8") as q:

        def put_for_ever() -> None:
            with queueduct.open("q") as mine:
                while True:
                    mine.try_put(1.0) or time.sleep(0.01)

        pid = children.fork(put_for_ever)
        seen = watched_until(monitor, lambda seen: by_pid(seen, pid))
        assert by_pid(seen, pid)[0].state == "alive"
        assert by_pid(seen, pid)[0].command
        children.kill(pid)
        seen = look(monitor)
        (missed,) = by_pid(seen, pid)
        assert missed.state in ("gone", "dead")
        assert seen.alive == 0
        assert seen.gone + seen.dead == 1
        q.try_put(2.0)  # an operation recovers what a dead one left, if only the lock of a log
        if q.kind != "events":
            q.get_many(100)
        (missed,) = by_pid(watched_until(monitor, lambda seen: seen.gone == 1), pid)
        assert missed.left_seconds is not None
        assert missed.items_in == 0


def test_a_killed_process_that_its_parent_has_not_asked_for_is_gone(monitor, children):
    """It keeps its pid and its start until then."""
    with queueduct.BoundedQueue.create("q", 16) as q:

        def put_once() -> None:
            with queueduct.open("q") as mine:
                mine.put(b"a")
                time.sleep(60)

        pid = children.fork(put_once)
        watched_until(monitor, lambda seen: by_pid(seen, pid))
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        (missed,) = by_pid(look(monitor), pid)
        assert missed.state == "gone"
        assert children.wait(pid) == -signal.SIGKILL
        assert q.qsize() == 1


def test_what_a_killed_consumer_held_makes_it_dead_and_its_redelivery_a_recovery(monitor, children):
    with queueduct.BoundedQueue.create("q", 16) as q:
        q.put_many([b"a", b"b"])
        ready, told = os.pipe()

        def hold() -> None:
            with queueduct.open("q") as mine:
                held = mine.lease(2)
                os.write(told, b"!")
                time.sleep(60)
                held.release()

        pid = children.fork(hold)
        assert os.read(ready, 1) == b"!"
        assert look(monitor).leased == 2
        children.kill(pid)
        seen = look(monitor)
        assert (seen.dead, seen.leased) == (1, 0)
        with q.lease(2):
            pass
        seen = look(monitor)
        assert (seen.dead, seen.gone, seen.recoveries["redelivered"]) == (0, 1, 2)
        os.close(ready)
        os.close(told)


def test_threads_and_leases_that_come_and_go_are_not_missed_as_long_as_their_process_takes_part(monitor):
    with queueduct.BoundedQueue.create("q", 16) as q:
        q.put(b"a")
        with q.lease(1):
            thread = threading.Thread(target=lambda: q.put(b"b"))
            thread.start()
            assert look(monitor).alive >= 2
            thread.join()
        seen = watched_until(monitor, lambda seen: seen.alive == 1)
        assert [each.state for each in seen.participants] == ["alive"]


@pytest.mark.parametrize("kind", CLASSES)
def test_a_process_that_closes_its_handle_and_goes_on_has_left(monitor, kind):
    first = CLASSES[kind].create("q", item="f8")
    first.put(1.0)
    assert look(monitor).alive == 1
    first.close()
    seen = look(monitor)
    assert [(each.pid, each.state) for each in seen.participants] == [(os.getpid(), "left")]
    assert (seen.alive, seen.gone, seen.dead) == (0, 0, 0)
    with queueduct.open("q") as again:
        again.put(2.0)
        assert [each.state for each in look(monitor).participants] == ["alive"]


def test_the_rate_of_each_participant_is_its_own(monitor, children):
    with queueduct.OverwritingQueue.create("q", 64, item="f8") as q:

        def put_slowly() -> None:
            with queueduct.open("q") as mine:
                while True:
                    mine.put(1.0)
                    time.sleep(0.001)

        q.put(1.0)
        pid = children.fork(put_slowly)
        seen = watched_until(monitor, lambda seen: any(each.items_in > 0 for each in by_pid(seen, pid)))
        assert [each.items_in for each in by_pid(seen, os.getpid())] == [0]
