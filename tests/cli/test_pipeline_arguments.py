"""archive and aggregate look at what they are given before they start Spark."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest

import queueduct
from queueduct.cli.pipelines.arguments import check_expression
from tests.support.command import refused

TICK = np.dtype([("sym", "S8"), ("px", "f8"), ("ts", "M8[us]"), ("at", [("x", "f4")])])


@pytest.fixture(autouse=True)
def no_spark(monkeypatch):
    """Whatever imports pyspark fails: so nothing of it was started."""
    monkeypatch.setitem(sys.modules, "pyspark", None)


@pytest.fixture(autouse=True)
def ticks():
    with queueduct.EventQueue.create("ticks", item=TICK) as made:
        yield made


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (("--partition-by", "symbol"), "--partition-by: there is no field 'symbol' in 'ticks'; it has sym, px, ts, at"),
        (("--every", "soon"), "--every: a duration is a number and a unit: 'soon'"),
        (("--every", "10 parsecs"), "--every: a duration is a number and a unit: '10 parsecs'"),
        (("--start", "first"), "--start: it is earliest, latest or a position: 'first'"),
        (("--master", "local[0]"), "--master: it is no address of Spark: 'local[0]'"),
        (("--master", "locall"), "--master: it is no address of Spark: 'locall'; local[*] is this machine"),
        (("--checkpoint", "file/state"), "--checkpoint: a directory is needed, and"),
        (("--max-rows", "0"), "'0' is less than 1"),
    ],
)
def test_an_archive_that_cannot_be_is_refused_before_spark_starts(more, why, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    assert why in " ".join(refused("archive", "ticks", "--to", "lake", *more).split())
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_target_that_is_a_file_or_not_writable_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    assert "is a file; name another" in " ".join(refused("archive", "ticks", "--to", tmp_path / "file").split())
    (tmp_path / "closed").mkdir(mode=0o500)
    if os.geteuid() != 0:  # root may write anywhere
        assert "is not writable" in refused("archive", "ticks", "--to", tmp_path / "closed" / "lake")


def test_a_queue_of_objects_or_a_reader_that_is_held_is_refused(ticks, tmp_path):
    queueduct.BoundedQueue.create("things", 4, item=object).close()
    assert "Spark has no columns for Python objects" in refused("archive", "things", "--to", tmp_path)
    held = ticks.subscribe("lake")
    assert "is held by a live process" in refused("archive", "ticks", "--to", tmp_path, "--reader", "lake", code=1)
    held.close()
    assert "'missing'" in refused("archive", "missing", "--to", tmp_path, code=1)


AGGREGATE = {"--to": "candles", "--window": "1s", "--agg": "max(px)", "--checkpoint": "state"}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"--window": "soon"}, "--window: a duration is a number and a unit: 'soon'"),
        ({"--window": "0s"}, "--window: a window is longer than nothing: '0s'"),
        ({"--window": "0 minutes 0 seconds"}, "--window: a window is longer than nothing"),
        ({"--watermark": "1"}, "--watermark: a duration is a number and a unit: '1'"),
        ({"--time": "px"}, "--time: the event time must be a field of type M8: time=px; there is ts"),
        ({"--by": "symbol"}, "--by: there is no field 'symbol' in 'ticks'"),
        (
            {"--agg": "max(price)"},
            "--agg: there is no field 'price' in 'max(price)'; there is sym, px, ts, at, position",
        ),
        ({"--agg": "sum(px * qty) as turnover"}, "--agg: there is no field 'qty'"),
        ({"--agg": "max(px"}, "--agg: it is no aggregate: 'max(px'"),
        ({"--agg": "px"}, "--agg: it is no aggregate: 'px'"),
        ({"--agg": "max(px) as start"}, "--agg: each field of a result needs a name of its own: 'start'"),
        ({"--timeout": "-1"}, "'-1' is no time"),
        ({"--to": "jobs"}, "--to: results go into a log (events), and 'jobs' is of kind bounded"),
        ({"--to": "other"}, "--to: the results have the fields start, max_px, and the records of 'other' n"),
        ({"--to": "ended"}, "--to: the queue 'ended' is shut down"),
    ],
)
def test_an_aggregate_that_cannot_be_is_refused_before_spark_starts(changed, why, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    queueduct.BoundedQueue.create("jobs", 4).close()
    queueduct.EventQueue.create("other", item=np.dtype([("n", "i8")])).close()
    with queueduct.EventQueue.create("ended", item=np.dtype([("start", "M8[us]"), ("max_px", "f8")])) as ended:
        ended.shutdown()
    given = [word for pair in (AGGREGATE | changed).items() for word in pair]
    assert why in " ".join(refused("aggregate", "ticks", *given).split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text",
    [
        "count(*) as trades",
        "max(px) as high",
        "max_by(px, ts) AS close",
        "sum(case when px > 1 then px else 0 end) as big",
        "approx_percentile(px, 0.5)",
        "count(distinct sym)",
        "max(at.x)",
        "sum(px) / count(px) as mean",
        "collect_list(struct(ts, px))",
        "first(sym, true)",
        "count_if(sym = 'A(B')",
        "max(cast(px as int)) as whole",
        "aggregate(collect_list(px), 0D, (acc, x) -> acc + x) as total",
        "max(`px`) filter (where px is not null)",
        "MAX(PX)",
    ],
)
def test_what_spark_understands_passes(text):
    check_expression(text, ["sym", "px", "ts", "at", "position"])
