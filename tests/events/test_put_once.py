"""put_once: a producer's batch is in exactly once, however often the call is cut short and repeated."""

from __future__ import annotations

import os
import random
import signal
import threading

import pytest

import queueduct
from queueduct import EventQueue, Full, ProducerInfo, ProducerInUse
from tests.support.deadline import until_parked
from tests.support.ticks import FORMS, drain, numbers


@pytest.fixture
def q():
    with EventQueue.create("q", item="<u8") as made:
        yield made


@pytest.mark.parametrize("form", ["bytes", "records", "objects"])
def test_a_repeated_call_puts_nothing(form):
    make, item, number = FORMS[form]
    with make() as queue:
        reader = queue.subscribe()
        batch = [item(i) for i in range(100)]
        assert queue.put_once(batch, "p", 1) == 100
        assert queue.put_once(batch, "p", 1) == 0
        assert [number(each) for each in drain(reader)] == list(range(100))


def test_sequences_of_a_producer_rise_and_earlier_ones_are_done(q):
    assert q.put_once(numbers(3), "p", 5) == 3
    assert q.put_once(numbers(3), "p", 7) == 3
    for sequence in (0, 4, 5, 6, 7):
        assert q.put_once(numbers(3), "p", sequence) == 0
    assert q.put_once(numbers(3), "p", 2**63 - 1) == 3
    assert q.end == 9


def test_producers_are_independent(q):
    for name in ("a", "b", "aa", "ä", "x" * 64):
        assert q.put_once(numbers(2), name, 1) == 2
    assert q.end == 10
    assert sorted(each.name for each in q.producers()) == sorted(["a", "b", "aa", "ä", "x" * 64])


def test_an_empty_batch_is_a_sequence_too(q):
    assert q.put_once([], "p", 1) == 0
    assert q.put_once(numbers(3), "p", 2) == 3
    assert q.put_once([], "p", 3) == 0
    assert q.producers() == [ProducerInfo("p", sequence=3, total=0, done=0)]


def test_producers_tells_what_is_kept(q):
    q.put_once(numbers(3), "p", 1)
    q.put_once(numbers(4), "p", 2)
    q.put_once(numbers(5), "other", 9)
    assert sorted(q.producers()) == [ProducerInfo("other", 9, 5, 5), ProducerInfo("p", 2, 4, 4)]


def test_a_call_that_ran_out_of_time_goes_on_where_it_stopped():
    with EventQueue.create("q", item="<u8", max_bytes=4096) as queue:
        reader = queue.subscribe()
        with pytest.raises(Full):
            queue.put_once(numbers(2000), "p", 1, timeout=0.01)
        info = queue.producers()[0]
        assert info == ProducerInfo("p", sequence=1, total=2000, done=queue.end)
        assert 400 < queue.end < 600
        got, put = drain(reader), queue.end
        reader.try_get()
        while put < 2000:
            try:
                put += queue.put_once(numbers(2000), "p", 1, block=False)
            except Full:
                put = queue.end
            got += drain(reader)
            reader.try_get()
        assert got == list(range(2000))
        assert queue.put_once(numbers(2000), "p", 1) == 0


def test_on_full_raise_raises_and_the_repetition_goes_on():
    with EventQueue.create("q", item="<u8", max_bytes=4096, on_full="raise") as queue:
        with pytest.raises(Full):
            queue.put_once(numbers(600), "p", 1)
        done = queue.end
        queue.clear()
        queue.put_once(numbers(600), "p", 1)
        assert queue.end == 600
        assert list(queue.read(done, 600)) == list(range(done, 600))


def test_a_sequence_that_is_not_finished_stops_the_next():
    with EventQueue.create("q", item="<u8", max_bytes=4096) as queue:
        with pytest.raises(Full):
            queue.put_once(numbers(2000), "p", 1, timeout=0.01)
        queue.clear()
        with pytest.raises(
            ValueError,
            match=r"sequence 1 of the producer 'p' is not complete, .*: sequence=2; repeat",
        ):
            queue.put_once(numbers(5), "p", 2)
        with pytest.raises(ValueError, match="was begun with 2000 items: 5 items; repeat a sequence with"):
            queue.put_once(numbers(5), "p", 1)
        assert queue.put_once(numbers(0), "p", 0) == 0
        queue.put_once(numbers(5), "another", 2)


def test_a_shutdown_in_the_middle_is_told_and_recorded():
    with EventQueue.create("q", item="<u8", max_bytes=4096) as queue:
        told = []

        def put():
            try:
                queue.put_once(numbers(2000), "p", 1)
            except (queueduct.ShutDown, Full) as error:
                told.append(error)

        thread = threading.Thread(target=put)
        thread.start()
        until_parked(thread)
        queue.shutdown()
        thread.join(30)
        assert len(told) == 1
        assert queue.producers()[0].done == queue.end
        with pytest.raises(queueduct.ShutDown):
            queue.put_once(numbers(2000), "p", 1)


@pytest.mark.parametrize("name", ["", "x" * 65, "ä" * 33, "a\0b", "\0"])
def test_a_name_has_1_to_64_bytes_and_no_zero(q, name):
    for call in (lambda: q.put_once(numbers(1), name, 1), lambda: q.forget_producer(name)):
        with pytest.raises(ValueError, match="1 to 64 bytes of UTF-8 and no NUL"):
            call()
    assert q.producers() == []


@pytest.mark.parametrize("name", [None, 5, b"p"])
def test_a_name_is_a_str(q, name):
    with pytest.raises(TypeError, match="a producer's name must be a str"):
        q.put_once(numbers(1), name, 1)


