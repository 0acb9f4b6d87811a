"""The machine goes down, and the disk has some of a log's pages newer than others, as each happened to be written.

The worst order that there is: the tables are as the last sync left them, and the items' memory is as it was at the end.
"""

from __future__ import annotations

import os

import pytest

import queueduct
from tests.support.preloading import needs_compiler, preload
from tests.support.raw import RawEvents

pytestmark = needs_compiler

PUT = 6000
WORK = """
import ctypes, os, sys
import queueduct
from tests.support.raw import RawEvents
folder, form, sync, work = sys.argv[1:]
value = (lambda number: number + 1) if form == "records" else (lambda number: b"item %d" % number)
q = queueduct.EventQueue.create(
    "q", item="<u8" if form == "records" else bytes, sync=sync, sync_interval=3600, max_bytes=1 << 20, chunk_bytes=8192
)
with RawEvents("q") as raw:
    ctypes.CDLL(None).setenv(b"REMEMBER_BYTES", b"%d" % raw.field("arena_offset"), 1)
reader, idle = q.subscribe("reader", start="earliest"), None
if work == "unsubscribe":
    idle = q.subscribe("idle", start="earliest")
q.put_many([value(number) for number in range(6000)])
q.sync()
reader.get_many(5000)
reader.commit()
if work == "put":
    q.put_many([value(number) for number in range(6000, 6600)])
elif work == "put more":
    step = 50 if sync == "always" else 1  # each call waits for the disk
    for number in range(6000, 12_000, step):
        q.put_many([value(n) for n in range(number, number + step)])
elif work == "keep_last":
    q.keep_last(10)
elif work == "clear":
    q.clear()
elif work == "unsubscribe":
    idle.close()
    q.unsubscribe("idle")
elif work == "repair":
    q.keep_last(10)
    with RawEvents("q") as raw:
        raw.set_control("lock", 0xFFFF)  # of somebody dead
    q.put(value(6000))
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("work", ["put", "put more", "keep_last", "clear", "unsubscribe", "repair"])
@pytest.mark.parametrize("sync", ["always", "interval", "never"])
@pytest.mark.parametrize("form", ["records", "bytes"])
def test_what_was_synced_is_the_same_or_gone_and_never_something_else(
    tmp_path, monkeypatch, children, form, sync, work
):
    if not queueduct.segments.segment.is_on_disk(tmp_path):
        pytest.skip("the temporary directory is in memory here")
    monkeypatch.setenv("QUEUEDUCT_DIR", str(tmp_path / "queues"))
    preload(monkeypatch, "remember", REMEMBER=tmp_path / "remembered")
    worker = children.start(WORK, tmp_path, form, sync, work)
    assert worker.communicate(timeout=90) == ("", "")
    with (tmp_path / "queues/q").open("r+b") as file:
        file.write((tmp_path / "remembered").read_bytes())
    with RawEvents("q") as raw:
        raw.start_anew()
    monkeypatch.delenv("LD_PRELOAD")
    expected = (lambda number: number + 1) if form == "records" else (lambda number: b"item %d" % number)
    with queueduct.EventQueue.open("q") as q:
        assert q.end >= PUT
        kept = list(q.read(q.earliest, q.end))
        assert kept == [expected(number) for number in range(q.earliest, q.end)]
        with q.subscribe("reader") as reader:
            assert reader.position <= max(5000, q.earliest)
            assert len(reader.get_many(20_000)) == q.end - reader.committed if q.end > reader.position else True
        q.put(expected(q.end))
        q.unlink()
    assert os.listdir(tmp_path / "queues") == []
