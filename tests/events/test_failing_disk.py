"""A disk that refuses to sync: who is told, what is recorded, and how it goes on when the disk takes it again."""

from __future__ import annotations

import errno

import pytest

from tests.support.preloading import needs_compiler, preload

pytestmark = needs_compiler
BEGIN = """
import os, pathlib, sys, queueduct
from tests.support.raw import RawEvents
flag = pathlib.Path(os.environ["REFUSE_WHEN"])
def refused(call):
    try:
        call()
    except OSError as error:
        assert error.errno == 5, error
        return True
    return False
"""


@pytest.fixture
def failing(disk, tmp_path_factory, monkeypatch, children):
    """Runs code on a disk that can be made to fail: flag.touch()."""
    preload(monkeypatch, "refuse", REFUSE_FDATASYNC=errno.EIO, REFUSE_WHEN=tmp_path_factory.mktemp("flags") / "flag")
    return lambda code, *arguments: children.run(BEGIN + code, *arguments)


@pytest.mark.parametrize("sync", ["always", "interval", "never"])
@pytest.mark.parametrize("nth", ["1", "2"])
def test_put_once_is_done_when_it_is_on_the_disk(failing, monkeypatch, sync, nth):
    """The first sync that fails, or the second: the one that writes down what the first has written."""
    monkeypatch.setenv("REFUSE_NTH", nth)
    out = failing(
        """
q = queueduct.EventQueue.create("q", item="u8", sync=sys.argv[1], sync_interval=3600)
flag.touch()
assert refused(lambda: q.put_once([1, 2, 3], "feed", 1))
assert q.producers()[0].done == 0 and q.stats().synced == 0 and q.end == 3
assert refused(lambda: q.put_once([1, 2, 3], "feed", 1))
flag.unlink()
print(q.put_once([1, 2, 3], "feed", 1), q.producers()[0].done, q.end, q.stats().synced)
print(q.put_once([4], "feed", 2), q.end)
""",
        sync,
    )
    assert out == "0 3 3 3\n1 4\n"


def test_a_producer_killed_after_a_failed_sync_goes_on_without_putting_twice(failing):
    failing(
        """
q = queueduct.EventQueue.create("q", item="u8", sync="never")
flag.touch()
pid = os.fork()
if pid == 0:
    mine = queueduct.open("q")
    assert refused(lambda: mine.put_once([1, 2, 3], "feed", 1))
    os.kill(os.getpid(), 9)
os.waitpid(pid, 0)
assert refused(lambda: q.put_once([1, 2, 3], "feed", 1))
flag.unlink()
assert q.put_once([1, 2, 3], "feed", 1) == 0
assert q.read(0, q.end).tolist() == [1, 2, 3]
"""
    )


def test_what_a_failed_sync_did_not_write_is_not_believed_by_the_next_one(failing):
    """The kernel calls pages clean that it could not write. So they are written to again before the next sync."""
    failing(
        """
q, other = queueduct.EventQueue.create("q", item="u8", sync="never"), queueduct.open("q")
q.put_many(range(10_000))
flag.touch()
assert refused(q.sync) and refused(other.durable_end)
with RawEvents("q") as raw:
    assert raw.get_control("sync_failures") == 2
assert q.durable_end(sync=False) == other.durable_end(sync=False) == 0
flag.unlink()
other.sync()
with RawEvents("q") as raw:
    assert raw.get_control("sync_failures") == 0
assert q.durable_end(sync=False) == 10_000 and q.read(0, 10_000).tolist() == list(range(10_000))
"""
    )


def test_a_failure_that_only_the_sync_thread_met_is_not_forgotten(failing):
    failing(
        """
import time
flag.touch()
q = queueduct.EventQueue.create("q", item="u8", sync="interval", sync_interval=0.01)
q.put(1)
deadline = time.monotonic() + 30
with RawEvents("q") as raw:
    while raw.get_control("sync_failures") == 0:
        assert time.monotonic() < deadline
flag.unlink()
while q.stats().synced != 1:
    assert time.monotonic() < deadline
with RawEvents("q") as raw:
    assert raw.get_control("sync_failures") == 0
"""
    )


def test_memory_that_was_freed_is_not_used_again_before_that_is_on_the_disk(failing):
    failing(
        """
q = queueduct.EventQueue.create("q", item="u8", max_bytes=1 << 15, chunk_bytes=4096, sync_interval=3600)
reader = q.subscribe("d", start="earliest")
q.put_many(range(1000))
reader.get_many(1000)
reader.commit()
flag.touch()
put = 0
try:
    for i in range(100_000):
        q.put(i)
        put += 1
        if i % 100 == 0:
            reader.get_many(1000), reader.commit()
except OSError as error:
    assert "could not be written to its disk" in str(error), error
else:
    raise AssertionError("it was used again")
assert q.end == 1000 + put
flag.unlink()
q.put(7)
assert q.read(q.end - 1, q.end).tolist() == [7]
"""
    )


def test_a_cut_that_the_disk_does_not_take_is_an_error_and_is_made_when_it_does(failing):
    failing(
        """
q = queueduct.EventQueue.create("q", item="u8", sync="never")
q.put_many(range(10)); q.sync(); q.put_many(range(5))
del q  # not closed: that would sync
with RawEvents("q") as raw:
    raw.start_anew()
flag.touch()
assert refused(lambda: queueduct.open("q"))
flag.unlink()
q = queueduct.open("q")
assert (q.end, q.epoch >= 1) == (10, True), (q.end, q.epoch)
"""
    )
