"""peek, latest and readings: any number of readers see the newest message, whole, and none takes it."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time

import numpy as np
import pytest

import queueduct
from queueduct import OverwritingQueue, QueueClosed, ShutDown
from tests.support.deadline import PATIENCE_SECONDS, until

SIZES = {"short": 16, "long": 1000}  # words of a frame: copied under the header's lock, or after it


@pytest.fixture(params=[1, 2, 5])
def q(request):
    with OverwritingQueue.create("q", request.param, item="i8") as made:
        yield made


def frame_queue(words, capacity):
    return OverwritingQueue.create("frames", capacity, item=np.dtype(("<i8", (words,))))


def test_the_newest_is_seen_again_and_again_and_stays(q):
    assert q.peek() is None
    assert q.peek(default=-1) == -1
    for number in range(12):
        q.put(number)
        assert [q.peek(), q.latest()] == [number, (number, number)]
        assert q.latest(newer_than=number - 1 if number else None) == (number, number)
    assert q.stats().gets == 0
    assert q.stats().puts == 12
    assert q.qsize() == min(q.capacity, 12)
    assert q.get() == 12 - q.capacity


def test_latest_waits_for_a_newer_one(q):
    with pytest.raises(queueduct.Empty):
        q.latest(block=False)
    with pytest.raises(queueduct.Empty):
        q.latest(timeout=0)
    q.put(1)
    start = time.monotonic()
    with pytest.raises(queueduct.Empty):
        q.latest(newer_than=0, timeout=0.1)
    assert time.monotonic() - start >= 0.09
    thread = threading.Timer(0.05, q.put, (2,))
    thread.start()
    assert q.latest(newer_than=0, timeout=PATIENCE_SECONDS) == (2, 1)
    thread.join(PATIENCE_SECONDS)


def test_what_a_consumer_has_got_is_gone(q):
    q.put(1)
    q.get()
    assert q.peek() is None
    q.put(2)
    assert q.latest() == (2, 1)


def test_the_end_comes_after_the_last_value(q):
    q.put(1)
    readings = q.readings()
    assert next(readings) == 1
    q.put(2)
    q.shutdown()
    assert list(readings) == [2]
    assert readings.position == 1
    with pytest.raises(ShutDown):
        q.latest(newer_than=1)
    assert q.peek() == 2
    q.shutdown(immediate=True)
    assert q.peek() is None


@pytest.mark.parametrize("end", ["shutdown", "close"])
def test_waiting_readers_are_told_of_the_end(q, end):
    q.put(1)
    thread = threading.Timer(0.05, getattr(q, end))
    thread.start()
    with pytest.raises(ShutDown if end == "shutdown" else QueueClosed):
        q.latest(newer_than=0)
    thread.join(PATIENCE_SECONDS)


def test_bytes_and_objects():
    texts = OverwritingQueue.create("bytes", 2, message_bytes=8)
    texts.put(b"12345678")
    assert texts.peek() == b"12345678"
    objects = OverwritingQueue.create("objects", 2, item=object)
    objects.put({"a": 1})
    assert objects.latest() == ({"a": 1}, 0)
    assert objects.peek() == {"a": 1}


@pytest.mark.parametrize("wrong", ["0", 1.5, True, -2, 1 << 62])
def test_a_wrong_position_is_refused(q, wrong):
    with pytest.raises((TypeError, ValueError), match="newer_than must be"):
        q.latest(newer_than=wrong, block=False)


def test_a_handler_that_raises_ends_the_wait(q):
    class Interrupted(Exception):
        pass

    def handler(number, frame):
        raise Interrupted

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(Interrupted):
            q.latest()
    finally:
        signal.signal(signal.SIGALRM, before)


def test_coroutines_wait_for_newer_ones(q):
    async def main():
        seen = []

        async def read():
            async for item in q.readings():
                seen.append(int(item))

        readers = [asyncio.create_task(read()) for _ in range(5)]
        for number in range(5):
            await q.aput(number)
            while seen.count(number) < 5:
                await asyncio.sleep(0.001)
        with pytest.raises(queueduct.Empty):
            await q.alatest(newer_than=4, timeout=0.02)
        late = asyncio.create_task(q.alatest(newer_than=4))
        await asyncio.sleep(0.02)
        late.cancel()
        q.shutdown()
        await asyncio.gather(*readers)
        return sorted(seen)

    assert asyncio.run(asyncio.wait_for(main(), PATIENCE_SECONDS)) == sorted(list(range(5)) * 5)


def test_waiting_for_a_newer_one_costs_next_to_nothing():
    q = OverwritingQueue.create("q", 2, item="i8")
    q.put(1)

    async def main():
        task = asyncio.create_task(q.alatest(newer_than=0))
        await asyncio.sleep(0.05)
        before = time.process_time()
        await asyncio.sleep(0.5)
        spent = time.process_time() - before
        q.put(2)
        assert await task == (2, 1)
        return spent

    assert asyncio.run(asyncio.wait_for(main(), PATIENCE_SECONDS)) < 0.15


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("capacity", [1, 2, 8])
def test_no_frame_is_torn_and_none_goes_back_while_writers_are_killed(size, capacity, children):
    """Every word of a frame is its number; positions never fall, whichever writer dies where."""
    words = SIZES[size]
    q = frame_queue(words, capacity)

    def write():
        mine = frame_queue_opened()
        number = 0
        while True:
            mine.put(np.full(words, number, "<i8"))
            number += 1

    def frame_queue_opened():
        return OverwritingQueue.open("frames")

    for _ in range(6):
        writers = [children.fork(write) for _ in range(2)]
        before = q.stats().puts
        until(lambda before=before: q.stats().puts > before + 50, "some frames")
        last = -1
        end = time.monotonic() + 0.1
        killed = False
        while time.monotonic() < end:
            try:
                frame, position = q.latest(newer_than=last if last >= 0 else None, timeout=0.2)
            except queueduct.Empty:
                break
            assert position > last
            assert (frame == frame[0]).all(), frame
            last = position
            if not killed and time.monotonic() > end - 0.05:
                os.kill(writers[0], signal.SIGKILL)
                killed = True
        for pid in writers:
            os.kill(pid, signal.SIGKILL)
            children.wait(pid)
    frame = q.peek()
    assert frame is None or (frame == frame[0]).all()
    stats = q.stats()
    assert (stats.gets, stats.lost_with_consumer) == (0, 0)


def test_readers_that_are_killed_harm_no_writer(children):
    q = frame_queue(1000, 2)
    q.put(np.zeros(1000, "<i8"))

    def read():
        mine = OverwritingQueue.open("frames")
        while True:
            mine.peek()

    for round_ in range(10):
        pid = children.fork(read)
        for number in range(200):
            q.put(np.full(1000, number, "<i8"))
        os.kill(pid, signal.SIGKILL)
        children.wait(pid)
        q.put(np.full(1000, round_, "<i8"))
        assert q.peek()[999] == round_
    assert q.stats().gets == 0
