"""A file system that has no memory left: an error of the put that needed it, and a queue that goes on."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import subprocess
import time

import numpy
import pytest

from queueduct import GrowingQueue
from tests.support.children import needs_root
from tests.support.preloading import needs_compiler, preload

PUTS = """
import errno, os, sys, queueduct
item, value = {"bytes": (bytes, b"x" * 100), "<u8": ("<u8", 7)}[sys.argv[1]]
q = queueduct.GrowingQueue.create("q", item=item)
q.put_many([value] * 1000)
open(os.environ["REFUSE_WHEN"], "w").close()
def refused(call):
    try:
        call()
    except OSError as error:
        return "no memory for the next part" in str(error) and error.errno == errno.ENOSPC
assert refused(lambda: [q.put(value) for _ in range(100000)])
size = len(q)
assert size >= 1000
assert refused(lambda: q.put(value))
assert refused(lambda: q.try_put(value))
assert refused(lambda: q.put_once([value] * 100000, "p", 1))
size = len(q)
for _ in range(size):
    assert q.get() == value
assert q.empty()
q.put_many([value] * 32)  # what is there is used again
assert len(q) == 32
for _ in range(32):
    q.get()
os.unlink(os.environ["REFUSE_WHEN"])
q.put_many([value] * 100000)
assert len(q) == 100000
print("fine")
"""


@needs_compiler
@pytest.mark.parametrize("item", ["bytes", "<u8"])
def test_a_put_without_memory_is_an_error_and_the_queue_goes_on(tmp_path, monkeypatch, children, item):
    preload(monkeypatch, "refuse", REFUSE_FALLOCATE=errno.ENOSPC, REFUSE_WHEN=tmp_path / "full")
    assert children.run(PUTS, item) == "fine\n"


@pytest.fixture
def small_room(tmp_path, monkeypatch, request):
    """A file system of three megabytes, or as many as a test says."""
    folder = tmp_path / "small"
    folder.mkdir()
    size = f"size={getattr(request, 'param', 3)}m"
    if subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", folder], capture_output=True).returncode:
        pytest.skip("cannot mount")
    monkeypatch.setenv("QUEUEDUCT_DIR", str(folder))
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@needs_root
@pytest.mark.parametrize(("item", "value"), [(bytes, b"x" * 50), (bytes, b"y" * 5000), (object, {"a": "z" * 300})])
def test_a_file_system_that_is_full_costs_nobody_an_item(small_room, item, value):
    """Up to its end, some of it out again, and so on: what was put comes out, and nobody dies of SIGBUS."""
    rng = random.Random(str(value))
    put = got = refusals = 0
    with GrowingQueue.create("q", item=item) as q:
        for _ in range(10):
            try:
                while True:
                    q.put(value, timeout=0)
                    put += 1
            except OSError as error:
                assert error.errno == errno.ENOSPC
                refusals += 1
            assert q.qsize() == put - got
            for _ in range(rng.randrange(put - got)):
                assert q.get(block=False) == value
                got += 1
            if put > got:
                with q.lease(1000) as lease:
                    got += len(lease)
        assert refusals == 10
        assert [q.get(block=False) for _ in range(put - got)] == [value] * (put - got)
        assert q.empty()


@needs_root
@pytest.mark.parametrize("small_room", [64], indirect=True)
def test_a_put_is_not_refused_while_a_level_that_was_left_has_memory(small_room):
    """A level of 32 megabytes is given back in steps, one with each get: a put that needs memory takes all."""
    with GrowingQueue.create("q", item="<u8") as q:
        q.put_many(numpy.zeros(sum(512 << 2 * level for level in range(7)) + 100, dtype="<u8"))
        while q.qsize() > 99:
            q.get_many(q.qsize() - 99, timeout=0)
        assert q.put_many(numpy.ones(8 << 20, dtype="<u8")) < 8 << 20
        assert q.qsize() * 16 > 60 << 20
        with pytest.raises(OSError, match="no memory for the next part"):
            q.put(1)
        while q.qsize():
            q.get_many(1 << 20, timeout=0)
        q.put(1)


CONSUME = """
import sys, time, queueduct
q = queueduct.open("q")
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    q.try_get()
print("fine")
"""

PRODUCE = """
import errno, sys, time, numpy, queueduct
q = queueduct.open("q")
end = time.monotonic() + float(sys.argv[1])
batch, refusals = numpy.arange(200, dtype="<u8"), 0
while time.monotonic() < end:
    try:
        q.put_many(batch, timeout=0)
    except queueduct.Full:
        time.sleep(0.0001)
    except OSError as error:
        assert error.errno == errno.ENOSPC
        refusals += 1
assert refusals > 0
print("fine")
"""


@needs_root
def test_who_looks_where_memory_was_just_taken_away_is_left_alone(small_room, children, is_long):
    """Consumers are late at levels that are given back, and somebody else takes what is free, and gives it up again."""
    seconds = 30 if is_long else 4
    with GrowingQueue.create("q", item="<u8", steps=6) as q:
        running = [children.start(CONSUME, seconds) for _ in range(3)]
        running.append(children.start(PRODUCE, seconds))
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with (small_room / "other").open("wb") as other:
                taken = 0
                until = time.monotonic() + 0.1
                while time.monotonic() < until:
                    with contextlib.suppress(OSError):
                        os.posix_fallocate(other.fileno(), taken, 4096)
                        taken += 4096
            (small_room / "other").unlink()
            time.sleep(0.03)
        assert [child.communicate(timeout=60) for child in running] == [("fine\n", "")] * 4
        while q.try_get() is not None:
            pass
        q.put(1)
