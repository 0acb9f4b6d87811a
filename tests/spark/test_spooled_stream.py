"""The stream reader of a queue that is drained, called as Spark calls it."""

import shutil

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

import queueduct
from queueduct.spark.datasource import check_spooled
from queueduct.spark.options import SourceOptions
from queueduct.spark.read import subscription
from tests.spark.rows import TICK, numbered
from tests.spark.spooling import Query, killed_at, stream_of


def test_a_stream_takes_no_more_than_a_batch_may_have(jobs, tmp_path):
    jobs.put_many(numbered(0, 1000))
    stream = stream_of(jobs, tmp_path)
    start = stream.initialOffset()
    end = stream.latestOffset(start, ReadMaxRows(300))
    assert (start["position"], end["position"], jobs.qsize()) == (0, 300, 700)
    assert stream.reportLatestOffset()["position"] == 1000
    assert [(span.start, span.stop) for span in stream.partitions(start, end)] == [(0, 300)]
    stream.stop()


def test_available_now_counts_what_the_dead_have_left(jobs, tmp_path):
    jobs.put_many(numbered(0, 100))
    killed_at("claimed", tmp_path, 60)
    assert jobs.unreleased(range(100))
    stream = stream_of(jobs, tmp_path)
    stream.prepareForTriggerAvailableNow()
    end = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    jobs.put_many(numbered(100, 200))
    assert end["position"] == stream.latestOffset(end, ReadAllAvailable())["position"] == 100
    stream.stop()


def test_a_spool_that_another_query_fills_is_a_clear_error(jobs, tmp_path, monkeypatch):
    monkeypatch.setattr(subscription, "BUSY_SECONDS", 0.0)
    one = stream_of(jobs, tmp_path)
    one.initialOffset()
    with pytest.raises(queueduct.ReaderInUse, match=r"filled by another query.*option spoolDir"):
        stream_of(jobs, tmp_path).initialOffset()
    stream_of(jobs, tmp_path / "other").initialOffset()
    one.stop()
    stream_of(jobs, tmp_path).initialOffset()


def test_a_checkpoint_whose_spool_is_gone_is_an_error_and_takes_nothing(jobs, tmp_path):
    jobs.put_many(numbered(0, 100))
    stream = stream_of(jobs, tmp_path)
    end = stream.latestOffset(stream.initialOffset(), ReadMaxRows(50))
    stream.stop()
    shutil.rmtree(tmp_path)
    again = stream_of(jobs, tmp_path)
    again.prepareForTriggerAvailableNow()
    with pytest.raises(ValueError, match=r"the checkpoint's spool of the queue 'jobs' is not in .* new checkpoint"):
        again.latestOffset(end, ReadAllAvailable())
    assert jobs.qsize() == 50


def test_a_checkpoint_that_another_query_has_overtaken_is_an_error(jobs, tmp_path):
    jobs.put_many(numbered(0, 100))
    one = stream_of(jobs, tmp_path)
    start = one.initialOffset()
    end = one.latestOffset(start, ReadMaxRows(50))
    one.stop()
    other = stream_of(jobs, tmp_path)
    other.commit(other.latestOffset(other.initialOffset(), ReadAllAvailable()))
    other.stop()
    with pytest.raises(ValueError, match=r"has been read by another query .* spoolDir of its own"):
        stream_of(jobs, tmp_path).partitions(start, end)


@pytest.mark.parametrize("option", [{"startingOffsets": "latest"}, {"startingOffsets": "5"}, {"reader": "mine"}])
def test_options_of_a_log_are_refused(option):
    with pytest.raises(ValueError, match="leave it out"):
        check_spooled(SourceOptions.of({"queue": "jobs", **option}))


def test_what_a_queue_overwrites_before_it_is_drained_is_lost_and_reported(tmp_path):
    with queueduct.OverwritingQueue.create("jobs", 64, item=TICK) as jobs:
        jobs.put_many(numbered(0, 100))
        stream = stream_of(jobs, tmp_path)
        end = stream.latestOffset(stream.initialOffset(), ReadMaxRows(20))
        jobs.put_many(numbered(100, 200))
        assert stream.reportLatestOffset() == {**end, "position": 84, "lost": 36 + 80}
        stream.latestOffset(end, ReadAllAvailable())
        stream.stop()
        query = Query(tmp_path)
        assert query.numbers().tolist() == [*range(36, 56), *range(136, 200)]
        assert query.positions().tolist() == query.numbers().tolist(), "what is missing between positions was lost"
        assert query.drainer.reader.committed == query.spool.log.end
        query.close()
