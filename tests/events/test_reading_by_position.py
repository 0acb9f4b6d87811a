"""read(start, stop): the same items each time while they are kept, by anybody, without a subscription."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest

import queueduct
from queueduct import DataLost, EventQueue
from tests.support.ticks import FORMS, TICK, numbers


@pytest.fixture(params=list(FORMS))
def form(request):
    return FORMS[request.param]


def test_a_range_is_the_same_each_time(form):
    make, item, number = form
    with make() as q:
        q.put_many([item(i) for i in range(200)])
        for start, stop in ((0, 200), (0, 1), (3, 5), (3, 50), (199, 200), (7, 8), (4, 8), (24, 40)):
            for _ in range(3):
                found = q.read(start, stop)
                assert type(found) is (np.ndarray if q.item == TICK else list)
                assert [number(each) for each in found] == list(range(start, stop))
        q.put_many([item(i) for i in range(200, 400)])
        assert [number(each) for each in q.read(100, 300)] == list(range(100, 300))


def test_a_range_with_nothing_in_it_is_empty(form):
    make, item, _ = form
    with make() as q:
        assert len(q.read(0, 0)) == 0
        q.put_many([item(i) for i in range(5)])
        assert len(q.read(5, 5)) == len(q.read(2, 2)) == 0


@pytest.mark.parametrize(("start", "stop"), [(-1, 3), (3, 2), (0, 11), (11, 11), (0, 2**64), (2**70, 2**71)])
def test_a_range_outside_the_log_is_a_value_error_with_the_end(start, stop):
    with EventQueue.create("q", item="<u8") as q:
        q.put_many(numbers(10))
        with pytest.raises(ValueError, match=f"up to the end, 10: start={start}, stop={stop}"):
            q.read(start, stop)


@pytest.mark.parametrize("position", [1.0, "1", None, True])
def test_a_position_is_an_int(position):
    with EventQueue.create("q", item="<u8") as q:
        q.put_many(numbers(10))
        with pytest.raises(TypeError, match="start must be an int"):
            q.read(position, 3)
        with pytest.raises(TypeError, match="stop must be an int"):
            q.read(0, position)


def test_numpy_positions_work():
    with EventQueue.create("q", item="<u8") as q:
        q.put_many(numbers(10))
        assert list(q.read(np.int64(2), np.uint8(4))) == [2, 3]


def test_what_is_no_longer_kept_is_data_lost_with_both_positions(form):
    make, item, number = form
    with make() as q:
        q.put_many([item(i) for i in range(100)])
        q.keep_last(40)
        with pytest.raises(DataLost, match="wanted=10, earliest=60") as caught:
            q.read(10, 20)
        assert (caught.value.wanted, caught.value.earliest) == (10, 60)
        with pytest.raises(DataLost) as caught:
            q.read(59, 100)
        assert (caught.value.wanted, caught.value.earliest) == (59, 60)
        assert [number(each) for each in q.read(60, 100)] == list(range(60, 100))


def test_data_lost_pickles_with_its_positions():
    error = pickle.loads(pickle.dumps(DataLost("gone", 3, 7)))
    assert (str(error), error.wanted, error.earliest) == ("gone", 3, 7)
    assert isinstance(error, queueduct.QueueductError)


def test_earliest_and_end_bound_what_is_kept():
    with EventQueue.create("q", item="<u8", max_bytes=4096, on_full="drop_slowest") as q:
        assert (q.earliest, q.end, len(q)) == (0, 0, 0)
        for first in range(0, 10_000, 100):
            q.put_many(numbers(100, first))
            assert q.end == first + 100
            assert list(q.read(q.earliest, q.end)) == list(range(q.earliest, q.end))
            assert len(q) == q.end - q.earliest
        assert q.earliest > 9000


def test_another_process_reads_the_same(children):
    with EventQueue.create("q", item="<u8") as q:
        q.put_many(numbers(1000))
        out = children.run("import queueduct; print(int(queueduct.open('q').read(100, 900).sum()))")
        assert int(out) == sum(range(100, 900))


def test_reading_a_log_that_moves_gives_the_right_items_or_data_lost():
    """Allowed: the very items, or DataLost whose earliest is beyond what was wanted."""
    with EventQueue.create("q", item="<u8", max_bytes=8192, on_full="drop_slowest") as q:
        stop = threading.Event()
        failures = []

        def write():
            first = 0
            while not stop.is_set():
                q.put_many(numbers(50, first))
                first += 50

        writer = threading.Thread(target=write)
        writer.start()
        lost = right = 0
        while right < 300 or q.end < 100_000:
            start, end = q.earliest, q.end
            try:
                if list(q.read(start, end)) != list(range(start, end)):
                    failures.append((start, end))
                right += 1
            except DataLost as error:
                lost += 1
                if not error.wanted < error.earliest:
                    failures.append(error)
            if lost > 20_000:
                break
        stop.set()
        writer.join(30)
        assert failures == []
        assert right > 0


def test_bytes_are_read_right_while_the_log_moves(children):
    """The same between processes, where nothing but the log's own rules keeps the two apart."""
    with EventQueue.create("q", max_bytes=16_384, on_full="drop_slowest") as q:
        writer = children.start(
            """
import queueduct
q = queueduct.open("q")
i = 0
while i < 200_000:
    q.put_many([b"%d" % n * (n % 9) for n in range(i, i + 100)])
    i += 100
    if i == 1000:
        print("go", flush=True)
"""
        )
        assert writer.stdout.readline() == "go\n"
        right = 0
        while q.end < 200_000:
            start, end = q.earliest, q.end
            start = max(start, end - 150)
            try:
                found = q.read(start, end)
            except DataLost as error:
                assert error.wanted < error.earliest
                continue
            assert found == [b"%d" % n * (n % 9) for n in range(start, end)]
            right += 1
        assert right > 0
        assert writer.wait(30) == 0
