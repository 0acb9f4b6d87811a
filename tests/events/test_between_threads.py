"""Many writers and many readers of one log in one process: the very objects that were put, to everybody.

Allowed: every reader gets every object from its place on, all in the same order, which keeps the order of each writer.
"""

from __future__ import annotations

import gc
import sys
import threading

import pytest

from queueduct import EventQueue
from tests.support import traffic

WRITERS, READERS = 4, 8
pytestmark = pytest.mark.usefixtures("short_turns")


class Numbered:
    """Something that can only have come by reference."""

    __slots__ = ("number",)

    def __init__(self, number):
        self.number = number


LOCAL = {
    "one at a time": (traffic.put_each(Numbered), lambda reader: ([item] for item in reader)),
    "in batches": (
        traffic.put_batches(lambda numbers: [Numbered(n) for n in numbers], 50),
        traffic.get_batches(lambda items: items, 70),
    ),
}


def in_threads(works, on_error):
    """Starts each in a thread; the function that waits for all of them and gives their results."""
    results, errors, threads = [], [], []

    def guarded(work):
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)
            on_error()

    for work in works:
        threads.append(threading.Thread(target=guarded, args=(work,)))
        threads[-1].start()

    def wait():
        for thread in threads:
            thread.join()
        assert errors == []
        return results

    return wait


def run(q, put, get, count):
    """What each reader got, in its order."""

    def read(reader):
        with reader:
            return [item for part in get(reader) for item in part]

    readers = [q.subscribe() for _ in range(READERS)]
    wait_for_readers = in_threads([lambda r=r: read(r) for r in readers], q.shutdown)
    in_threads([lambda n=n: put(q, n, count) for n in range(WRITERS)], q.shutdown)()
    q.shutdown()
    return wait_for_readers()


@pytest.mark.parametrize("name", list(LOCAL))
@pytest.mark.parametrize(("max_bytes", "count"), [(1 << 20, 50_000), (1 << 10, 5_000)])
def test_every_reader_gets_every_object_itself_in_one_order(name, max_bytes, count):
    put, get = LOCAL[name]
    with EventQueue(max_bytes=max_bytes) as q:
        got = run(q, put, get, count)
    witness = traffic.Witness(WRITERS)
    witness.see([item.number for item in got[0]])
    assert (len(got), witness.count) == (READERS, WRITERS * count)
    for others in got[1:]:
        assert len(others) == len(got[0])
        assert all(mine is theirs for mine, theirs in zip(got[0], others, strict=True))


def test_objects_that_all_have_read_are_let_go():
    one = object()
    before = sys.getrefcount(one)
    with EventQueue(max_bytes=1 << 10) as q:
        got = run(q, lambda q, _, count: [q.put(one) for _ in range(count)], lambda reader: [list(reader)], 1_000)
        assert sum(map(len, got)) == READERS * WRITERS * 1_000
        del got
        assert sys.getrefcount(one) <= before + 1024 // 8
    del q
    gc.collect()
    assert sys.getrefcount(one) == before


@pytest.mark.parametrize("name", ["bytes, in batches", "records, in batches"])
def test_threads_share_the_handle_of_a_named_queue(name):
    form = traffic.FORMS[name]
    with EventQueue.create("q", max_bytes=1 << 16, **form.create) as q:
        got = run(q, form.put, form.get, 5_000)
    for numbers in got:
        witness = traffic.Witness(WRITERS)
        witness.see(numbers)
        assert witness.count == WRITERS * 5_000
