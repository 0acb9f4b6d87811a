"""Every reader sees every item from its subscription on, each writer's in order."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from queueduct import EventQueue
from tests.support.ticks import FORMS, drain, numbers

WRITERS, READERS = 3, 4


@pytest.fixture(params=list(FORMS))
def form(request):
    return FORMS[request.param]


def test_every_reader_gets_every_item_in_order(form):
    make, item, number = form
    with make() as q:
        readers = [q.subscribe() for _ in range(5)]
        for i in range(20):
            q.put(item(i))
        q.put_many([item(i) for i in range(20, 200)])
        for reader in readers:
            assert [number(each) for each in drain(reader)] == list(range(200))
            assert reader.try_get() is None


def test_a_reader_sees_what_comes_after_its_subscription(form):
    make, item, number = form
    with make() as q:
        first = q.subscribe()
        q.put_many([item(i) for i in range(10)])
        second = q.subscribe()
        q.put_many([item(i) for i in range(10, 20)])
        assert [number(each) for each in drain(first)] == list(range(20))
        assert [number(each) for each in drain(second)] == list(range(10, 20))


def test_threads_that_write_and_read_at_once_miss_nothing(form):
    """3 writers, 4 readers, every form of get: each reader has all, and each writer's items in order."""
    make, item, number = form
    count = 600
    with make(max_bytes=1 << 16) as q:
        readers = [q.subscribe() for _ in range(READERS)]
        got: list[list[int]] = [[] for _ in readers]

        def write(writer):
            for i in range(0, count, 3):
                q.put(item(writer * count + i))
                q.put_many([item(writer * count + i + 1), item(writer * count + i + 2)])

        def read(mine, reader, batch):
            if batch == 1:
                mine += [number(each) for each in reader]
                return
            while len(mine) < WRITERS * count:
                mine += [number(each) for each in reader.get_many(batch)]

        writers = [threading.Thread(target=write, args=(n,)) for n in range(WRITERS)]
        others = [
            threading.Thread(target=read, args=(mine, reader, batch))
            for mine, reader, batch in zip(got, readers, (1, 1, 7, 1000), strict=True)
        ]
        for thread in writers + others:
            thread.start()
        for thread in writers:
            thread.join(60)
        q.shutdown()
        for thread in others:
            thread.join(60)
        for mine in got:
            assert sorted(mine) == list(range(WRITERS * count))
            for writer in range(WRITERS):
                theirs = [each for each in mine if each // count == writer]
                assert theirs == sorted(theirs)


WRITER = """
import sys, numpy as np, queueduct
number, count = int(sys.argv[1]), int(sys.argv[2])
with queueduct.open("q") as q:
    sys.stdin.readline()
    for first in range(0, count, 500):
        q.put_many(np.arange(first, first + 500, dtype="<u8") + number * count)
"""

READER = """
import sys, numpy as np, queueduct
writers, count = int(sys.argv[1]), int(sys.argv[2])
with queueduct.open("q") as q, q.subscribe() as reader:
    print("ready", flush=True)
    seen = 0
    following = np.arange(writers, dtype="<u8") * count
    while seen < writers * count:
        batch = reader.get_many(10_000)
        seen += len(batch)
        for number in range(writers):
            theirs = batch[batch // count == number]
            assert (theirs == np.arange(len(theirs), dtype="<u8") + following[number]).all()
            following[number] += len(theirs)
    print(seen, reader.lag)
"""


@pytest.mark.slow
@pytest.mark.timeout(2000)
def test_processes_that_write_and_read_at_once_miss_nothing(children, is_long):
    """8 readers, 4 writers, 10 million items, half of each in the short form; a log that holds a tenth of it all."""
    count, many = (2_500_000, 4) if is_long else (50_000, 2)
    q = EventQueue.create("q", item="<u8", max_bytes=many * count * 8 // 10)
    readers = [children.start(READER, many, count) for _ in range(2 * many)]
    for reader in readers:
        assert reader.stdout.readline() == "ready\n"
    writers = [children.start(WRITER, n, count) for n in range(many)]
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for process in writers + readers:
        out, err = process.communicate(timeout=1000)
        assert (process.returncode, err) == (0, "")
        assert out in ("", f"{many * count} 0\n")
    assert q.end == many * count
    assert q.stats().used_bytes <= q.stats().max_bytes


def test_a_batch_is_seen_as_a_whole():
    """One release a batch: a reader never sees a part of one that fits."""
    with EventQueue.create("q", item="<u8") as q:
        reader = q.subscribe()
        stop = threading.Event()

        def write():
            while not stop.is_set():
                q.put_many(numbers(100))

        writer = threading.Thread(target=write)
        writer.start()
        for _ in range(300):
            batch = reader.get_many(1_000_000)  # a multiple of a batch: whatever there is, it may be all of it
            assert len(batch) % 100 == 0
            assert (batch.reshape(-1, 100) == np.arange(100)).all()
        stop.set()
        writer.join(30)
