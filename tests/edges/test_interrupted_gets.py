"""Whatever interrupts a get of objects, all that it had taken comes again: in order here, or to somebody else."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal

import pytest

import queueduct
from tests.edges.interrupting import STRIKES, Item, Struck, arm, handling, numbers_of, send, send_to_thread, struck_by
from tests.support.children import fork
from tests.support.deadline import until
from tests.support.kinds import CLASSES

COUNT = 12
KINDS = list(CLASSES)
RINGS = ["bounded", "growing"]
LEASING = [kind for kind in KINDS if kind != "events"]


def make(kind, name="q", **options):
    sizes = {"capacity": 64} if kind in ("bounded", "slots", "overwriting") else {}
    return CLASSES[kind].create(name, item=object, **sizes, **options)


def consumer_of(q, kind):
    """Who gets from it, from its first item on."""
    return q.subscribe("reader", start="earliest") if kind == "events" else q


def filled(kind):
    q = make(kind)
    q.put_many([Item(i) for i in range(COUNT)])
    return q


def rest_of(consumer):
    """All that can be got without waiting."""
    got = []
    with contextlib.suppress(queueduct.Empty):
        while True:
            got += numbers_of(consumer.get_many(COUNT, block=False))
    return got


def get_one(consumer):
    return [consumer.get(timeout=5)]


def get_batch(consumer):
    return consumer.get_many(5, timeout=5)


def get_next(consumer):
    return [next(iter(consumer))]


def get_nowait(consumer):
    return [consumer.get_nowait()]


def get_all(call, consumer, got):
    while True:
        got += numbers_of(call(consumer))


def get_async(consumer):
    return [asyncio.run(consumer.aget(timeout=5))]


CALLS = {"get": get_one, "get_many": get_batch, "for": get_next, "get_nowait": get_nowait, "aget": get_async}


@pytest.mark.parametrize("kind", KINDS)
class TestTheSameHandleGetsAllOfThemInOrder:
    @pytest.mark.parametrize("strike", STRIKES)
    @pytest.mark.parametrize("call", CALLS)
    @pytest.mark.parametrize("number", [0, 3, COUNT - 1])
    def test_after_an_interrupt(self, kind, strike, call, number):
        error, act = STRIKES[strike]
        with filled(kind) as q:
            consumer = consumer_of(q, kind)
            got = []
            with arm(number, act), pytest.raises(error):
                get_all(CALLS[call], consumer, got)
            assert got == list(range(len(got)))  # whole batches before the one that was struck
            assert got == [] or got[-1] < number
            assert got + rest_of(consumer) == list(range(COUNT))

    def test_after_many_interrupts_in_a_row(self, kind):
        with filled(kind) as q:
            consumer = consumer_of(q, kind)
            for number in (5, 0, 11, 5, 1):
                with arm(number, STRIKES["Ctrl-C"][1]), pytest.raises(KeyboardInterrupt):
                    consumer.get_many(COUNT)
            assert rest_of(consumer) == list(range(COUNT))

    def test_items_that_were_put_meanwhile_come_later(self, kind):
        with filled(kind) as q:
            consumer = consumer_of(q, kind)
            with arm(4, STRIKES["Ctrl-C"][1]), pytest.raises(KeyboardInterrupt):
                consumer.get_many(8)
            q.put(Item(COUNT))
            assert rest_of(consumer) == list(range(COUNT + 1))

    def test_after_a_shutdown_too(self, kind):
        with filled(kind) as q:
            consumer = consumer_of(q, kind)
            with arm(4, STRIKES["Ctrl-C"][1]), pytest.raises(KeyboardInterrupt):
                consumer.get_many(8)
            q.shutdown()
            assert numbers_of(consumer) == list(range(COUNT))

    def test_an_error_that_another_thread_sent_is_not_the_items(self, kind):
        sent = []

        def once():
            if not sent:
                sent.append(True)
                send_to_thread(Struck)

        with filled(kind) as q:
            consumer = consumer_of(q, kind)
            with arm(4, once), pytest.raises(Struck):
                consumer.get_many(8)
            assert rest_of(consumer) == list(range(COUNT))

    def test_an_items_own_error_is_the_loss_of_that_item_alone(self, kind):
        def fail():
            raise Struck

        with filled(kind) as q:
            consumer = consumer_of(q, kind)
            got = []
            with arm(4, fail):
                got += numbers_of(consumer.get_many(8))
                with pytest.raises(Struck):
                    consumer.get_many(8)
            assert got + rest_of(consumer) == [0, 1, 2, 3, *range(5, COUNT)]

    def test_a_handler_that_runs_twice_in_one_item_loses_nothing(self, kind):
        with filled(kind) as q, handling(signal.SIGALRM, struck_by):
            consumer = consumer_of(q, kind)
            with arm(4, lambda: os.kill(os.getpid(), signal.SIGALRM)), pytest.raises(Struck):
                consumer.get_many(8)
            assert rest_of(consumer) == list(range(COUNT))


@pytest.mark.parametrize("kind", LEASING)
class TestSomebodyElseGetsThem:
    def interrupted(self, kind):
        q = filled(kind)
        with arm(3, STRIKES["Ctrl-C"][1]), pytest.raises(KeyboardInterrupt):
            q.get_many(8)
        return q

    def test_through_another_handle_while_this_one_stays_open(self, kind):
        with self.interrupted(kind) as q, CLASSES[kind].open("q") as other:
            assert other.qsize() == q.qsize() == COUNT
            got = []
            until(lambda: got.extend(rest_of(other)) or len(got) == COUNT, "all of them")
            assert sorted(got) == list(range(COUNT))
            assert rest_of(q) == []
            assert q.qsize() == 0

    def test_when_this_one_is_closed(self, kind):
        self.interrupted(kind).close()
        with CLASSES[kind].open("q") as other:
            assert other.qsize() == COUNT
            got = []
            until(lambda: got.extend(rest_of(other)) or len(got) == COUNT, "all of them")
            assert sorted(got) == list(range(COUNT))

    def test_who_waits_is_woken(self, kind, children):
        ready, go = os.pipe()
        with filled(kind) as q:
            assert numbers_of(q.get_many(COUNT)) == list(range(COUNT))
            pid = children.fork(lambda: (os.write(go, b"."), CLASSES[kind].open("q").get(timeout=30)))
            os.read(ready, 1)
            q.put_many([Item(i) for i in range(2)])
            with contextlib.suppress(KeyboardInterrupt), arm(1, STRIKES["Ctrl-C"][1]):
                q.get_many(2, timeout=5)
            assert children.wait(pid) == 0

    def test_a_lease_that_is_interrupted_gives_all_back(self, kind):
        with filled(kind) as q:
            for strike in ("Ctrl-C", "a handler's own error", "no memory"):
                error, act = STRIKES[strike]
                with arm(4, act), pytest.raises(error):
                    q.lease(8)
                assert q.unreleased(range(COUNT)) == [] or q.qsize() == COUNT
            got = []
            while len(got) < COUNT:
                with q.lease(8) as lease:
                    got += numbers_of(lease.items)
            assert sorted(got) == list(range(COUNT))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["SystemExit", "SIGINT", "SIGKILL"])
def test_a_process_that_ends_in_a_get_leaves_all_that_it_did_not_return(kind, how, children):
    code = """
