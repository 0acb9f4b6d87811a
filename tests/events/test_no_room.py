"""A file system that has no memory left: an error of the put that needed it, and nothing else."""

from __future__ import annotations

import errno

import pytest

import queueduct
from queueduct import EventQueue
from tests.support.preloading import needs_compiler, preload

pytestmark = needs_compiler


@pytest.fixture
def full(tmp_path, monkeypatch):
    """The file that takes the room away in processes that are started from now on."""
    preload(monkeypatch, "refuse", REFUSE_FALLOCATE=errno.ENOSPC, REFUSE_WHEN=tmp_path / "full")
    return tmp_path / "full"


PUTS = """
import os, sys, queueduct
item, value = {"bytes": (bytes, b"x" * 100), "<u8": ("<u8", 7)}[sys.argv[1]]
q = queueduct.EventQueue.create("q", item=item, max_bytes=1 << 20, chunk_bytes=4096)
reader = q.subscribe("d")
q.put_many([value] * 100)
open(os.environ["REFUSE_WHEN"], "w").close()
def refused(call):
    try:
        call()
    except OSError as error:
        return "no memory for another chunk" in str(error) and error.errno == 28
assert refused(lambda: [q.put(value) for _ in range(5000)])
end = q.end
assert refused(lambda: q.put(value))
assert refused(lambda: q.put_many([value] * 5000))
assert refused(lambda: q.put_once([value] * 5000, "p", 1))
assert q.end == end and q.producers()[0].done == 0
assert len(reader.get_many(10**6)) == end
assert [each == value for each in q.read(0, end)] == [True] * end
os.unlink(os.environ["REFUSE_WHEN"])
q.put(value)
assert q.put_once([value] * 5000, "p", 1) == 5000
assert q.end == end + 5001
print("done")
"""


@pytest.mark.parametrize("item", ["bytes", "<u8"])
def test_a_put_that_finds_no_room_for_a_chunk_puts_nothing_and_later_ones_work(children, full, item):
    assert children.run(PUTS, item) == "done\n"


def test_a_batch_that_finds_no_room_halfway_keeps_what_is_in(children, full):
    out = children.run(
        """
import os, threading, queueduct
q = queueduct.EventQueue.create("q", item="<u8", max_bytes=1 << 20, chunk_bytes=4096)
q.put_many(range(6))
open(os.environ["REFUSE_WHEN"], "w").close()
print(q.put_many(range(100)), q.end)
"""
    )
    assert out == "2 8\n"


def test_a_queue_that_finds_no_room_at_its_creation_leaves_nothing(children, full):
    full.write_bytes(b"")
    out = children.run(
        """
import queueduct
try:
    queueduct.EventQueue.create("q")
except OSError as error:
    print("no room for a segment" in str(error))
print(queueduct.queues())
"""
    )
    assert out == "True\n[]\n"


def test_a_first_lease_without_room_takes_nothing_and_later_ones_work(children, full):
    out = children.run(
        """
import os, queueduct
q = queueduct.OverwritingQueue.create("q", 4, item="<u8")
q.put_many(range(4))
open(os.environ["REFUSE_WHEN"], "w").close()
try:
    q.lease(2)
except OSError as error:
    print(error.errno, "no room for the leases of 'q'" in str(error))
print(q.qsize(), q.unreleased(range(4)), q.get())
os.unlink(os.environ["REFUSE_WHEN"])
print(q.lease(2).items, q.stats().participants)
"""
    )
    assert out == "28 True\n4 [] 0\n[1 2] 1\n"


def test_a_log_takes_memory_only_as_it_grows():
    """256 MB at most, a few pages at first."""
    with EventQueue.create("q") as q:
        assert q.stats().max_bytes == 256 << 20
        assert q.stats().resident_bytes < 1 << 20
        q.put(b"x")
        assert q.stats().resident_bytes < 1 << 20


def test_a_queue_without_a_name_takes_memory_only_as_it_grows(children):
    out = children.run(
        """
import resource, queueduct
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
before = resident()
queues = [queueduct.EventQueue() for _ in range(10)]
for q in queues:
    q.put(1)
print(resident() - before < 10 << 20, queues[0].stats().max_bytes)
"""
    )
    assert out == f"True {256 << 20}\n"


def test_more_participants_than_the_table_has_lines_is_a_clean_error(children):
    with EventQueue.create("q", item="<u8", participants=2) as q:
        q.put(1)
        holding = children.start(
            "import queueduct; q = queueduct.open('q'); q.put(2); print(1, flush=True); input()",
        )
        assert holding.stdout.readline() == "1\n"
        other = EventQueue.open("q")
        for call in (lambda: other.put(3), other.subscribe, other.clear, other.readers, other.shutdown):
            with pytest.raises(queueduct.TooManyParticipants, match="all 2 participants of 'q' are in use"):
                call()
        assert other.stats().participants == 2  # to look needs no line
        other.close()
        holding.kill()
        holding.wait(30)
        with EventQueue.open("q") as other:
            other.put(3)
        assert list(q.read(0, 3)) == [1, 2, 3]
