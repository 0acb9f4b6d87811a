"""The spool and its drainer, without Spark and without kills."""

from pathlib import Path

import numpy as np
import pytest

import queueduct
from queueduct.spark.address import Address
from queueduct.spark.read import drainer
from queueduct.spark.read.spool import Spool, beside, packed, spool_directory, spool_item, unpacked
from tests.spark.rows import TICK, numbered
from tests.spark.spooling import Query


def test_items_go_through_a_spool_with_their_positions(jobs, tmp_path):
    jobs.put_many(numbered(0, 100))
    query = Query(tmp_path)
    query.drainer.drain(30)
    assert (query.spool.log.end, jobs.qsize()) == (30, 70)
    query.drainer.drain(1000)
    assert query.numbers().tolist() == list(range(100))
    assert (np.diff(query.positions()) > 0).all()
    assert query.spool.behind() == 100
    query.close()


def test_byte_strings_and_arrays_keep_their_form():
    positions = np.array([3, 5])
    assert [
        each.tolist() if isinstance(each, np.ndarray) else each
        for each in unpacked(packed([b"", b"x\0"], positions, bytes))
    ] == [
        [b"", b"x\0"],
        [3, 5],
    ]
    pair = np.dtype(("f4", (2, 3)))
    given = np.arange(12, dtype="f4").reshape(2, 2, 3)
    items, places = unpacked(packed(given, positions, spool_item(pair)))
    assert items.tolist() == given.tolist()
    assert places.tolist() == [3, 5]


def test_frames_are_leased_few_at_a_time(tmp_path, monkeypatch):
    frames = np.arange(140, dtype="f4").reshape(7, 4, 5)
    monkeypatch.setattr(drainer, "LEASE_BYTES", 2 * (8 + 80))
    with queueduct.SlotQueue.create("jobs", 8, item=np.dtype(("f4", (4, 5)))) as camera:
        camera.put_many(frames)
        query = Query(tmp_path)
        with query.drainer.take(100) as lease:
            assert len(lease) == 2
            lease.give_back()
        query.drainer.drain(100)
        items, positions = unpacked(query.spool.log.read(0, 7))
        np.testing.assert_array_equal(items, frames)
        assert positions.tolist() == list(range(7))
        query.close()


def test_a_full_spool_leaves_the_rest_in_the_queue(jobs, tmp_path):
    jobs.put_many(numbered(0, 1000))
    address = Address("jobs").exactly(jobs)
    spool = Spool.open(address, tmp_path, jobs.item, 1 << 14)
    spool.close()
    query = Query(tmp_path)
    found = []
    for _ in range(100):
        query.drainer.drain(1000)
        end = query.spool.log.end
        found += unpacked(query.spool.log.read(query.reader.committed, end))[0]["number"].tolist()
        query.reader.commit(end)
        if len(found) >= 1000:
            break
        assert 0 < end < 1000
    assert sorted(found) == list(range(1000))
    assert jobs.empty()
    query.close()


def test_a_spool_of_another_queue_is_refused(jobs, tmp_path):
    query = Query(tmp_path)
    query.close()
    jobs.unlink()
    with (
        queueduct.BoundedQueue.create("jobs", 16, item=TICK),
        pytest.raises(ValueError, match="belongs to another queue"),
    ):
        Query(tmp_path)


def test_the_spools_of_a_queue_are_noted_beside_it_and_are_no_queues(jobs, tmp_path, queue_dir):
    query = Query(tmp_path)
    assert [info.name for info in queueduct.queues()] == ["jobs"]
    (notes,) = queue_dir.glob(".spools-*")
    assert [Path(note.read_text()) for note in notes.glob("*.spool")] == [tmp_path]
    assert list(query.spool.others()) == []
    query.close()
    jobs.unlink()
    with queueduct.BoundedQueue.create("others", 16, item=TICK):
        Query(tmp_path, "others").close()
    assert notes not in queue_dir.glob(".spools-*"), "those of a queue that is gone go with the next"


def test_a_query_finds_its_spool_again_without_being_told(jobs):
    address = Address("jobs").exactly(jobs)
    assert spool_directory(None, address) == spool_directory(None, Address("jobs").exactly(jobs))
    assert spool_directory(None, address).name == address.segment[:16]
    assert beside("/lake/_checkpoint/") == {"spoolDir": "/lake/_checkpoint.spool"}
    assert beside("s3://lake/_checkpoint") == {}
