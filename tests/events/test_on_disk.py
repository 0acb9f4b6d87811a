"""A log on a disk: what is there again after all its processes were killed, and after the machine was."""

from __future__ import annotations

import os
import signal
import struct
import time

import pytest

import queueduct
from queueduct import DataLost, EventQueue
from tests.support.deadline import until
from tests.support.raw import RawEvents
from tests.support.ticks import drain, numbers

pytestmark = pytest.mark.usefixtures("disk")


def start_anew():
    """What a new boot of the machine is to a queue: other witnesses than those of the boot it was last used in."""
    with RawEvents("q") as raw:
        raw.start_anew()


CRASHING = """
import os, sys, queueduct
sync, count = sys.argv[1], int(sys.argv[2])
q = queueduct.EventQueue.create("q", item="<u8", sync=sync, sync_interval=3600)
{before}
for i in range(count):
    q.put(i)
    os.write(1, b"%d\\n" % i)
{after}
os.kill(os.getpid(), 9)
"""


def crash(children, sync, count, before="", after=""):
    """Puts by a process that is then killed; how many were acknowledged."""
    child = children.start(CRASHING.format(before=before, after=after), sync, count)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (-signal.SIGKILL, "")
    return len(out.split())


@pytest.mark.parametrize("sync", ["always", "interval", "never"])
def test_after_all_its_processes_were_killed_every_acknowledged_item_is_there(children, sync):
    """The kernel has them, whatever was written to the disk: no machine went down."""
    count = crash(children, sync, 300)
    with EventQueue.open("q") as q:
        assert count == q.end == 300
        assert drain(q.subscribe(start="earliest")) == list(range(300))
        q.put(300)
        assert q.end == 301


def test_kills_again_and_again_leave_every_acknowledged_item(children):
    EventQueue.create("q", item="<u8", sync="never").close()
    acknowledged = 0
    for _ in range(5):
        child = children.start(
            """
import os, queueduct
q = queueduct.open("q")
reader = q.subscribe()
i = q.end
while True:
    q.put(i)
    os.write(1, b"%d\\n" % i)
    reader.get()
    i += 1
"""
        )
        for _ in range(20):
            acknowledged = int(child.stdout.readline())
        child.kill()
        out, _ = child.communicate()
        acknowledged = int(out.split()[-1]) if out.endswith("\n") and out.split() else acknowledged
        with EventQueue.open("q") as q:
            assert q.end > acknowledged
            kept = list(q.read(q.earliest, q.end))
            assert kept == list(range(q.earliest, q.end))
            assert q.readers() == []


def test_always_means_that_every_put_that_returned_outlives_the_machine(children):
    count = crash(children, "always", 100)
    start_anew()
    with EventQueue.open("q") as q:
        assert count == q.end == 100
        assert drain(q.subscribe(start="earliest")) == list(range(100))


@pytest.mark.parametrize("how", ["put", "put_many", "put_once", "commit"])
def test_always_syncs_before_a_call_returns(how):
    with EventQueue.create("q", item="<u8", sync="always") as q:
        reader = q.subscribe("d")
        {
            "put": lambda: q.put(1),
            "put_many": lambda: q.put_many(numbers(1000)),
            "put_once": lambda: q.put_once(numbers(10), "p", 1),
            "commit": lambda: (q.put(1), reader.get(), reader.commit()),
        }[how]()
        assert q.stats().synced == q.end > 0


def test_interval_loses_at_most_what_is_younger_than_the_interval(children):
    child = children.start(
        """
import os, time, queueduct
q = queueduct.EventQueue.create("q", item="<u8", sync="interval", sync_interval=0.05)
q.put_many(range(50))
while q.stats().synced < 50:
    time.sleep(0.01)
print("synced", flush=True)
input()
"""
    )
    assert child.stdout.readline() == "synced\n"
    child.kill()
    child.wait(30)
    start_anew()
    with EventQueue.open("q") as q:
        assert q.end == 50
        assert drain(q.subscribe(start="earliest")) == list(range(50))


def test_interval_promises_nothing_of_what_is_younger(children):
    """With an interval of an hour only the first sync of the thread may have come in between."""
    crash(children, "interval", 300)
    start_anew()
    with EventQueue.open("q") as q:
        assert q.end == q.stats().synced < 300
        assert drain(q.subscribe(start="earliest")) == list(range(q.end))


def test_never_keeps_what_was_there_at_the_last_sync(children):
    crash(children, "never", 50, before="q.put_many(range(30)); q.sync()")
    start_anew()
    with EventQueue.open("q") as q:
        assert q.end == 30
        assert drain(q.subscribe(start="earliest")) == list(range(30))


def test_never_keeps_what_was_there_at_the_last_close(children):
    with EventQueue.create("q", item="<u8", sync="never") as q:
        q.put_many(numbers(40))
    child = children.start("import os, queueduct; queueduct.open('q').put(40); os.kill(os.getpid(), 9)")
    assert child.wait(30) == -signal.SIGKILL
    start_anew()
    with EventQueue.open("q") as q:
        assert q.end == 40


def test_never_syncs_by_itself_never(children):
    with EventQueue.create("q", item="<u8", sync="never") as q:
        q.put_many(numbers(100_000))
        assert q.stats().synced == 0
        q.sync()
        assert q.stats().synced == 100_000


