"""The table of kinds: true, and obeyed by the sink."""

from dataclasses import replace

import pytest

import queueduct
from queueduct.kinds import CLASSES
from queueduct.spark.kinds import KINDS, kind_of
from queueduct.spark.write.commit import Putter


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_has_what_its_row_says(name):
    with CLASSES[name].create(f"some-{name}", item="f8") as queue:
        kind = kind_of(queue)
        assert kind.is_read_in_place == hasattr(queue, "read")
        assert kind.is_read_in_place or (hasattr(queue, "lease") and hasattr(queue, "unreleased"))
        assert kind.puts_once == hasattr(queue, "put_once")
        before = kind.count_put(queue)
        queue.put(1.5)
        assert kind.count_put(queue) > before
        assert kind.count_lost(queue) == 0


@pytest.mark.parametrize("name", sorted(CLASSES.keys() - KINDS.keys()))
def test_a_kind_without_a_row_is_refused(name):
    refusal = pytest.raises(TypeError, match=f"no use yet for a queue of kind '{name}'")
    with CLASSES[name].create(f"some-{name}", item="f8") as queue, refusal:
        kind_of(queue)


@pytest.mark.parametrize(("puts_once", "size"), [(True, 2), (False, 4)])
def test_a_kind_that_cannot_put_once_puts_a_repeated_batch_again(monkeypatch, puts_once, size):
    monkeypatch.setitem(KINDS, "bounded", replace(KINDS["bounded"], puts_once=puts_once))
    with queueduct.BoundedQueue.create("jobs", 16) as jobs:
        for _ in range(2):
            Putter(jobs, None).put_once([b"a", b"b"], "query", 7)
        assert jobs.qsize() == size
