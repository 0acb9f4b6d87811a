"""The queues that replace multiprocessing's, between real processes."""

import concurrent.futures
import multiprocessing
import os
import pickle
import queue
import signal
import threading
from collections import Counter

import pytest

from queueduct import TooManyParticipants
from queueduct.multiprocessing import JoinableQueue, Queue, SimpleQueue

METHODS = ("fork", "spawn", "forkserver")
pytestmark = pytest.mark.timeout(60)


@pytest.fixture(params=METHODS)
def context(request):
    return multiprocessing.get_context(request.param)


def answer(q, answers):
    answers.put(("got", q.get()))


@pytest.mark.parametrize("kind", [Queue, JoinableQueue, SimpleQueue])
def test_a_process_gets_the_queue_as_an_argument(context, kind):
    q, answers = kind(ctx=context), kind(ctx=context)
    process = context.Process(target=answer, args=(q, answers))
    process.start()
    q.put({"a": [1, 2.5, None]})
    assert answers.get() == ("got", {"a": [1, 2.5, None]})
    process.join()
    assert process.exitcode == 0


class Counting(Queue):
    """A subclass that takes something along, as those of the standard library's class do."""

    def __init__(self, count, **options):
        super().__init__(**options)
        self.count = count

    def __getstate__(self):
        return super().__getstate__(), self.count

    def __setstate__(self, state):
        inner, self.count = state
        super().__setstate__(inner)


def answer_count(q):
    q.count.value += 1
    q.put(type(q).__name__)


def test_a_subclass_takes_its_own_state_along(context):
    q = Counting(context.Value("i", 1), ctx=context)
    process = context.Process(target=answer_count, args=(q,))
    process.start()
    process.join()
    assert (q.get(timeout=5), q.count.value, process.exitcode) == ("Counting", 2, 0)


def test_a_state_is_taken_once():
    with pytest.raises(TypeError, match="a Queue is opened once"):
        Queue().__setstate__((None, "", False))


mine = None


def keep(q):
    global mine
    mine = q


def put_square(number):
    mine.put(number * number)


def test_an_executor_hands_the_queue_to_its_workers(context):
    q = Queue(ctx=context)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context, initializer=keep, initargs=(q,)) as pool:
        list(pool.map(put_square, range(20)))
    assert sorted(q.get(timeout=5) for _ in range(20)) == [n * n for n in range(20)]


def test_pickling_elsewhere_raises_what_multiprocessing_raises():
    for q, theirs in ((Queue(), multiprocessing.Queue()), (JoinableQueue(), multiprocessing.JoinableQueue())):
        with pytest.raises(RuntimeError) as expected:
            pickle.dumps(theirs)
        with pytest.raises(RuntimeError) as raised:
            pickle.dumps(q)
        assert str(raised.value) == str(expected.value)


