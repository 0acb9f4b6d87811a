"""Offsets outlive the machine: they name only what does, and know when a crash has given positions to other items."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from queueduct import DataLost, EventQueue
from queueduct.spark.address import Address
from queueduct.spark.convert.schema import arrow_schema
from queueduct.spark.options import SourceOptions
from queueduct.spark.read.batch import BatchReader
from queueduct.spark.read.stream import StreamReader
from tests.support.raw import RawEvents

pytestmark = pytest.mark.usefixtures("disk")


def reader(kind=StreamReader, **options):
    with Address("q").open() as queue:
        address = Address("q").exactly(queue)
        schema = arrow_schema(queue.item, strings="string", position_column="position")
    return kind(SourceOptions.of({"queue": "q", **options}), address, schema)


def rows(stream, start, end):
    return [
        value
        for part in stream.partitions(start, end)
        for batch in stream.read(part)
        for value in batch.column(0).to_pylist()
    ]


def crashed(children, synced, more, restart=True):
    """A log of which so much is on the disk, after a crash of the machine."""

    def work():
        q = EventQueue.create("q", item="<i8", sync="never", exist_ok=True)
        q.put_many(np.arange(synced))
        q.sync()
        q.put_many(np.arange(synced, synced + more))
        os.kill(os.getpid(), signal.SIGKILL)

    assert children.wait(children.fork(work)) == -signal.SIGKILL
    if restart:
        with RawEvents("q") as raw:
            raw.start_anew()


@pytest.mark.parametrize("limit", [ReadAllAvailable(), ReadMaxRows(150)])
def test_an_offset_names_nothing_that_is_not_on_the_disk(children, limit):
    crashed(children, 100, 100, restart=False)
    stream = reader()
    at = stream.latestOffset(stream.initialOffset(), limit)
    assert 100 < at["position"] <= stream.subscription.queue.stats().synced == 200
    stream.stop()


def test_available_now_takes_all_that_was_put_and_has_it_written_first(children):
    crashed(children, 100, 100, restart=False)
    stream = reader()
    stream.subscription.queue.durable_end()  # a sync on demand just now
    stream.subscription.queue.put_many(np.arange(5))
    stream.prepareForTriggerAvailableNow()
    start = stream.initialOffset()
    end = stream.latestOffset(start, ReadAllAvailable())
    assert end["position"] == stream.subscription.queue.stats().synced == 205
    assert len(rows(stream, start, end)) == 205
    stream.stop()


def test_a_query_that_begins_at_the_latest_begins_at_what_is_on_the_disk(children):
    crashed(children, 100, 100, restart=False)
    stream = reader(startingOffsets="latest")
    assert stream.initialOffset()["position"] == stream.subscription.queue.stats().synced == 200
    stream.stop()


def test_a_batch_read_ends_at_what_is_on_the_disk(children):
    crashed(children, 100, 100, restart=False)
    batch = reader(BatchReader)
    assert [(part.start, part.stop) for part in batch.partitions()] == [(0, 200)]
    with EventQueue.open("q") as q:
        assert q.stats().synced == 200


def test_a_query_goes_on_after_a_crash_of_the_machine_with_every_new_item(children):
    crashed(children, 100, 0, restart=False)
    stream = reader()
    start = stream.initialOffset()
    end = stream.latestOffset(start, ReadAllAvailable())
    stream.commit(end)
    stream.stop()
    with RawEvents("q") as raw:
        raw.start_anew()
    with EventQueue.open("q") as q:
        assert (q.end, q.epoch) == (100, 1)
        q.put_many(np.arange(1000, 1150))
    again = reader()
    assert again.latestOffset(end, ReadMaxRows(0)) == end  # nothing new is the same offset, of the same epoch
    later = again.latestOffset(end, ReadAllAvailable())
    assert rows(again, end, later) == list(range(1000, 1150))
    assert (end["epoch"], later["epoch"]) == (0, 1)
    again.stop()


def test_a_checkpoint_of_a_later_epoch_is_refused_as_one_ahead():
    """Such as when the queue's file was put back from a copy."""
    with EventQueue.create("q", item="<i8") as q:
        q.put_many(np.arange(100))
        stream = reader()
        offset = {**stream.initialOffset(), "position": 50, "epoch": 3}
        with pytest.raises(ValueError, match=r"ahead of the queue 'q': it is of epoch 3, the queue of epoch 0.*older"):
            stream.latestOffset(offset, ReadAllAvailable())
        stream.stop()


@pytest.mark.parametrize("epoch", [0, None])
def test_a_checkpoint_beyond_the_cut_is_data_lost_however_much_was_put_since(children, epoch):
    """Such as one of a version that named what was not on the disk: it had no epoch."""
    crashed(children, 100, 100)
    with EventQueue.open("q") as q:
        q.put_many(np.arange(1000, 1150))
        segment = bytes(q.segment_id).hex()
    offset = {"position": 200, "queue": segment, "reader": "spark-x", "began": {"at": 0, "as": "x"}}
    if epoch is not None:
        offset["epoch"] = epoch
    stream = reader()
    for call in (
        lambda: stream.latestOffset(offset, ReadAllAvailable()),
        lambda: stream.commit(offset),
        lambda: stream.partitions({**offset, "position": 50}, offset),
    ):
        with pytest.raises(DataLost, match=r"at position 200 of epoch 0, the log was cut at 100.*failOnDataLoss=false"):
            call()
    stream.stop()
    careless = reader(failOnDataLoss="false")
    end = careless.latestOffset(offset, ReadAllAvailable())
    assert (end["position"], end["epoch"]) == (250, 1)
    assert rows(careless, offset, end) == list(range(1000, 1150))
    careless.stop()
