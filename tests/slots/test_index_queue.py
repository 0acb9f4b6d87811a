"""IndexQueue: the arithmetic of cyclic indices, and that an index is somewhere exactly once."""

from __future__ import annotations

import copy
import pickle
import threading
from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queueduct import IndexQueue


def last_cycle(n):
    """The greatest cycle that a word of 64 bits holds beside an index below n."""
    return (1 << (64 - (n - 1).bit_length())) - 1


SIZES = st.integers(1, 9)
CYCLES_FROM_THE_END = st.integers(0, 6)


def test_an_empty_queue_looks_as_it_is_drawn():
    q = IndexQueue(4)
    assert (q.cells, q.head, q.tail) == ([(0, 0)] * 4, (1, 0), (1, 0))
    assert (q.qsize(), q.empty(), q.full(), q.n) == (0, True, False, 4)


def test_a_full_queue_looks_as_it_is_drawn():
    q = IndexQueue(4, full=True)
    assert (q.cells, q.head, q.tail) == ([(0, 0), (0, 1), (0, 2), (0, 3)], (0, 0), (1, 0))
    assert (q.qsize(), q.empty(), q.full()) == (4, False, True)


def test_a_push_replaces_the_cell_at_the_tail_and_a_pop_changes_no_cell():
    q = IndexQueue(4)
    q.push(3)
    q.push(1)
    assert (q.cells, q.head, q.tail) == ([(1, 3), (1, 1), (0, 0), (0, 0)], (1, 0), (1, 2))
    assert q.pop() == 3
    assert (q.cells, q.head, q.tail) == ([(1, 3), (1, 1), (0, 0), (0, 0)], (1, 1), (1, 2))


def distance(q, start, end):
    """Steps from one cyclic index to another, both of which may have wrapped."""
    cycles = (end[0] - start[0] + last_cycle(q.n) // 2) % (last_cycle(q.n) + 1) - last_cycle(q.n) // 2
    return cycles * q.n + end[1] - start[1]


@settings(max_examples=200, deadline=None)
@given(SIZES, st.booleans(), CYCLES_FROM_THE_END, st.lists(st.integers(0, 3), max_size=80), st.randoms())
def test_it_is_a_queue_whatever_the_cycle_also_across_the_wrap_of_64_bits(n, full, before_the_end, steps, random):
    q = IndexQueue(n, full=full, first_cycle=last_cycle(n) - before_the_end)
    inside = deque(range(n)) if full else deque()
    outside = [] if full else list(range(n))
    head, tail = q.head, q.tail
    for step in steps:
        if step == 0 and outside:
            index = outside.pop(random.randrange(len(outside)))
            q.push(index)
            inside.append(index)
        elif step:
            least = {1: 1, 2: n, 3: random.randint(0, n + 1)}[step]
            popped = {1: q.pop, 2: q.pop_if_full, 3: lambda least=least: q.pop_if_size_at_least(least)}[step]()
            expected = inside.popleft() if inside and len(inside) >= least else None
            assert popped == expected
            if popped is not None:
                outside.append(popped)
        assert q.qsize() == len(q) == len(inside)
        assert (q.empty(), q.full()) == (not inside, len(inside) == n)
        # head and tail never go back, a step at a time, and 0 <= tail - head <= n
        assert distance(q, head, q.head) in (0, 1)
        assert distance(q, tail, q.tail) in (0, 1)
        assert distance(q, q.head, q.tail) == len(inside)
        head, tail = q.head, q.tail
        # from head to tail stands what is in, in order, with the cycle that its place has
        at = list(head)
        for index in inside:
            assert q.cells[at[1]] == (at[0], index)
            at = [at[0], at[1] + 1] if at[1] + 1 < n else [(at[0] + 1) & last_cycle(n), 0]
        assert tuple(at) == tail
    assert sorted([*inside, *outside]) == list(range(n))


@given(SIZES, CYCLES_FROM_THE_END)
def test_after_the_last_cycle_comes_cycle_0(n, before_the_end):
    q = IndexQueue(n, full=True, first_cycle=last_cycle(n) - before_the_end)
    for turn in range(10 * n):
        assert q.pop_if_full() == turn % n
        assert q.pop_if_full() is None
        q.push(turn % n)
    assert q.head == ((last_cycle(n) - before_the_end + 10) & last_cycle(n), 0)
    assert q.full()


@pytest.mark.parametrize("index", [-1, 4, 1 << 64])
def test_an_index_outside_is_refused(index):
    with pytest.raises(ValueError, match=f"index must be between 0 and 3: index={index}"):
        IndexQueue(4).push(index)


@pytest.mark.parametrize("index", [True, 1.0, "1", None])
def test_an_index_that_is_no_int_is_refused(index):
    with pytest.raises(TypeError, match="index must be an int"):
        IndexQueue(4).push(index)


def test_an_index_that_is_in_is_refused():
    q = IndexQueue(3, full=True)
    with pytest.raises(ValueError, match="index=2 is in; pop it first"):
        q.push(2)
    assert q.pop() == 0
    q.push(0)
    with pytest.raises(ValueError, match="index=0 is in"):
        q.push(0)
    assert [q.pop() for _ in range(4)] == [1, 2, 0, None]


@pytest.mark.parametrize("n", [0, -1, (1 << 20) + 1])
def test_a_size_outside_is_refused(n):
    with pytest.raises(ValueError, match=f"n must be between 1 and 1048576: n={n}"):
        IndexQueue(n)


def test_a_size_that_is_no_int_is_refused():
    with pytest.raises(TypeError, match="n must be an int"):
        IndexQueue(2.0)


@pytest.mark.parametrize("cycle", [1.0, True, "1", None])
def test_a_first_cycle_that_is_no_int_is_refused(cycle):
    with pytest.raises(TypeError, match=f"first_cycle must be an int: first_cycle={cycle!r}"):
        IndexQueue(4, first_cycle=cycle)


@pytest.mark.parametrize("make", [lambda: IndexQueue(4, True), lambda: IndexQueue(4, ful=True)])
def test_what_it_does_not_take_is_refused_with_what_it_takes(make):
    with pytest.raises(TypeError, match=r"takes n, and by name full and first_cycle: .*; use IndexQueue\("):
        make()


@pytest.mark.parametrize("dump", [pickle.dumps, copy.copy, copy.deepcopy])
def test_it_cannot_be_pickled(dump):
    with pytest.raises(TypeError, match=r"an IndexQueue lives in one process and cannot be pickled; use SlotQueue"):
        dump(IndexQueue(4))


def test_a_first_cycle_that_does_not_fit_is_refused():
    IndexQueue(4, first_cycle=last_cycle(4))
    with pytest.raises(ValueError, match="first_cycle must be between"):
        IndexQueue(4, first_cycle=last_cycle(4) + 1)


def test_at_least_a_negative_number_is_refused():
    with pytest.raises(ValueError, match="k must not be negative"):
        IndexQueue(4).pop_if_size_at_least(-1)


def test_between_threads_an_index_is_in_one_hand_at_a_time():
    """4 threads, 5,000 turns each: whoever has an index marks its place, and finds it unmarked."""
    q = IndexQueue(3, full=True)
    marks = [0] * 3
    wrong = []

    def work():
        for _ in range(5000):
            while (index := q.pop()) is None:
                pass
            marks[index] += 1
            if marks[index] != 1:
                wrong.append(index)
            marks[index] -= 1
            q.push(index)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []
    assert q.full()
    assert sorted(q.pop() for _ in range(3)) == [0, 1, 2]
