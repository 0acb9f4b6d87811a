"""The registry of kinds: one declaration makes a kind known everywhere, and each has a name and a number of its own."""

from __future__ import annotations

import numpy as np
import pytest

from queueduct.rings import BoundedQueue
from queueduct.rings.geometry import BoundedGeometry
from queueduct.segments.kinds import KINDS, Kind, by_number, register

NEW_KIND = """
import queueduct
from queueduct.items.types import ItemType
from queueduct.rings.geometry import BoundedGeometry
from queueduct.segments import creation
from queueduct.segments.kinds import Kind, kind_of, register

class TwinGeometry(BoundedGeometry):
    kind = "twin"
    number = 77

class Twin(queueduct.BoundedQueue):
    pass

register(Kind(TwinGeometry, Twin, count_put=lambda queue: queue.stats().push_position))
creation.create("q", TwinGeometry(8, 0, 16, 8), ItemType.of("i8"), Twin._attach).close()
with queueduct.open("q") as queue:
    queue.put(1)
    print(type(queue).__name__, queue.kind, kind_of(queue).count_put(queue), [info[:2] for info in queueduct.queues()])
"""


def test_every_kind_has_a_number_that_segments_keep():
    numbers = {name: kind.geometry.number for name, kind in KINDS.items()}
    assert list(numbers.items()) == [("bounded", 1), ("growing", 2), ("overwriting", 3), ("slots", 4), ("events", 5)]
    assert all(by_number(number) is KINDS[name] for name, number in numbers.items())
    assert by_number(6) is None


def test_a_kind_is_known_everywhere_once_it_is_declared(children):
    assert children.run(NEW_KIND) == "Twin twin 1 [('q', 'twin')]\n"


@pytest.mark.parametrize(("name", "number"), [("bounded", 6), ("new", 1)])
def test_a_name_and_a_number_are_one_kinds_own(name, number):
    shape = type("Shape", (BoundedGeometry,), {"kind": name, "number": number})
    with pytest.raises(ValueError, match=f"a name and a number of its own: '{name}', {number}"):
        register(Kind(shape, BoundedQueue, count_put=len))
    assert len(KINDS) == 5


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_makes_a_queue_for_about_so_many_records(name, tmp_path):
    kind, item = KINDS[name], np.dtype("i8")
    with kind.create("q", 64, item, 4, directory=tmp_path) as queue:
        assert (queue.kind, queue.item, queue.directory) == (name, item, tmp_path)
        assert queue.stats().participants_limit == 4
        assert not kind.has_capacity or queue.capacity == 64
        queue.put_many(range(64))
        assert queue.qsize() == 64
