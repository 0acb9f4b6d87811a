"""A file truncated while it is mapped: SIGBUS is an error of the call, with faulthandler or without; others still kill.

edges/test_truncation.py makes every call of every kind after a truncation.
"""

from __future__ import annotations

import faulthandler
import os
import signal

import pytest

import queueduct
from queueduct import BoundedQueue, CorruptSegment

LOOKS = {
    "qsize": lambda q, value: q.qsize(),
    "stats": lambda q, value: q.stats(),
    "full": lambda q, value: q.full(),
    "repr": lambda q, value: repr(q),
    "shutdown": lambda q, value: q.shutdown(),
    "close": lambda q, value: q.close(),
}
WORKS = {
    "put": lambda q, value: q.put(value, timeout=0.2),
    "try_put": lambda q, value: q.try_put(value),
    "put_many": lambda q, value: q.put_many([value] * 5000, timeout=0.2),
    "get": lambda q, value: q.get(timeout=0.2),
    "try_get": lambda q, value: q.try_get(),
    "get_many": lambda q, value: q.get_many(5000, timeout=0.2),
}


def use_a_truncated_file(how, size, when, item):
    """In a process of its own. It ends well if the call works or is refused as it should."""
    faulthandler.disable()
    if when == "before":
        faulthandler.enable()
    BoundedQueue.create("first", 4)
    if when == "between":
        faulthandler.enable()
    value = 1.5 if item == "f8" else b"x"
    q = BoundedQueue.create("q", 4096, item=item)
    q.put_many([value] * 100)
    os.truncate(os.path.join(os.environ["QUEUEDUCT_DIR"], "q"), size)
    for name in (how, how, "get"):  # at the latest the second time it is known
        try:
            (LOOKS | WORKS)[name](q, value)
            assert name in LOOKS or size > 0, "nobody noticed"
        except CorruptSegment as error:
            assert "truncated" in str(error)
        except (queueduct.ShutDown, queueduct.QueueClosed):
            assert how in ("shutdown", "close")
        except (queueduct.Empty, queueduct.Full):
            assert size > 0, "nobody noticed"


@pytest.mark.parametrize("item", [bytes, "f8"])
@pytest.mark.parametrize("when", ["without", "before", "between"])
@pytest.mark.parametrize("size", [0, 40_000])
@pytest.mark.parametrize("how", [*WORKS, *LOOKS])
def test_a_file_truncated_while_it_is_mapped_is_an_error_and_not_the_end(children, how, size, when, item):
    """Touching a page that the file has lost raises SIGBUS, which kills by default, or by way of faulthandler.

    faulthandler may have been enabled before the first queue was opened, or between it and the one that is used.
    """
    assert children.wait(children.fork(lambda: use_a_truncated_file(how, size, when, item))) == 0


def test_a_file_truncated_under_a_waiting_get_wakes_it_with_an_error(children):
    child = children.start(
        """
import queueduct
q = queueduct.BoundedQueue.create("q", 4)
print("ready", flush=True)
try:
    q.get()
except queueduct.CorruptSegment as error:
    print("truncated" in str(error))
"""
    )
    assert child.stdout.readline() == "ready\n"
    os.truncate(os.path.join(os.environ["QUEUEDUCT_DIR"], "q"), 0)
    out, err = child.communicate(timeout=60)
    assert (out, err, child.returncode) == ("True\n", "", 0)


@pytest.mark.parametrize("when", ["without", "before", "between", "after"])
def test_any_other_sigbus_still_kills(children, when):
    child = children.start(
        """
import faulthandler, mmap, os, sys, queueduct
def enable(when):
    if when == sys.argv[1]:
        faulthandler.enable()
enable("before")
q = queueduct.BoundedQueue.create("q", 4)
enable("between")
r = queueduct.BoundedQueue.create("r", 4)
enable("after")
fd = os.memfd_create("mine")
os.ftruncate(fd, 4096)
mine = mmap.mmap(fd, 4096)
os.ftruncate(fd, 0)
mine[0]
""",
        when,
    )
    _, err = child.communicate(timeout=60)
    assert child.returncode == -signal.SIGBUS
    assert err.count("Fatal Python error: Bus error") == (0 if when == "without" else 1)
