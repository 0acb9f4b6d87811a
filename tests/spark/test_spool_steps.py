"""A drainer that is killed at whichever step between claim and release: each item is kept once."""

import numpy as np
import pytest

import queueduct
from tests.spark.rows import TICK, check_each_once, numbered
from tests.spark.spooling import STEPS, Query, killed_at

PAIRS = [(step, again) for step in STEPS for again in STEPS]
SOME = [(step, None) for step in STEPS] + [*zip(STEPS, STEPS[3:] + STEPS[:3], strict=True)]


@pytest.mark.parametrize(
    ("step", "again"), SOME + [pytest.param(*pair, marks=pytest.mark.long) for pair in PAIRS if pair not in SOME]
)
def test_killed_at_any_step_and_again_each_item_is_kept_once(jobs, tmp_path, step, again):
    jobs.put_many(numbered(0, 100))
    killed_at(step, tmp_path, 60)
    if again is not None:
        jobs.put_many(numbered(100, 120))
        killed_at(again, tmp_path, 60)
    query = Query(tmp_path)
    query.drainer.drain(1000)
    check_each_once(query.numbers(), 120 if again else 100)
    assert jobs.empty()
    assert query.drainer.reader.committed == query.spool.log.end
    assert jobs.put_many(numbered(0, 1024), block=False) == 1024, "no slot is left claimed"
    query.close()


@pytest.mark.parametrize("step", STEPS)
def test_what_a_killed_query_had_kept_is_not_kept_again_by_another(jobs, tmp_path, step):
    """Two queries share a queue: what one of them held when it was killed goes to the other, if it had not kept it."""
    jobs.put_many(numbered(0, 100))
    killed_at(step, tmp_path / "one", 60)
    other = Query(tmp_path / "other")
    other.drainer.drain(1000)
    one = Query(tmp_path / "one")
    one.drainer.drain(1000)
    check_each_once(np.concatenate([one.numbers(), other.numbers()]), 100)
    assert one.drainer.reader.committed == one.spool.log.end
    one.close()
    other.close()


def test_what_may_come_again_stays_in_the_spool_though_spark_is_done_with_it(jobs, tmp_path):
    """Another query holds what a killed one had kept, and is slow to look: it must still find it."""
    jobs.put_many(numbered(0, 100))
    killed_at("synced", tmp_path / "one", 60)
    slow = jobs.lease(1000)
    assert slow.is_redelivered
    one = Query(tmp_path / "one")
    one.drainer.drain(1000)
    one.reader.commit(one.spool.log.end)
    assert one.spool.log.earliest == 0
    slow.give_back()
    other = Query(tmp_path / "other")
    other.drainer.drain(1000)
    assert len(other.numbers()) == 0
    one.drainer.settle()
    assert one.drainer.reader.committed == one.spool.log.end
    one.close()
    other.close()


@pytest.mark.parametrize("step", STEPS)
def test_what_a_killed_drainer_had_claimed_survives_that_the_queue_is_lapped(tmp_path, step):
    """Delivered and lost make up all that was put, to the unit, whenever the drainer is killed."""
    with queueduct.OverwritingQueue.create("jobs", 64, item=TICK) as jobs:
        jobs.put_many(numbered(0, 64))
        killed_at(step, tmp_path, 60)
        jobs.put_many(numbered(64, 1000))
        query = Query(tmp_path)
        query.drainer.drain(1000)
        found = query.numbers()
        stats = jobs.stats()
        assert len(np.unique(found)) == len(found)
        claimed = 0 if step == "before claim" else 60
        assert sorted(found.tolist()) == [*range(claimed), *range(936, 1000)]
        assert len(found) + stats.overwritten == stats.puts == 1000
        assert (stats.torn, stats.lost_with_consumer, stats.size) == (0, 0, 0)
        query.close()
