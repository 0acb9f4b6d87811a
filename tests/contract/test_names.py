"""Names of queues: how a queue is found by its name, whatever its kind, and what becomes of a name."""

from __future__ import annotations

import itertools

import pytest

import queueduct
from queueduct import BoundedQueue, EventQueue, GrowingQueue, OverwritingQueue, QueueExists, SlotQueue
from tests.support.cases import CASES, LOCAL, NAMED, PLAIN_NAMED
from tests.support.children import open_descriptors
from tests.support.lossless import Lossless


def test_open_finds_the_kind_by_itself(named):
    made = named.make(4)
    cls = named.cls.__mro__[1] if named.cls is Lossless else named.cls

    class Tagged(cls):
        pass

    with queueduct.open("q") as q:
        assert type(q) is cls
        assert q.item == made.item
        assert q.name == "q"
    with Tagged.open("q") as q:
        assert type(q) is Tagged


@pytest.mark.parametrize(("name", "other"), list(itertools.permutations(PLAIN_NAMED, 2)))
def test_a_queue_of_another_kind_is_refused_by_its_name(name, other):
    with CASES[name].make(4):
        (info,) = queueduct.queues()
        with pytest.raises(TypeError, match=f"'q' is a queue of kind '{info.kind}', not '"):
            CASES[other].cls.open("q")
        sizes = {"capacity": 4} if CASES[other].cls in (BoundedQueue, Lossless, SlotQueue) else {}
        with pytest.raises(TypeError, match=f"of kind '{info.kind}'"):
            CASES[other].cls.create("q", **sizes, exist_ok=True)


def test_queues_lists_them_with_their_kind():
    for name in PLAIN_NAMED:
        CASES[name].make(4, name.split(",")[0]).close()
    kinds = ["bounded", "events", "growing", "overwriting", "slots"]
    assert [info[:2] for info in queueduct.queues()] == [(kind, kind) for kind in kinds]
    queueduct.unlink("events")
    kinds.remove("events")
    assert [info[:2] for info in queueduct.queues()] == [(kind, kind) for kind in kinds]
    with pytest.raises(queueduct.QueueNotFound):
        EventQueue.open("events")


def test_a_name_that_is_taken_is_refused(plain_named):
    with plain_named.make(4), pytest.raises(QueueExists, match="open it, or unlink it first"):
        plain_named.make(4)


def test_an_unlinked_queue_goes_on_for_those_who_have_it(plain_named):
    q = plain_named.make(4)
    reader = plain_named.consumer(q)
    q.unlink()
    assert queueduct.queues() == []
    q.put(plain_named.item(1))
    assert plain_named.number(reader.get()) == 1


@pytest.mark.parametrize("name", LOCAL)
def test_without_a_name_there_is_nothing_to_unlink(name):
    q = CASES[name].make(4)
    assert (q.name, q.item) == (None, object)
    with pytest.raises(ValueError, match="nothing to unlink"):
        q.unlink()


class Counting(BoundedQueue):
    """A subclass with attributes and an initialiser of its own."""

    def __init__(self, capacity=8, label=""):
        super().__init__(capacity)
        self.label = label

    def put(self, item, block=True, timeout=None):
        super().put(item, block, timeout)
        self.__dict__["puts"] = self.__dict__.get("puts", 0) + 1


def test_a_subclass_works_without_a_name():
    q = Counting(4, label="mine")
    q.put(1)
    q.put(2)
    assert (q.puts, q.label, q.capacity, q.get()) == (2, "mine", 4, 1)


def test_a_subclass_works_by_name():
    made = Counting.create("q", 4)
    assert type(made) is Counting
    made.put(b"1")
    opened = Counting.open("q")
    assert type(opened) is Counting
    assert opened.get() == b"1"
    assert made.puts == 1


SHAPES = {
    BoundedQueue: (
        {"capacity": 8, "item": "<u8", "participants": 7, "producers": 6},
        {"capacity": 16, "item": "<i8", "participants": 8, "producers": 5},
    ),
    GrowingQueue: (
        {"item": bytes, "slot_bytes": 32, "first_bytes": 256, "steps": 4, "participants": 7, "producers": 6},
        {"item": object, "slot_bytes": 64, "first_bytes": 512, "steps": 3, "participants": 8, "producers": 5}
        | {"max_bytes": 1 << 20},
    ),
    OverwritingQueue: (
        {"capacity": 4, "item": "<i8", "participants": 7},
        {"capacity": 5, "item": "<i4", "participants": 8},
    ),
    SlotQueue: (
        {"capacity": 4, "item": bytes, "slot_bytes": 32, "participants": 7, "producers": 6},
        {"capacity": 5, "item": object, "slot_bytes": 33, "participants": 8, "producers": 5},
    ),
    EventQueue: (
        {"item": "<u8", "max_bytes": 1 << 20, "on_full": "raise", "first_items": 8, "chunk_bytes": 8192, "readers": 5}
        | {"producers": 6, "participants": 7, "sync": "never", "sync_interval": 2.0},
        {"item": "<i8", "max_bytes": 1 << 21, "on_full": "wait", "first_items": 9, "chunk_bytes": 16384, "readers": 6}
        | {"producers": 7, "participants": 8, "sync": "always", "sync_interval": 1.0},
    ),
}
"""Of each kind: options, and for each of them another value, with which it is another queue."""


@pytest.mark.parametrize("cls", SHAPES, ids=lambda cls: cls.__name__)
def test_exist_ok_opens_a_queue_of_the_same_shape(cls):
    shape, _ = SHAPES[cls]
    with cls.create("q", **shape) as q, cls.create("q", **shape, exist_ok=True) as again:
        q.put(b"1" if q.item is bytes else 1)
        assert again.qsize() == 1
        with pytest.raises(QueueExists, match="open it, or unlink it first"):
            cls.create("q", **shape)


@pytest.mark.parametrize(
    ("cls", "field"), [(cls, field) for cls, (_, others) in SHAPES.items() for field in others], ids=str
)
def test_exist_ok_refuses_another_shape(cls, field):
    shape, others = SHAPES[cls]
    cls.create("q", **shape).close()
    descriptors = open_descriptors()
    with pytest.raises(QueueExists, match="exists and is of another shape"):
        cls.create("q", **shape | {field: others[field]}, exist_ok=True)
    assert open_descriptors() == descriptors


@pytest.mark.parametrize("name", [name for name in NAMED if "pickled" in name])
def test_pickled_objects_can_be_refused(name):
    with CASES[name].make(4), pytest.raises(ValueError, match="unpickling runs code"):
        queueduct.open("q", allow_pickle=False)
