"""What the registry says of each kind: true, and obeyed by the sink."""

import pytest

from queueduct.segments.kinds import KINDS, kind_of
from queueduct.spark.write.commit import Putter


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_has_what_its_row_says(name):
    with KINDS[name].queue_class.create(f"some-{name}", item="f8") as queue:
        kind = kind_of(queue)
        assert kind.is_log == hasattr(queue, "read")
        assert kind.is_log or (hasattr(queue, "lease") and hasattr(queue, "unreleased"))
        assert kind.puts_once == hasattr(queue, "put_once")
        before = kind.count_put(queue)
        queue.put(1.5)
        assert kind.count_put(queue) > before
        assert kind.count_lost(queue) == 0


@pytest.mark.parametrize(("name", "size"), [("bounded", 2), ("overwriting", 4)])
def test_a_kind_that_cannot_put_once_puts_a_repeated_batch_again(name, size):
    with KINDS[name].queue_class.create("jobs", 16, item="i8") as jobs:
        for _ in range(2):
            Putter(jobs, None).put_once([1, 2], "query", 7)
        assert jobs.qsize() == size