import os, signal, sys
from tests.edges.interrupting import Item, armed, exit_by, numbers_of
from tests.edges.test_interrupted_gets import CLASSES, consumer_of
kind, how = sys.argv[1:]
signal.signal(signal.SIGTERM, exit_by)
number = {"SystemExit": signal.SIGTERM, "SIGINT": signal.SIGINT, "SIGKILL": signal.SIGKILL}[how]
armed[7] = lambda: os.kill(os.getpid(), number)
consumer = consumer_of(CLASSES[kind].open("q"), kind)
print(*numbers_of(consumer.get_many(4)), flush=True)
if kind == "events":
    consumer.commit()
consumer.get_many(8)
"""
    with filled(kind) as q:
        process = children.start(code, kind, how)
        out, _ = process.communicate(timeout=60)
        assert out.split() == ["0", "1", "2", "3"]
        assert process.returncode not in (0, 1) or how == "SIGINT"
        consumer = consumer_of(q, kind)
        got = []
        until(lambda: got.extend(rest_of(consumer)) or len(got) == COUNT - 4, "the rest")
        assert sorted(got) == list(range(4, COUNT))


@pytest.mark.parametrize("kind", LEASING)
class TestUnpicklingMayGetFromTheQueue:
    def test_it_gets_what_comes_next(self, kind):
        inner = []
        with filled(kind) as q:
            with arm(2, lambda: inner or inner.append(q.get().number)):
                got = numbers_of(q.get_many(5))
            assert got == [0, 1, 2, 3, 4]
            assert inner == [5]
            assert rest_of(q) == list(range(6, COUNT))

    def test_it_is_interrupted_after_that_and_all_comes_again(self, kind):
        inner = []

        def strike():
            inner.append(q.get().number)
            send(signal.SIGINT, signal.default_int_handler)

        with filled(kind) as q:
            with arm(2, strike), pytest.raises(KeyboardInterrupt):
                q.get_many(5)
            assert inner == [5]
            assert rest_of(q) == [0, 1, 2, 3, 4, *range(6, COUNT)]


@pytest.mark.parametrize("kind", KINDS)
class TestUnpicklingMayUseTheQueue:
    def test_it_puts(self, kind):
        with filled(kind) as q:
            consumer = consumer_of(q, kind)
            with arm(2, lambda: q.put(Item(COUNT))):
                got = numbers_of(consumer.get_many(5))
            assert got + rest_of(consumer) == list(range(COUNT + 1))

    def test_it_closes_the_handle(self, kind):
        with filled(kind) as other, CLASSES[kind].open("q") as q:
            consumer = consumer_of(q, kind)
            with arm(2, q.close):
                got = numbers_of(consumer.get_many(5))
            assert got == [0, 1, 2, 3, 4]
            with pytest.raises(queueduct.QueueClosed):
                consumer.get_many(5)
            if kind != "events":
                assert rest_of(other) == list(range(5, COUNT))

    def test_it_forks_and_the_child_has_none_of_the_parents_items(self, kind, children):
        pids = []

        def fork_once():
            if not pids:
                pids.append(os.getpid())
                pids.append(os.fork())

        with filled(kind) as q:
            consumer = consumer_of(q, kind)
            with arm(2, fork_once):
                try:
                    got = numbers_of(consumer.get_many(5))
                    if pids[0] != os.getpid():
                        os._exit(0 if got == [5, 6, 7, 8, 9] and kind != "events" else 1)
                except BaseException as error:
                    if pids[0] == os.getpid():
                        raise
                    os._exit(0 if kind == "events" and type(error) is queueduct.QueueClosed else 2)
            assert children.wait(pids[1]) == 0
            assert got == [0, 1, 2, 3, 4]
            got += rest_of(consumer)
            assert got == list(range(COUNT)) if kind == "events" else got == [0, 1, 2, 3, 4, 10, 11]


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("strike", STRIKES)
class TestWhatASlotQueueEvicts:
    def test_an_interrupted_put_leaves_the_evicted_item_in_and_its_own_out(self, strike, number):
        error, act = STRIKES[strike]
        with make("slots") as q:
            q.put_many([Item(i) for i in range(64)])
            evicted = []
            with arm(number, act), pytest.raises(error):
                evicted.extend(q.put(Item(100 + i), overwrite=True).number for i in range(2))
            got = []
            while q.qsize():
                got += numbers_of(q.get_many(64))
            assert evicted == list(range(number))
            assert sorted(got) == [*range(number, 64), *range(100, 100 + number)]

    def test_an_interrupted_set_capacity_leaves_the_item_in(self, strike, number):
        error, act = STRIKES[strike]
        evicted = []
        with make("slots") as q:
            q.put_many([Item(i) for i in range(64)])
            with arm(number, act), pytest.raises(error):
                q.set_capacity(60, on_evict=lambda item: evicted.append(item.number))
            assert evicted == list(range(number))
            assert rest_of(q) == list(range(number, 64))


def test_a_callback_that_raises_has_its_item_and_no_other_is_lost():
    evicted = []

    def on_evict(item):
        evicted.append(item.number)
        raise Struck

    with make("slots") as q:
        q.put_many([Item(i) for i in range(64)])
        with pytest.raises(Struck):
            q.set_capacity(60, on_evict=on_evict)
        assert evicted + rest_of(q) == list(range(64))


def test_an_overwriting_queue_whose_shelf_is_full_keeps_the_item_for_its_handle():
    with queueduct.OverwritingQueue.create("q", capacity=8, item=object) as q:
        q.put_many([Item(i) for i in range(8)])
        held = []
        while q.qsize():
            held.append(q.lease(8))
        for i in itertools.count(8):
            q.put(Item(i))
            try:
                held.append(q.lease(1, timeout=0.01))
            except queueduct.Empty:
                break
        with arm(i, STRIKES["Ctrl-C"][1]), pytest.raises(KeyboardInterrupt):
            q.get()
        assert q.qsize() == 1
        assert q.get().number == i


class TestBesideAFullShelf:
    """Then an overwriting queue's object is in its handle's keeping while it is unpickled, and a fork copies that."""

    @pytest.fixture
    def q(self):
        with make("overwriting") as made:
            made.put_many([Item(100)] * 64)
            with made.lease(64):
                made.put_many([Item(i) for i in range(3)])
                yield made

    def test_a_child_has_none_of_what_was_interrupted_before(self, q, children):
        with arm(0, STRIKES["Ctrl-C"][1]), pytest.raises(KeyboardInterrupt):
            q.get()
        assert q.qsize() == 3

        def work():
            assert q.qsize() == 2
            assert numbers_of([q.get(), q.get()]) == [1, 2]

        assert children.wait(children.fork(work)) == 0
        assert rest_of(q) == [0]

    def test_a_fork_in_it_leaves_the_object_to_the_parent(self, q, children):
        pids = []
        with arm(0, lambda: pids or pids.append(fork())):
            got = q.get().number
        if pids == [0]:
            os._exit(7 if got == 1 else 1)
        children.forks.add(pids[0])
        assert children.wait(pids[0]) == 7
        assert [got, *rest_of(q)] == [0, 2]
