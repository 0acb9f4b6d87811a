"""``BoundedQueue[Job]`` and its like: types of items for annotations, which change nothing at run time."""

from __future__ import annotations

import pickle
import types
import typing
from typing import Any, NamedTuple

import pytest

import queueduct
import queueduct.multiprocessing
import queueduct.queue

SUBSCRIPTED = [
    queueduct.BoundedQueue,
    queueduct.GrowingQueue,
    queueduct.OverwritingQueue,
    queueduct.SlotQueue,
    queueduct.EventQueue,
    queueduct.Reader,
    queueduct.Lease,
    queueduct.TakenSlot,
    queueduct.Workers,
    queueduct.multiprocessing.Queue,
    queueduct.multiprocessing.JoinableQueue,
    queueduct.multiprocessing.SimpleQueue,
    queueduct.queue.Queue,
    queueduct.queue.SimpleQueue,
]


class Job(NamedTuple):
    number: int


@pytest.mark.parametrize("cls", SUBSCRIPTED, ids=lambda cls: f"{cls.__module__}.{cls.__name__}")
def test_a_class_takes_the_type_of_its_items(cls: Any) -> None:
    alias = cls[Job]
    assert type(alias) is types.GenericAlias
    assert alias.__origin__ is cls
    assert alias.__args__ == (Job,)
    assert alias == cls[Job]
    assert pickle.loads(pickle.dumps(alias)) == alias
    with pytest.raises(TypeError, match="isinstance"):
        isinstance(3, alias)


def test_an_annotation_with_the_type_of_items_can_be_read_back() -> None:
    def work(jobs: queueduct.BoundedQueue[Job], lease: queueduct.Lease[Job]) -> queueduct.Reader[Job]:
        raise NotImplementedError

    hints = typing.get_type_hints(work, localns=locals())
    assert hints["jobs"] == queueduct.BoundedQueue[Job]
    assert typing.get_args(hints["lease"]) == (Job,)
    assert typing.get_origin(hints["return"]) is queueduct.Reader


def test_a_queue_of_a_named_type_is_made_as_one_without() -> None:
    assert type(queueduct.BoundedQueue[Job](8)) is queueduct.BoundedQueue
    q: queueduct.BoundedQueue[Job] = queueduct.BoundedQueue[Job].create("jobs", item=object)
    with q, pickle.loads(pickle.dumps(q)) as again, queueduct.BoundedQueue[Job].open("jobs") as third:
        q.put(Job(3))
        assert again.lease(1).items == [Job(3)]
        assert type(again) is type(third) is queueduct.BoundedQueue
        q.unlink()


def test_a_class_can_derive_from_a_queue_of_a_named_type() -> None:
    class Jobs(queueduct.GrowingQueue[Job]):
        def numbers(self) -> list[int]:
            return [job.number for job in self.get_many(10)]

    with Jobs.create("jobs", item=object) as jobs:
        jobs.put_many([Job(1), Job(2)])
        assert type(jobs) is Jobs
        assert isinstance(jobs, queueduct.GrowingQueue)
        assert jobs.numbers() == [1, 2]
        jobs.unlink()