@pytest.mark.parametrize("maxsize", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("length", [0, 10, 300, 200_000])
def test_a_queue_takes_exactly_maxsize_items_however_long(maxsize, length):
    q = Queue(maxsize)
    for lap in range(3):
        for number in range(maxsize):
            assert not q.full()
            q.put_nowait((lap, number, b"x" * length))
        assert q.full()
        assert q.qsize() == maxsize
        with pytest.raises(queue.Full):
            q.put_nowait(1)
        with pytest.raises(queue.Full):
            q.put(1, timeout=0.001)
        assert [q.get()[:2] for _ in range(maxsize)] == [(lap, number) for number in range(maxsize)]
        with pytest.raises(queue.Empty):
            q.get_nowait()


def test_an_item_of_100_megabytes_arrives():
    q = Queue(1)
    item = os.urandom(1 << 20) * 100
    q.put(item)
    assert q.full()
    assert q.get() == item


@pytest.mark.parametrize("maxsize", [0, 1])
def test_an_item_that_is_too_long_is_refused_with_a_remedy_and_nothing_is_put(maxsize):
    q = Queue(maxsize)
    with pytest.raises(ValueError, match=r"at most 5\d{8} bytes when pickled: .*; put it in parts") as raised:
        q.put(bytes(513 << 20))
    assert "first_bytes" not in str(raised.value)
    assert q.empty()
    q.put(1, timeout=5)
    assert q.get(timeout=5) == 1


def produce(q, number, count):
    for i in range(count):
        q.put((number, i))


def consume(q, results):
    for item in iter(q.get, None):
        results.put(item)
    results.put(None)


@pytest.mark.parametrize("maxsize", [0, 5])
def test_four_producers_and_four_consumers_pass_every_item_exactly_once(maxsize):
    context = multiprocessing.get_context("fork")
    q, results = Queue(maxsize), SimpleQueue()
    producers = [context.Process(target=produce, args=(q, n, 2000)) for n in range(4)]
    consumers = [context.Process(target=consume, args=(q, results)) for _ in range(4)]
    for process in producers + consumers:
        process.start()
    for process in producers:
        process.join()
    for _ in consumers:
        q.put(None)
    seen = Counter(item for _ in consumers for item in iter(results.get, None))
    for process in consumers:
        process.join()
    assert seen == Counter((n, i) for n in range(4) for i in range(2000))


def die_with_a_task(q, taken):
    taken.put(q.get())
    taken.put(q.get())
    q.task_done()
    os.kill(os.getpid(), signal.SIGKILL)


def work(q, done):
    while True:
        done.put(q.get())
        q.task_done()


def test_the_task_of_a_killed_worker_comes_again_and_is_not_counted_as_done(context):
    q, taken, done = JoinableQueue(ctx=context), Queue(ctx=context), Queue(ctx=context)
    victim = context.Process(target=die_with_a_task, args=(q, taken))
    victim.start()
    q.put("first")
    q.put("second")
    assert [taken.get(), taken.get()] == ["first", "second"]
    victim.join()
    assert victim.exitcode == -signal.SIGKILL
    joined = threading.Event()
    joiner = threading.Thread(target=lambda: (q.join(), joined.set()), daemon=True)
    joiner.start()
    assert not joined.wait(0.05)
    worker = context.Process(target=work, args=(q, done), daemon=True)
    worker.start()
    assert done.get(timeout=20) == "second"
    assert joined.wait(20)
    worker.kill()
    worker.join()


def test_task_done_too_often_raises():
    q = JoinableQueue()
    q.put(1)
    with pytest.raises(ValueError, match="called too many times"):
        q.task_done()
    q.get()
    threading.Thread(target=q.task_done).start()  # any thread may
    q.join()
    with pytest.raises(ValueError, match="called too many times"):
        q.task_done()


def test_a_limited_joinable_queue_has_room_as_soon_as_a_task_is_got():
    q = JoinableQueue(1)
    q.put(1)
    with pytest.raises(queue.Full):
        q.put_nowait(2)
    q.get()
    q.put(2, timeout=5)
    assert q.get(timeout=5) == 2
    q.task_done()
    q.task_done()
    q.join()


def test_too_many_open_tasks_are_refused_with_a_remedy_and_lose_nothing():
    q = JoinableQueue()
    for number in range(1100):
        q.put(number)
    got = []
    with pytest.raises(TooManyParticipants, match="call task_done"):
        got.extend(iter(q.get, None))
    for _ in got:
        q.task_done()
    while q.qsize():
        got.append(q.get())
        q.task_done()
    assert got == list(range(1100))
    q.join()


class Unpicklable:
    def __reduce__(self):
        raise ZeroDivisionError("cannot be pickled")


def test_an_object_that_cannot_be_pickled_raises_at_put_and_nothing_is_put():
    q = Queue(2)
    for item in (Unpicklable(), [Unpicklable()], lambda: None):
        with pytest.raises(Exception, match="pickle"):
            q.put(item)
    assert q.qsize() == 0
    q.put(1)
    q.put(2)
    assert q.full()


def broken():
    raise LookupError("cannot be unpickled")


class BrokenOnArrival:
    def __reduce__(self):
        return broken, ()


def test_an_object_that_cannot_be_unpickled_raises_once_and_the_next_comes():
    q = Queue()
    q.put(BrokenOnArrival())
    q.put("next")
    with pytest.raises(LookupError):
        q.get()
    assert q.get(timeout=1) == "next"


def test_what_multiprocessing_can_send_can_be_sent():
    q = Queue()
    reader, writer = multiprocessing.Pipe(duplex=False)
    q.put(reader)
    received = q.get()
    writer.send("hello")
    assert received.recv() == "hello"
    q.put([writer, {"nested": writer}])
    q.get()[1]["nested"].send("nested")
    assert received.recv() == "nested"
    for each in (reader, writer, received):
        each.close()


@pytest.mark.parametrize(
    "item",
    [
        b"",
        b".",
        b"\0",
        b"x\0",
        b".\0",
        "text",
        "",
        0,
        -1,
        1 << 70,
        None,
        True,
        (),
        [],
        {},
        {1: (2, [3])},
        2.5,
        "\ud800",
        bytearray(b"ab"),
        {1, 2},
        frozenset(),
        range(3),
        ...,
        b"y" * 1023,
        b"y" * 1024,
        b"\0" * 70_000,
    ],
)
def test_an_item_arrives_equal_and_of_its_type(item):
    for kind in (Queue, JoinableQueue, SimpleQueue):
        q = kind()
        q.put(item)
        got = q.get()
        assert got == item
        assert type(got) is type(item)


def test_a_list_that_contains_itself_arrives():
    q = Queue()
    item = [1]
    item.append(item)
    q.put(item)
    got = q.get()
    assert got[1] is got


def test_after_close_put_and_get_raise_value_error():
    for kind in (Queue, JoinableQueue):
        q = kind()
        with pytest.raises(AssertionError):
            q.join_thread()
        q.close()
        q.close()
        q.join_thread()
        q.cancel_join_thread()
        for call in (lambda q=q: q.put(1), q.get, q.get_nowait):
            with pytest.raises(ValueError, match="closed"):
                call()


@pytest.mark.parametrize(("maxsize", "error"), [("3", TypeError), (2.5, TypeError), (1 << 40, OverflowError)])
def test_a_wrong_maxsize_is_refused(maxsize, error):
    with pytest.raises(error, match="maxsize"):
        Queue(maxsize)


def test_a_negative_maxsize_means_no_limit():
    q = Queue(-1)
    q.put(1)
    assert not q.full()


def interrupt():
    if interrupt.armed:
        interrupt.armed = False
        raise KeyboardInterrupt
    return "whole"


interrupt.armed = False


class Interrupted:
    def __reduce__(self):
        return interrupt, ()


@pytest.mark.parametrize("kind", [Queue, JoinableQueue, SimpleQueue])
def test_an_interrupt_while_an_object_is_unpickled_loses_nothing(kind):
    q = kind()
    q.put(Interrupted())
    interrupt.armed = True
    with pytest.raises(KeyboardInterrupt):
        q.get()
    assert q.get() == "whole"


def kill_in_a_put(q, ready):
    ready.put(1)
    while True:
        q.put(b"x" * 3000)


def test_a_limit_survives_producers_killed_at_random():
    context = multiprocessing.get_context("fork")
    q, ready = Queue(3), SimpleQueue()
    for _ in range(8):
        victims = [context.Process(target=kill_in_a_put, args=(q, ready)) for _ in range(2)]
        for victim in victims:
            victim.start()
        for _ in victims:
            ready.get()
        for _ in range(200):
            assert q.get(timeout=20) == b"x" * 3000
        for victim in victims:
            victim.kill()
            victim.join()
        while q.qsize():
            assert q.get(timeout=20) == b"x" * 3000
        for number in range(3):
            q.put(number, timeout=20)
        with pytest.raises(queue.Full):
            q.put_nowait(3)
        assert [q.get(timeout=5) for _ in range(3)] == [0, 1, 2]


def test_a_lock_travels_only_by_inheritance():
    q = Queue()
    with pytest.raises(RuntimeError):
        q.put(multiprocessing.Lock())
