"""A named queue pickles by name: into threads, forks, spawned processes and strangers alike."""

from __future__ import annotations

import copy
import multiprocessing
import pickle

import pytest

import queueduct
from queueduct import BoundedQueue, QueueNotFound, QueueReplaced
from tests.support.cases import CASES, LOCAL, PLAIN_NAMED


class Tagged(BoundedQueue):
    """A subclass: it must come back as one."""


def echo(name, inward, outward):
    """What the other process does: until the shutdown, everything comes back with 1000 added."""
    case = CASES[name]
    for item in case.consumer(inward):
        outward.put(case.item(case.number(item) + 1000))
    outward.shutdown()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickled_queue_is_the_same_queue_in_this_process(plain_named, protocol):
    q = plain_named.make(4)
    again = pickle.loads(pickle.dumps(q, protocol))
    assert again is not q
    assert type(again) is type(q)
    q.put(plain_named.item(1))
    assert plain_named.number(plain_named.consumer(again).get()) == 1


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_is_another_handle_of_the_same_queue(plain_named, copied):
    q = plain_named.make(4)
    again = copied(q)
    q.put(plain_named.item(1))
    q.close()
    assert plain_named.number(plain_named.consumer(again).get()) == 1


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize(
    ("name", "method"),
    [
        *((name, "spawn") for name in PLAIN_NAMED),
        ("bounded, bytes", "fork"),
        ("bounded, bytes", "forkserver"),
        ("events, bytes", "fork"),
    ],
)
def test_a_queue_goes_to_another_process_however_that_is_started(name, method):
    case = CASES[name]
    inward, outward = case.make(8, "in"), case.make(8, "out")
    answers = case.consumer(outward)
    process = multiprocessing.get_context(method).Process(target=echo, args=(name, inward, outward))
    process.start()
    for i in range(50):
        inward.put(case.item(i))
        assert case.number(answers.get(timeout=60)) == i + 1000
    inward.shutdown()
    assert list(answers) == []
    process.join(60)
    assert process.exitcode == 0
    assert inward.stats().participants == outward.stats().participants == 1


def test_a_pickle_finds_its_queue_from_another_directory(plain_named, children, tmp_path, monkeypatch):
    q = plain_named.make(4)
    data = pickle.dumps(q)
    q.put(plain_named.item(7))
    monkeypatch.setenv("QUEUEDUCT_DIR", str(tmp_path))
    code = "import pickle, sys; print(pickle.loads(bytes.fromhex(sys.argv[1])).qsize())"
    assert children.run(code, data.hex()) == "1\n"


def test_a_recreated_queue_is_not_the_one_that_was_pickled(plain_named):
    q = plain_named.make(4)
    data = pickle.dumps(q)
    q.unlink()
    with pytest.raises(QueueNotFound, match="no queue named 'q'"):
        pickle.loads(data)
    plain_named.make(4)
    with pytest.raises(QueueReplaced, match="recreated"):
        pickle.loads(data)


def test_a_closed_handle_still_knows_what_it_was_a_handle_of(plain_named):
    q = plain_named.make(4)
    q.put(plain_named.item(1))
    q.close()
    assert plain_named.number(plain_named.consumer(pickle.loads(pickle.dumps(q))).get()) == 1


@pytest.mark.parametrize("name", LOCAL)
@pytest.mark.parametrize("dump", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_queue_without_a_name_cannot_be_pickled(name, dump):
    case = CASES[name]
    with pytest.raises(TypeError, match=rf"cannot be pickled; use {case.cls.__name__}\.create"):
        dump(case.make(4))


def test_a_subclass_comes_back_as_itself():
    q = Tagged.create("q", 4)
    assert type(pickle.loads(pickle.dumps(q))) is Tagged


@pytest.mark.parametrize("name", [name for name in CASES if "pickled" in name])
def test_a_queue_of_objects_comes_back_able_to_unpickle(name):
    case = CASES[name]
    q = case.make(4)
    pickle.loads(pickle.dumps(q)).put({"id": 1})
    assert case.consumer(q).get() == {"id": 1}


def test_a_queue_can_go_through_a_queue():
    outer, inner = BoundedQueue.create("outer", 4, item=object, slot_bytes=1024), BoundedQueue.create("inner", 4)
    outer.put(inner)
    with outer.get() as got:
        got.put(b"1")
    assert inner.get() == b"1"


def test_the_errors_pickle_too():
    for error in (queueduct.QueueReplaced("x"), queueduct.CorruptSegment("x"), queueduct.QueueExists("x")):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert str(again) == str(error)
