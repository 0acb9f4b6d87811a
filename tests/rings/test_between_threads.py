"""Many producers and many consumers in one process.

Allowed: each item exactly once, and what a consumer gets of one producer in that producer's order.
"""

from __future__ import annotations

import threading

import pytest

from queueduct import BoundedQueue
from tests.support import traffic

PRODUCERS = CONSUMERS = 4
LOCAL = {
    "references, one at a time": traffic.Form({}, traffic.put_each(lambda n: n), traffic.get_each(lambda n: n)),
    "references, in batches": traffic.Form(
        {}, traffic.put_batches(lambda numbers: numbers, 50), traffic.get_batches(lambda items: items, 70)
    ),
}
pytestmark = pytest.mark.usefixtures("short_turns")


def run(q, form, count):
    got: list = []
    errors: list = []

    def guarded(work, *arguments):
        try:
            work(*arguments)
        except BaseException as error:
            errors.append(error)
            q.shutdown(immediate=True)

    def start(work, *arguments):
        thread = threading.Thread(target=guarded, args=(work, *arguments))
        thread.start()
        return thread

    consumers = [start(lambda: got.append(traffic.received(form, q))) for _ in range(CONSUMERS)]
    producers = [start(form.put, q, n, count) for n in range(PRODUCERS)]
    for thread in producers:
        thread.join()
    q.shutdown()
    for thread in consumers:
        thread.join()
    assert errors == []
    traffic.check(got, PRODUCERS, count)
    assert q.empty()


@pytest.mark.parametrize("name", list(LOCAL))
def test_a_million_references_come_exactly_once_and_in_order(name):
    run(BoundedQueue(1024), LOCAL[name], 250_000)


@pytest.mark.parametrize("name", list(LOCAL))
@pytest.mark.parametrize("capacity", [2, 16])
def test_a_small_ring_of_references(name, capacity):
    run(BoundedQueue(capacity), LOCAL[name], 5_000)


@pytest.mark.parametrize("name", ["bytes, one at a time", "bytes, in batches", "records, in batches"])
def test_a_million_items_of_a_named_queue(name):
    form = traffic.FORMS[name]
    with BoundedQueue.create("q", 1024, **form.create) as q:
        run(q, form, 250_000)


@pytest.mark.parametrize("name", list(traffic.FORMS))
def test_a_small_ring_of_a_named_queue(name):
    form = traffic.FORMS[name]
    with BoundedQueue.create("q", 8, **form.create) as q:
        run(q, form, 5_000)


def test_a_handle_for_each_thread_is_as_good_as_one_for_all():
    form = traffic.FORMS["bytes, in batches"]
    with BoundedQueue.create("q", 64) as q:

        class Apart:
            """Opens the queue anew in each thread."""

            handles = threading.local()

            def __getattr__(self, name):
                if not hasattr(self.handles, "queue"):
                    self.handles.queue = BoundedQueue.open("q")
                return getattr(self.handles.queue, name)

            def __iter__(self):
                return iter(self.__getattr__("get"), None)

        run(Apart(), form, 20_000)
        assert q.empty()