def test_after_a_new_boot_places_are_within_what_is_left(children):
    crash(
        children,
        "never",
        100,
        before="""
durable, early = q.subscribe("late"), q.subscribe("early")
q.put_many(range(20)); q.sync()
""",
        after="durable.get_many(1000); durable.commit(110); early.commit(7)",
    )
    start_anew()
    with EventQueue.open("q") as q:
        assert q.end == 20
        places = {each.name: each.committed for each in q.readers()}
        assert places == {"late": 20, "early": 7}
        with q.subscribe("late") as late, q.subscribe("early") as early:
            with pytest.raises(DataLost, match="had committed position 110, the log was cut at 20"):
                late.try_get()
            assert late.try_get() is None
            assert list(early.get_many(100)) == list(range(7, 20))
            q.put(99)
            assert late.get() == early.get() == 99


@pytest.mark.parametrize("synced", [0, 1, 3, 4, 5, 8, 23, 24, 25, 99, 100])
def test_a_new_boot_leaves_exactly_what_was_synced_wherever_the_chunks_end(children, synced):
    crash(children, "never", 100, after=f"q.sync() if {synced} == 100 else None", before=BETWEEN.format(synced=synced))
    start_anew()
    with EventQueue.open("q") as again:
        assert (again.earliest, again.end) == (0, synced)
        assert list(again.read(0, synced)) == list(range(synced))
        again.put_many(numbers(200, 1000))
        assert list(again.read(synced, synced + 200)) == list(range(1000, 1200))


BETWEEN = """
put = q.put
def put_and_sync(i):
    q.sync() if i == {synced} else None
    put(i)
class Syncing:
    put = staticmethod(put_and_sync)
    sync = q.sync
kept, q = q, Syncing
"""


def test_a_new_boot_is_settled_once(children):
    crash(children, "never", 5, before="q.put_many(range(10)); q.sync()")
    start_anew()
    with EventQueue.open("q") as again:
        assert (again.end, again.epoch) == (10, 1)
        again.put_many(numbers(10))
        with EventQueue.open("q") as third:
            assert (third.end, third.epoch) == (20, 1)


def test_what_was_freed_before_the_machine_went_down_does_not_come_back():
    with EventQueue.create("q", item="<u8", sync="never", max_bytes=8192) as q:
        reader = q.subscribe()
        for i in range(20):
            q.put_many(numbers(500, 500 * i))
            drain(reader)
        q.sync()
        earliest = q.earliest
        q.put_many(numbers(100))
        start_anew()
    with EventQueue.open("q") as q:
        assert q.earliest == earliest
        assert q.end == 10_100  # the close has synced it


def test_memory_is_not_written_to_a_disk(tmp_path, queue_dir, monkeypatch):
    monkeypatch.setenv("QUEUEDUCT_DIR", str(queue_dir))
    with EventQueue.create("q", item="<u8", sync="always") as q:
        q.put(1)
        assert q.stats().synced == 0


def test_the_sync_thread_lets_a_closed_queue_go(disk):
    """Its descriptors and its readers are free at once, however long the interval."""
    for _ in range(20):
        q = EventQueue.create("q", item="<u8", sync_interval=3600)
        q.put(1)
        reader = q.subscribe("d")
        time.sleep(0.005)  # let the sync thread run
        q.close()
        with EventQueue.open("q") as again, again.subscribe("d"):
            pass
        del reader
        until(lambda: mapped(disk / "q") == 0, "the end of the mapping", 10)
        queueduct.unlink("q")


def mapped(path):
    with open("/proc/self/maps") as maps:
        return sum(str(path) in line for line in maps)


def test_the_sync_thread_serves_every_queue_of_a_process(disk):
    queues = [EventQueue.create(f"q{n}", item="<u8", sync_interval=0.02) for n in range(5)]
    for _ in range(3):
        for q in queues:
            q.put(1)
        until(lambda: all(q.stats().synced == q.end for q in queues), "the sync")
    for q in queues:
        q.close()


def test_the_sync_thread_works_in_a_forked_child_too(children):
    q = EventQueue.create("q", item="<u8", sync_interval=0.02)
    q.put(1)
    until(lambda: q.stats().synced == 1, "the parent's sync")

    def work():
        with EventQueue.open("q") as mine:
            mine.put(2)
            until(lambda: mine.stats().synced == 2, "the child's sync")

    assert children.wait(children.fork(work)) == 0


def test_a_queue_on_a_disk_has_the_bytes_of_its_file(disk):
    with EventQueue.create("q", item="<u8", max_bytes=1 << 20) as q:
        q.put_many(numbers(50_000))
        assert q.stats().resident_bytes == os.stat(disk / "q").st_blocks * 512
        assert struct.calcsize("<Q") * 50_000 <= q.stats().resident_bytes < 4 << 20


@pytest.mark.parametrize("sync", ["always", "interval"])
def test_what_put_once_calls_done_outlives_the_machine(sync):
    with EventQueue.create("q", item="<u8", sync=sync, sync_interval=3600) as q:
        assert q.put_once(range(10), "p", 1) == 10
        q.put(10)  # not synced, unless always
        start_anew()
    with EventQueue.open("q") as q:
        assert q.put_once(range(10), "p", 1) == 0
        assert list(q.read(0, 10)) == list(range(10))
