"""A process that closes all its descriptors, as daemons do: it is not taken for dead, and touches no other file."""

from __future__ import annotations

import pytest

import queueduct
from tests.edges.kinds import KINDS, item, number_of
from tests.support.deadline import until

# Everything but the streams is closed, and then other files have the numbers.
CLOSES = """
import os, sys, tempfile
import queueduct
from tests.support.children import fork
from tests.edges.kinds import KINDS, item, number_of
kind = KINDS[sys.argv[1]]

def close_all():
    os.closerange(3, 256)
    files = [tempfile.TemporaryFile() for _ in range(6)]
    for file in files:
        file.write(b"a stranger's")
        file.flush()
    return files

def check(files):
    for file in files:
        file.seek(0)
        assert file.read() == b"a stranger's", file.read()
        file.close()  # raises if somebody else has closed it

def refused(call):
    try:
        call()
    except queueduct.QueueClosed as error:
        assert "open the queue again by its name" in str(error), error
        return True
    return False
"""


@pytest.mark.parametrize("kind", KINDS)
def test_a_daemon_that_closed_its_descriptors_is_told_so(kind, children):
    q = KINDS[kind].create("q")
    q.put(item(1))
    out = children.run(
        CLOSES
        + """
q = queueduct.open("q")
pid = fork()
if pid == 0:
    os.setsid()
    files = close_all()
    assert refused(lambda: q.put(item(2)))
    assert refused(lambda: q.lease(1) if kind.has_leases else q.subscribe("daemon"))
    assert refused(lambda: q.get(timeout=5) if kind.has_leases else q.subscribe("daemon"))
    again = queueduct.open("q")
    again.put(item(3))
    q.close()
    del q
    check(files)
    assert number_of(kind.consumer(again).get(timeout=30)) == 1
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
""",
        kind,
    )
    assert out == "0\n"
    taken = KINDS[kind].consumer(q)
    expected = [3] if KINDS[kind].has_leases else [1, 3]
    assert [number_of(taken.get(timeout=30)) for _ in expected] == expected


@pytest.mark.parametrize("kind", [kind for kind in KINDS if KINDS[kind].has_leases])
def test_a_lease_stays_with_a_process_that_closed_its_descriptors(kind, children):
    """The locks are held by more than a descriptor. Released is released, and the rest comes when the process dies."""
    q = KINDS[kind].create("q")
    for number in range(4):
        q.put(item(number))
    process = children.start(
        CLOSES
        + """
q = queueduct.open("q")
first, second = q.lease(1), q.lease(1)
files = close_all()
print("holds", flush=True)
sys.stdin.readline()
first.release()
check(files)
print("released", flush=True)
sys.stdin.readline()
""",
        kind,
    )
    assert process.stdout.readline() == "holds\n", process.stderr.read()
    assert sorted(number_of(q.get(timeout=30)) for _ in range(2)) == [2, 3]
    assert q.stats().participants >= 2
    with pytest.raises(queueduct.Empty):  # the other two have an owner who lives
        q.get(timeout=0.3)
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "released\n", process.stderr.read()
    assert q.try_get() is None
    process.kill()
    process.wait()
    assert number_of(q.get(timeout=30)) == 1
    assert q.try_get() is None


@pytest.mark.parametrize("kind", KINDS)
def test_closing_the_handle_closes_no_strangers_descriptor(kind, children):
    KINDS[kind].create("q")
    out = children.run(
        CLOSES
        + """
q = queueduct.open("q")
q.put(item(1))
files = close_all()
other = queueduct.open("q")   # has the number of the first one's descriptor, perhaps
other.put(item(2))
q.close()
del q
other.put(item(3))
other.close()
check(files)
print("fine")
""",
        kind,
    )
    assert out == "fine\n"


def test_a_handle_that_gets_the_closed_number_is_not_taken_for_the_first(children):
    """Both are of the same file: only the mark on the description tells them apart."""
    out = children.run(
        CLOSES
        + """
first = queueduct.BoundedQueue.create("q", 8)
first.put(b"1")
os.closerange(3, 256)
second = queueduct.BoundedQueue.open("q")
second.put(b"2")
del first
second.put(b"3")
assert second.stats().participants == 1
print(second.get_many(3))
""",
        "bounded",
    )
    assert out == "[b'1', b'2', b'3']\n"


def test_a_dead_process_whose_descriptors_were_closed_before_is_seen_to_be_dead(children):
    q = KINDS["bounded"].create("q")
    process = children.start(
        CLOSES
        + "\nq = queueduct.open('q')\nq.put(item(1))\nclose_all()\nprint('ready', flush=True)\nsys.stdin.readline()\n",
        "bounded",
    )
    assert process.stdout.readline() == "ready\n"
    assert q.stats().participants == 1
    process.kill()
    process.wait()
    until(lambda: q.stats().participants == 0, "its locks are gone")


@pytest.mark.parametrize("sync", ["interval", "always"])
def test_others_go_on_writing_to_their_disk_though_a_daemon_cannot_any_more(children, disk, sync):
    """Its syncs end for want of a descriptor: that is no failure of the disk, and nobody else's."""
    q = queueduct.EventQueue.create("q", sync=sync, sync_interval=0.001)
    daemon = children.start(
        CLOSES
        + """
import threading
q = queueduct.open("q")
q.put(item(1))
close_all()
print("ready", flush=True)
threading.Thread(target=sys.stdin.readline, daemon=True).start()
while True:
    try:
        q.sync()
        raise SystemExit("it has no descriptor")
    except (OSError, queueduct.QueueClosed):
        pass
""",
        "events",
    )
    assert daemon.stdout.readline() == "ready\n"
    for number in range(300):
        q.put(item(number))
        q.sync()
    assert q.durable_end(sync=False) == q.end == 301
    assert daemon.poll() is None
    daemon.kill()
    daemon.wait()
    q.close()