@pytest.mark.parametrize(
    ("sequence", "error"),
    [(-1, ValueError), (2**63, ValueError), (1.0, TypeError), ("1", TypeError), (True, TypeError)],
)
def test_a_sequence_is_a_count(q, sequence, error):
    with pytest.raises(error, match="sequence must be"):
        q.put_once(numbers(1), "p", sequence)
    assert q.producers() == []


def test_bad_items_leave_no_trace(q):
    with pytest.raises(TypeError):
        q.put_once(numbers(3).astype("f8"), "p", 1)
    assert (q.producers(), q.end) == ([], 0)
    with EventQueue.create("b", max_bytes=4096) as queue:
        with pytest.raises(ValueError, match="can never fit"):
            queue.put_once([b"x" * 10_000], "p", 1)
        with pytest.raises(TypeError):
            queue.put_once(["text"], "p", 1)
        assert (queue.producers(), queue.end) == ([], 0)


def test_within_a_process_there_is_no_put_once():
    with pytest.raises(ValueError, match=r"a queue without a name has no producers; use EventQueue\.create\(name, "):
        EventQueue().put_once([1], "p", 1)


def test_a_full_table_says_what_to_do_and_forget_producer_makes_room():
    with EventQueue.create("q", item="<u8", producers=2) as queue:
        queue.put_once(numbers(1), "a", 1)
        queue.put_once(numbers(1), "b", 1)
        with pytest.raises(
            queueduct.TooManyProducers, match=r"all 2 producers of 'q' .* q\.forget_producer\(name\).* producers="
        ):
            queue.put_once(numbers(1), "c", 1)
        queue.forget_producer("a")
        assert [each.name for each in queue.producers()] == ["b"]
        queue.put_once(numbers(1), "c", 1)
        assert queue.put_once(numbers(1), "b", 1) == 0


def test_a_queue_without_producers_has_a_full_table():
    with EventQueue.create("q", item="<u8", producers=0) as queue:
        with pytest.raises(queueduct.TooManyProducers, match="all 0 producers"):
            queue.put_once(numbers(1), "p", 1)
        assert queue.producers() == []


def test_a_forgotten_producer_puts_again(q):
    q.put_once(numbers(2), "p", 1)
    q.forget_producer("p")
    assert q.put_once(numbers(2), "p", 1) == 2
    with pytest.raises(ValueError, match="has no producer named 'x'"):
        q.forget_producer("x")


def test_a_producer_at_work_is_busy():
    with EventQueue.create("q", item="<u8", max_bytes=4096) as queue:
        thread = threading.Thread(target=queue.put_once, args=(numbers(600), "p", 1))
        thread.start()
        until_parked(thread)
        for call in (lambda: queue.put_once(numbers(600), "p", 1), lambda: queue.forget_producer("p")):
            with pytest.raises(ProducerInUse, match="'p' of 'q' is in use by another thread or process"):
                call()
        queue.clear()
        thread.join(30)
        assert queue.put_once(numbers(600), "p", 1) == 0


def test_a_handle_opened_later_knows_what_was_put(q):
    q.put_once(numbers(10), "p", 3)
    q.close()
    with EventQueue.open("q") as again:
        assert again.put_once(numbers(10), "p", 3) == 0
        assert again.put_once(numbers(10), "p", 4) == 10


def test_a_producer_that_is_killed_again_and_again_puts_each_item_once(children, is_long):
    """Batches repeated after kill -9 at random moments, with readers that make it wait: no gap, no double."""
    queue = EventQueue.create("q", item="<u8", max_bytes=16_384)
    reader = queue.subscribe()
    rng = random.Random(1)
    sequences, size, kills = (400 if is_long else 60), 700, 0
    got = []

    def work():
        with EventQueue.open("q") as mine:
            known = mine.producers()
            for sequence in range(known[0].sequence if known else 0, sequences):
                mine.put_once(numbers(size, sequence * size), "p", sequence)

    while True:
        pid = children.fork(work)
        for _ in range(rng.randrange(1, 12)):
            got += list(reader.get_many(rng.randrange(1, 1500), timeout=30)) if len(got) < sequences * size else []
        if len(got) >= sequences * size or rng.random() < 0.1:
            while len(got) < sequences * size:
                got += list(reader.get_many(5000, timeout=30))
            assert children.wait(pid) == 0
            break
        os.kill(pid, signal.SIGKILL)
        kills += children.wait(pid) == -signal.SIGKILL
    assert got == list(range(sequences * size))
    assert queue.put_once(numbers(size), "p", sequences - 1) == 0
    assert kills > 0


def test_two_producers_killed_in_turns_do_not_disturb_each_other(children):
    queue = EventQueue.create("q", item="<u8")
    rng = random.Random(2)

    def work(name, first):
        with EventQueue.open("q") as mine:
            for sequence in range(100):
                mine.put_once(numbers(20, first + sequence * 20), name, sequence)

    for _ in range(12):
        pids = [children.fork(lambda: work("a", 0)), children.fork(lambda: work("b", 10_000))]
        for pid in pids:
            if rng.random() < 0.8:
                threading.Event().wait(rng.random() * 0.01)
                os.kill(pid, signal.SIGKILL)
            children.wait(pid)
    work("a", 0)
    work("b", 10_000)
    found = list(queue.read(0, queue.end))
    assert [each for each in found if each < 10_000] == list(range(2000))
    assert [each for each in found if each >= 10_000] == list(range(10_000, 12_000))
