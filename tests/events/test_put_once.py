"""put_once into a log, beyond what every kind promises: a full log, a shutdown, and kills."""

from __future__ import annotations

import os
import random
import signal
import threading

import pytest

import queueduct
from queueduct import EventQueue, Full, ProducerInfo, ProducerInUse
from tests.support.deadline import until_parked
from tests.support.ticks import drain, numbers


@pytest.fixture
def q():
    with EventQueue.create("q", item="<u8") as made:
        yield made


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
