"""The lag of readers in items and time, their status, and the age of the oldest item."""

from __future__ import annotations

import os
import time

import pytest

import queueduct
from queueduct.monitoring import Monitor, QueueSeen, Status
from tests.monitoring.looking import look, watched_until
from tests.support.deadline import until
from tests.support.kinds import CLASSES


def test_a_reader_is_ok_then_stalled_when_it_stops_then_ok_again(monitor):
    with queueduct.EventQueue.create("q", item="f8") as q, q.subscribe("slow") as reader:
        q.put(1.0)
        reader.get()
        reader.commit()
        (seen,) = look(monitor).readers
        assert (seen.name, seen.label, seen.lag, seen.lag_seconds, seen.status) == ("slow", "slow", 0, 0.0, Status.OK)
        q.put_many([1.0] * 10)
        stalled = watched_until(monitor, lambda seen: seen.worst == Status.STALLED)
        assert stalled.readers[0].lag == 10
        reader.get_many(4)
        reader.commit()
        assert look(monitor).readers[0].status == Status.OK
        assert look(monitor).readers[0].items_out > 0


def test_a_reader_that_is_slower_than_the_producers_is_behind(monitor):
    with queueduct.EventQueue.create("q", item="f8") as q, q.subscribe() as reader:

        def work(seen: QueueSeen) -> bool:
            q.put_many([1.0] * 10)
            reader.get_many(3)
            return seen.worst == Status.BEHIND

        seen = watched_until(monitor, work)
        assert seen.readers[0].label == "(ephemeral 1)"
        assert seen.readers[0].is_attached


def test_a_durable_reader_that_nobody_has_is_unattended_also_when_its_process_was_killed(monitor, children):
    with queueduct.EventQueue.create("q", item="f8") as q:
        ready, told = os.pipe()

        def read_for_ever() -> None:
            with queueduct.open("q") as mine, mine.subscribe("archive"):
                os.write(told, b"!")
                time.sleep(60)

        pid = children.fork(read_for_ever)
        assert os.read(ready, 1) == b"!"
        assert look(monitor).worst == Status.OK
        children.kill(pid)
        assert look(monitor).worst == Status.UNATTENDED
        os.close(ready)
        os.close(told)
        assert q.stats().readers == 1


def test_a_dropped_reader_is_the_worst_and_a_loss(monitor):
    with (
        queueduct.EventQueue.create("q", item="f8", max_bytes=1 << 20, on_full="drop_slowest") as q,
        q.subscribe("slow", start="earliest"),
    ):
        for _ in range(30):
            q.put_many([1.0] * 10000)
        seen = look(monitor)
        assert (seen.worst, seen.losses["readers_dropped"]) == (Status.DROPPED, 1)


def test_the_lag_in_seconds_is_the_age_of_the_first_item_that_is_not_read(monitor):
    with queueduct.EventQueue.create("q", item="f8") as q, q.subscribe("slow") as reader:
        put_at = []
        for number in range(20):
            look(monitor)
            q.put(float(number))
            put_at.append(time.monotonic())
            look(monitor)
            time.sleep(0.005)
        reader.get_many(7)
        reader.commit()
        (seen,) = look(monitor).readers
        assert seen.lag == 13
        assert not seen.is_lag_longer
        assert seen.lag_seconds == pytest.approx(time.monotonic() - put_at[7], abs=0.05)
        assert look(monitor).oldest_seconds == pytest.approx(time.monotonic() - put_at[7], abs=0.05)


def test_a_lag_from_before_the_monitor_is_at_least_as_long_as_it_has_watched():
    with queueduct.EventQueue.create("q", item="f8") as q, q.subscribe("slow"):
        q.put(1.0)
        with Monitor() as monitor:
            began = time.monotonic()
            look(monitor)
            (seen,) = look(monitor).readers
            assert seen.is_lag_longer
            assert 0 <= seen.lag_seconds <= time.monotonic() - began


@pytest.mark.parametrize("kind", ["bounded", "growing", "overwriting", "slots"])
def test_the_oldest_item_of_a_queue_ages_until_it_is_got(monitor, kind):
    with CLASSES[kind].create("q", item="f8") as q:
        assert look(monitor).oldest_seconds == 0
        q.put(1.0)
        put_at = time.monotonic()
        until(lambda: look(monitor).oldest_seconds > 0.05, "an old item")
        seen = look(monitor)
        assert seen.oldest_seconds == pytest.approx(time.monotonic() - put_at, abs=0.05)
        assert not seen.is_oldest_longer
        q.put(2.0)
        q.get()
        assert look(monitor).oldest_seconds < seen.oldest_seconds
        q.get()
        assert look(monitor).oldest_seconds == 0
