"""Who reads: where a reader starts, who may hold it, how it is found again and how it is forgotten."""

from __future__ import annotations

import copy
import os
import pickle
import threading

import pytest

import queueduct
from queueduct import EventQueue, QueueClosed, ReaderInfo, ReaderInUse
from tests.support.ticks import drain, fill, numbers


@pytest.fixture(params=["named", "local"])
def q(request):
    with EventQueue.create("q", item=object) if request.param == "named" else EventQueue() as made:
        yield made


@pytest.fixture
def named():
    with EventQueue.create("q", item="<u8") as made:
        yield made


@pytest.mark.parametrize("name", [None, "d"])
def test_a_reader_starts_where_it_is_asked_to(q, name):
    q.put_many(range(100))
    for start, first in (("latest", 100), ("earliest", 0), (0, 0), (37, 37), (100, 100)):
        with q.subscribe(name, start=start) as reader:
            assert (reader.position, reader.lag) == (first, 100 - first)
            assert drain(reader) == list(range(first, 100))
        if name:
            q.unsubscribe(name)


def test_latest_is_the_default(q):
    q.put(1)
    assert q.subscribe().position == 1


def test_a_start_that_is_no_longer_kept_is_the_earliest_that_is(q):
    q.put_many(range(100))
    q.keep_last(30)
    for start in (0, 69, "earliest"):
        assert q.subscribe(start=start).position == 70


def test_a_start_beyond_the_end_is_refused(q):
    q.put(1)
    with pytest.raises(ValueError, match=r"start must not be beyond the end of .*: start=2, end=1"):
        q.subscribe(start=2)
    assert q.readers() == []


@pytest.mark.parametrize("start", [-1, 2**52, 2**64, 10**30])
def test_a_start_that_is_no_position_is_a_value_error(q, start):
    with pytest.raises(ValueError, match="start must be"):
        q.subscribe(start=start)


@pytest.mark.parametrize("start", [None, 1.0, "1", "first", b"latest", True])
def test_a_start_that_is_no_number_is_a_type_error(q, start):
    with pytest.raises(TypeError, match="start must be"):
        q.subscribe(start=start)


@pytest.mark.parametrize("name", ["", 5, b"d"])
def test_a_name_is_a_str_that_is_not_empty(q, name):
    with pytest.raises(ValueError, match="a reader's name must be a str that is not empty"):
        q.subscribe(name)


def test_names_have_at_most_96_bytes(q):
    assert q.subscribe("x" * 96).name == "x" * 96
    assert q.subscribe("ä" * 48).name == "ä" * 48
    for name in ("x" * 97, "ä" * 49):
        with pytest.raises(ValueError, match="at most 96 bytes"):
            q.subscribe(name)


def test_names_are_told_apart_by_every_byte(q):
    readers = [q.subscribe(name) for name in ("a", "b", "aa", "a ", "A", "a\0", "ä")]
    assert sorted(each.name for each in q.readers()) == sorted(reader.name for reader in readers)
    with pytest.raises(ReaderInUse, match="the reader 'aa'"):
        q.subscribe("aa")


def test_a_durable_reader_that_is_held_is_busy(q):
    reader = q.subscribe("d")
    with pytest.raises(ReaderInUse, match=r"'d'.*held by a live process; close it there first"):
        q.subscribe("d")
    reader.close()
    q.subscribe("d")


def test_a_durable_reader_held_in_another_process_is_busy_until_that_ends(named, children):
    child = children.start(
        "import queueduct; q = queueduct.open('q'); r = q.subscribe('d'); print(1, flush=True); input()"
    )
    child.stdout.readline()
    with pytest.raises(ReaderInUse):
        named.subscribe("d")
    with pytest.raises(ReaderInUse):
        named.unsubscribe("d")
    assert named.readers()[0].is_attached
    child.kill()
    child.wait(30)
    assert not named.readers()[0].is_attached
    named.subscribe("d")


def test_two_handles_of_one_process_are_two_holders(named):
    with EventQueue.open("q") as other:
        reader = other.subscribe("d")
        with pytest.raises(ReaderInUse):
            named.subscribe("d")
        reader.close()
        named.subscribe("d").close()


def test_unsubscribe_forgets_a_durable_reader_and_frees_what_it_held():
    with EventQueue.create("q", item="<u8", max_bytes=4096, on_full="raise") as q:
        q.subscribe("d").close()
        fill(q)
        other = q.subscribe(start="latest")
        q.unsubscribe("d")
        assert q.put_many(numbers(100)) == 100
        assert [each.name for each in q.readers()] == [None]
        assert q.subscribe("d", start="earliest").position == q.earliest
        assert other.lag == 100


def test_unsubscribe_of_a_name_that_is_not_there_is_an_error(q):
    with pytest.raises(ValueError, match="has no durable reader 'd'"):
        q.unsubscribe("d")
    with pytest.raises(TypeError, match="must be a str"):
        q.unsubscribe(None)


def test_unsubscribe_of_a_reader_that_is_held_is_refused(q):
    q.put(1)
    reader = q.subscribe("d", start="earliest")
    with pytest.raises(ReaderInUse, match="close it there first"):
        q.unsubscribe("d")
    assert reader.get() == 1


def test_readers_tells_who_is_registered_and_how_far(q):
    q.put_many(range(10))
    first = q.subscribe("first", start="earliest")
    second = q.subscribe()
    third = q.subscribe("third", start=4)
    third.close()
    first.get_many(3)
    first.commit()
    assert sorted(q.readers(), key=str) == sorted(
        [
            ReaderInfo("first", committed=3, lag=7, is_attached=True, is_dropped=False),
            ReaderInfo(None, committed=10, lag=0, is_attached=True, is_dropped=False),
            ReaderInfo("third", committed=4, lag=6, is_attached=False, is_dropped=False),
        ],
        key=str,
    )
    assert q.stats().readers == 3
    second.close()
    assert [each.name for each in q.readers()] == ["first", "third"]


