"""A named queue pickles by name: into threads, forks, spawned processes and strangers alike."""

from __future__ import annotations

import copy
import multiprocessing
import pickle

import pytest

import queueduct
from queueduct import BoundedQueue, QueueNotFound, QueueReplaced


class Tagged(BoundedQueue):
    """A subclass: it must come back as one."""


def echo(inward, outward):
    """What the other process does: until the shutdown, everything comes back with a mark."""
    for item in inward:
        outward.put(item + b"!")
    outward.shutdown()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickled_queue_is_the_same_queue_in_this_process(protocol):
    q = BoundedQueue.create("q", 4)
    again = pickle.loads(pickle.dumps(q, protocol))
    assert again is not q
    q.put(b"1")
    assert again.get() == b"1"


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_is_another_handle_of_the_same_queue(copied):
    q = BoundedQueue.create("q", 4)
    again = copied(q)
    q.put(b"1")
    q.close()
    assert again.get() == b"1"


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_queue_goes_to_another_process_however_that_is_started(method):
    context = multiprocessing.get_context(method)
    inward, outward = BoundedQueue.create("in", 8), BoundedQueue.create("out", 8)
    process = context.Process(target=echo, args=(inward, outward))
    process.start()
    for i in range(50):
        inward.put(b"%d" % i)
        assert outward.get(timeout=60) == b"%d!" % i
    inward.shutdown()
    assert list(outward) == []
    process.join(60)
    assert process.exitcode == 0
    assert inward.stats().participants == outward.stats().participants == 1


def test_a_pickle_finds_its_queue_even_where_queueduct_dir_is_another(children, tmp_path, monkeypatch):
    q = BoundedQueue.create("q", 4)
    data = pickle.dumps(q)
    monkeypatch.setenv("QUEUEDUCT_DIR", str(tmp_path))
    children.run("import pickle, sys; pickle.loads(bytes.fromhex(sys.argv[1])).put(b'1')", data.hex())
    assert q.get() == b"1"


def test_a_recreated_queue_is_not_the_one_that_was_pickled():
    q = BoundedQueue.create("q", 4)
    data = pickle.dumps(q)
    q.unlink()
    with pytest.raises(QueueNotFound, match="no queue named 'q'"):
        pickle.loads(data)
    BoundedQueue.create("q", 4)
    with pytest.raises(QueueReplaced, match="recreated"):
        pickle.loads(data)


def test_a_closed_handle_still_knows_what_it_was_a_handle_of():
    q = BoundedQueue.create("q", 4)
    q.put(b"1")
    q.close()
    assert pickle.loads(pickle.dumps(q)).get() == b"1"


@pytest.mark.parametrize("dump", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_queue_without_a_name_cannot_be_pickled(dump):
    with pytest.raises(TypeError, match=r"cannot be pickled; use BoundedQueue.create"):
        dump(BoundedQueue(4))


def test_a_subclass_comes_back_as_itself():
    q = Tagged.create("q", 4)
    assert type(pickle.loads(pickle.dumps(q))) is Tagged


def test_a_queue_of_objects_comes_back_able_to_unpickle():
    q = BoundedQueue.create("q", 4, item=object)
    pickle.loads(pickle.dumps(q)).put({"a": 1})
    assert q.get() == {"a": 1}


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
