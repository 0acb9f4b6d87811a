"""The queues that replace the standard library's, between threads."""

import pickle
import queue as standard
import sys
import threading

import pytest

import queueduct
import queueduct.queue as ours

pytestmark = pytest.mark.timeout(60)


def in_thread(function):
    results = []
    thread = threading.Thread(target=lambda: results.append(caught(function)))
    thread.start()
    return thread, results


def caught(function):
    try:
        return function()
    except Exception as error:
        return type(error)


def test_the_names_of_the_standard_module_are_there():
    assert ours.Empty is standard.Empty
    assert ours.Full is standard.Full
    assert ours.LifoQueue is standard.LifoQueue
    assert ours.PriorityQueue is standard.PriorityQueue
    assert ours.ShutDown is queueduct.ShutDown
    assert sys.version_info < (3, 13) or ours.ShutDown is standard.ShutDown


@pytest.mark.parametrize("maxsize", [1, 2, 3, 10])
def test_a_queue_takes_exactly_maxsize_items(maxsize):
    q = ours.Queue(maxsize)
    for lap in range(3):
        for number in range(maxsize):
            assert not q.full()
            q.put((lap, number))
        assert q.full()
        with pytest.raises(standard.Full):
            q.put_nowait(1)
        with pytest.raises(standard.Full):
            q.put(1, timeout=0.001)
        assert [q.get() for _ in range(maxsize)] == [(lap, number) for number in range(maxsize)]
        assert q.empty()


@pytest.mark.parametrize("maxsize", [0, 3])
def test_four_producers_and_four_consumers_pass_every_item_exactly_once(maxsize):
    q = ours.Queue(maxsize)
    seen = []

    def produce(first):
        for number in range(first, 8000, 4):
            q.put(number)

    def consume():
        for number in iter(q.get, None):
            seen.append(number)
            q.task_done()

    threads = [threading.Thread(target=consume) for _ in range(4)]
    threads += [threading.Thread(target=produce, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads[4:]:
        thread.join()
    q.join()
    assert q.unfinished_tasks == 0
    for _ in range(4):
        q.put(None)
    for thread in threads[:4]:
        thread.join()
    assert sorted(seen) == list(range(8000))


def test_a_shut_down_queue_wakes_a_waiting_getter():
    q = ours.Queue()
    thread, results = in_thread(q.get)
    q.shutdown()
    thread.join()
    assert results == [ours.ShutDown]
    with pytest.raises(ours.ShutDown):
        q.put(1)
    with pytest.raises(ours.ShutDown):
        q.get_nowait()


def test_a_shut_down_queue_wakes_a_waiting_putter_and_gives_what_is_in_it():
    q = ours.Queue(1)
    q.put("in")
    thread, results = in_thread(lambda: q.put("late"))
    q.shutdown()
    thread.join()
    assert results == [ours.ShutDown]
    assert q.get() == "in"
    with pytest.raises(ours.ShutDown):
        q.get()


def test_an_immediate_shutdown_drops_items_and_ends_join():
    q = ours.Queue()
    q.put(1)
    q.put(2)
    q.get()
    thread, results = in_thread(q.join)
    q.shutdown(immediate=True)
    q.task_done()  # of the one that was got
    thread.join()
    assert results == [None]
    assert q.qsize() == 0
    assert q.unfinished_tasks == 0


def test_a_queue_can_be_shut_down_twice_the_second_time_at_once():
    q = ours.Queue()
    q.put(1)
    q.shutdown()
    q.shutdown(immediate=True)
    q.shutdown()
    with pytest.raises(ours.ShutDown):
        q.get()
    q.join()


class Reversed(ours.Queue):
    def _get(self):
        return self.queue.pop()


def test_a_subclass_with_hooks_works_as_the_standard_librarys():
    q = Reversed(2)
    q.put(1)
    q.put(2)
    assert q.full()
    with pytest.raises(standard.Full):
        q.put_nowait(3)
    assert [q.get(), q.get()] == [2, 1]
    q.task_done()
    q.task_done()
    q.join()
    if sys.version_info < (3, 13):
        with pytest.raises(NotImplementedError, match="hooks"):
            q.shutdown()
    else:
        q.shutdown()
        with pytest.raises(ours.ShutDown):
            q.put(1)


class Named(ours.Queue):
    def __init__(self, name, maxsize=0):
        super().__init__(maxsize)
        self.name = name


def test_a_subclass_without_hooks_keeps_its_own_attributes():
    q = Named("jobs", 1)
    q.put(1)
    assert (q.name, q.full(), q.get()) == ("jobs", True, 1)


@pytest.mark.parametrize("kind", [ours.Queue, ours.SimpleQueue])
def test_it_cannot_be_pickled_and_says_what_can(kind):
    with pytest.raises(TypeError, match=r"queueduct\.multiprocessing"):
        pickle.dumps(kind())


@pytest.mark.parametrize("kind", [ours.Queue, ours.SimpleQueue])
def test_a_negative_timeout_is_refused(kind):
    with pytest.raises(ValueError, match="non-negative"):
        kind().get(timeout=-1)


def test_maxsize_can_be_raised_for_a_waiting_putter():
    q = ours.Queue(1)
    q.put(1)
    thread, results = in_thread(lambda: q.put(2))
    q.maxsize = 2
    thread.join()
    assert results == [None]
    assert [q.get(), q.get()] == [1, 2]