@pytest.mark.parametrize("local", [False, True])
def test_a_table_of_readers_that_is_full_says_what_to_do(local):
    with EventQueue(readers=3) if local else EventQueue.create("q", item=object, readers=3) as q:
        held = [q.subscribe(), q.subscribe("a"), q.subscribe("b")]
        held[2].close()
        for name in (None, "c"):
            with pytest.raises(
                queueduct.TooManyReaders, match=r"all 3 readers of .* are in use: .*; close some, unsubscribe.*readers="
            ):
                q.subscribe(name)
        q.subscribe("b").close()  # known: it needs no new line
        q.unsubscribe("b")
        q.subscribe("c").close()
        held[0].close()
        q.subscribe()


def test_a_dead_ephemeral_readers_line_is_free_again(children):
    q = EventQueue.create("q", item="<u8", readers=1)
    for _ in range(3):
        pid = children.fork(lambda: (EventQueue.open("q").subscribe(), os.kill(os.getpid(), 9)))
        assert children.wait(pid) == -9
    q.subscribe()


def test_readers_join_and_leave_in_many_threads(q):
    """Allowed: each subscription works, and sees what is put after it."""
    failures = []

    def come_and_go(number):
        for i in range(50):
            with q.subscribe() as reader:
                q.put((number, i))
                if (number, i) not in [reader.get(timeout=30) for _ in range(reader.lag)]:
                    failures.append((number, i))

    threads = [threading.Thread(target=come_and_go, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert q.readers() == []


CALLS = {
    "get": lambda r: r.get(),
    "get_nowait": lambda r: r.get_nowait(),
    "try_get": lambda r: r.try_get(),
    "get_many": lambda r: r.get_many(5),
    "next": lambda r: next(r),
    "view": lambda r: r.view().__enter__(),
    "position": lambda r: r.position,
    "committed": lambda r: r.committed,
    "lag": lambda r: r.lag,
    "commit": lambda r: r.commit(),
}


@pytest.mark.parametrize("how", ["reader", "queue"])
@pytest.mark.parametrize("call", list(CALLS))
def test_a_closed_reader_refuses_everything(named, call, how):
    named.put(1)
    reader = named.subscribe("d", start="earliest")
    (reader if how == "reader" else named).close()
    with pytest.raises(QueueClosed):
        CALLS[call](reader)
    reader.close()
    assert "closed" in repr(reader) or how == "queue"


def test_a_closed_handle_gives_up_its_readers_even_while_the_objects_live(named):
    other = EventQueue.open("q")
    durable, ephemeral = other.subscribe("d"), other.subscribe()
    other.close()
    assert named.readers() == [ReaderInfo("d", 0, 0, is_attached=False, is_dropped=False)]
    again = named.subscribe("d")
    durable.close()
    ephemeral.close()
    assert again.try_get() is None
    assert named.readers()[0].is_attached


def test_a_reader_keeps_its_handle_alive():
    EventQueue.create("q", item="<u8").close()
    reader = EventQueue.open("q").subscribe()
    EventQueue.open("q").put(5)
    assert reader.get(timeout=30) == 5


def test_a_forked_child_must_subscribe_again(named, children):
    reader, durable = named.subscribe(), named.subscribe("d")
    named.put(7)

    def work():
        for each in (reader, durable):
            try:
                each.get()
            except QueueClosed as error:
                assert "stays with the process that subscribed" in str(error)
            else:
                os._exit(7)
            each.close()
        own = named.subscribe(start="earliest")
        assert own.get() == 7

    assert children.wait(children.fork(work)) == 0
    assert reader.get() == 7
    assert durable.get() == 7


def test_a_forked_childs_end_leaves_the_parents_readers_attached(named, children):
    reader = named.subscribe("d")
    assert children.wait(children.fork(lambda: None)) == 0
    assert children.wait(children.fork(lambda: (reader.close(), named.close()))) == 0
    assert named.readers()[0].is_attached
    with pytest.raises(ReaderInUse):
        EventQueue.open("q").subscribe("d")


@pytest.mark.parametrize("dump", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_reader_stays_where_it_is(q, dump):
    with pytest.raises(TypeError, match="pickle the queue and subscribe there"):
        dump(q.subscribe())


@pytest.mark.parametrize("call", ["get", "get_nowait", "try_get", "__next__"])
def test_the_queue_itself_is_not_read(q, call):
    with pytest.raises(TypeError, match=r"subscribe\(\)"):
        getattr(q, call)()
    with pytest.raises(TypeError, match=r"subscribe\(\)"):
        q.get_many(5)


def test_a_reader_is_made_by_its_queue():
    with pytest.raises(TypeError, match=r"made by EventQueue\.subscribe\(\)"):
        queueduct.Reader()


def test_a_reader_that_was_never_made_is_closed():
    reader = queueduct.Reader.__new__(queueduct.Reader)
    assert reader.closed
    with pytest.raises(QueueClosed):
        reader.get()
    reader.close()


def test_repr_tells_kind_name_and_place(q):
    q.put(1)
    assert repr(q.subscribe("d", start="earliest")) == "<queueduct.Reader durable 'd' position=0>"
    assert repr(q.subscribe()) == "<queueduct.Reader ephemeral position=1>"
