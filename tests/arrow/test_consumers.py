"""polars and DuckDB query a log while a process appends to it."""

from __future__ import annotations

import numpy as np
import pytest

import queueduct

TICK = np.dtype([("sym", "S8"), ("px", "f8"), ("n", "i8")])
COUNT = 200_000
PRODUCER = f"""
import numpy as np, queueduct
queue = queueduct.open("ticks")
for start in range(0, {COUNT}, 1000):
    records = np.zeros(1000, queue.item)
    records["n"] = np.arange(start, start + 1000)
    records["px"] = records["n"] % 7
    records["sym"] = np.where(records["n"] % 2, b"ODD", b"EVEN")
    queue.put_many(records)
queue.shutdown()
"""


@pytest.fixture
def duckdb():
    return pytest.importorskip("duckdb", reason="DuckDB reads the queues in the tests: make test installs it")


@pytest.fixture
def polars():
    return pytest.importorskip("polars", reason="polars reads the queues in the tests: make test installs it")


@pytest.fixture
def live(children):
    """A log to which a process appends, and a reader from its beginning."""
    with queueduct.EventQueue.create("ticks", item=TICK, on_full="wait", max_bytes=1 << 20) as queue:
        reader = queue.subscribe(start="earliest")
        children.start(PRODUCER)
        yield queue, reader


def until_all_is_read(queue, reader, query):
    """Calls the query again and again: each reads what the reader has not read."""
    calls = 0
    while not (queue.is_shut_down and reader.lag == 0):
        reader._wait_ready(True, 1, 1.0)
        query(reader)
        calls += 1
    return calls


def test_duckdb_sees_every_tick_once_while_they_are_put(live, duckdb):
    queue, reader = live
    counts = {}
    sums = {}

    def query(reader):
        rows = duckdb.sql("select sym, count(*), sum(n) from reader group by sym").fetchall()
        for sym, count, total in rows:
            counts[sym] = counts.get(sym, 0) + count
            sums[sym] = sums.get(sym, 0) + int(total)

    assert until_all_is_read(queue, reader, query) > 1
    assert counts == {"EVEN": COUNT // 2, "ODD": COUNT // 2}
    assert sums == {"EVEN": sum(range(0, COUNT, 2)), "ODD": sum(range(1, COUNT, 2))}


def test_polars_sees_every_tick_once_and_in_order_while_they_are_put(live, polars):
    queue, reader = live
    seen = []

    def query(reader):
        frame = polars.DataFrame(reader) if len(seen) % 2 else polars.from_arrow(reader.to_arrow())
        if len(frame):
            assert frame.filter(polars.col("n") % 2 == 1)["sym"].unique().to_list() in ([], ["ODD"])
            seen.append(frame["n"].to_numpy())

    until_all_is_read(queue, reader, query)
    assert np.array_equal(np.concatenate(seen), np.arange(COUNT))


def test_a_whole_queue_can_be_queried_twice(duckdb, polars):
    with queueduct.EventQueue.create("ticks", item=TICK) as queue:
        queue.put_many([(b"A", 1.0, 0), (b"B", 3.0, 1), (b"A", 2.0, 2)])
        for _ in range(2):
            assert duckdb.sql("select sym, avg(px) from queue group by sym order by sym").fetchall() == [
                ("A", 1.5),
                ("B", 3.0),
            ]
            assert polars.DataFrame(queue)["n"].to_list() == [0, 1, 2]
        assert queue.readers() == []


def test_a_lost_reader_tells_duckdb_and_polars(duckdb, polars):
    with queueduct.EventQueue.create("ticks", item=TICK, on_full="drop_slowest", max_bytes=1 << 18) as queue:
        for consume in (lambda reader: duckdb.sql("select count(*) from reader").fetchall(), polars.DataFrame):
            queue.put((b"A", 1.0, 0))
            reader = queue.subscribe(start="earliest")
            queue.put_many(np.zeros(100_000, TICK))
            with pytest.raises(Exception, match="dropped as the slowest"):
                consume(reader)
