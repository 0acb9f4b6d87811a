"""Forks at every moment: a child that lives on keeps nothing of its dead parent, whatever was going on."""

from __future__ import annotations

import os
import signal
import time

import pytest

import queueduct
from tests.edges.kinds import KINDS, item, number_of
from tests.support.deadline import until
from tests.support.published import Published

PROMPTLY_SECONDS = 10.0  # to tell a wait from a hang on a busy machine; the promise is a quarter of a second

VICTIM = """
import contextlib, os, random, signal, sys, threading, time
import queueduct
from tests.support.children import fork
from tests.edges.kinds import KINDS, item
kind, children_wanted, seed = KINDS[sys.argv[1]], int(sys.argv[2]), int(sys.argv[3])
chance = random.Random(seed)

class GivenUp(Exception):
    pass

def work():
    number = 1000
    while True:
        mine = queueduct.open("q")
        mine.try_put(item(number))
        number += 1
        if kind.has_leases:
            with contextlib.suppress(GivenUp, queueduct.Empty), mine.lease(2, timeout=0):
                raise GivenUp
            mine.try_get()
        else:
            with mine.subscribe("edge", start="earliest") as reader:
                reader.try_get()
        mine.close()

threading.Thread(target=work, daemon=True).start()
children = []
while len(children) < children_wanted:
    time.sleep(chance.random() * 0.004)
    pid = fork()
    if pid == 0:
        os.closerange(0, 3)
        while True:
            signal.pause()
    children.append(pid)
print(*children, flush=True)
signal.pause()
"""

HOLDER = """
import os, signal, sys, threading
import queueduct
from tests.support.children import fork
held = []
def work():
    mine = queueduct.open("q")
    held.append(mine.lease(3))
thread = threading.Thread(target=work)
thread.start()
children = []
while not held or not children:
    pid = fork()
    if pid == 0:
        os.closerange(0, 3)
        while True:
            signal.pause()
    children.append(pid)
print(*children, flush=True)
signal.pause()
"""

FORKS_WITHIN_OPEN = """
import os, signal, sys
import queueduct
from tests.support.children import fork
from queueduct.segments import segment
children = []
def forks_first(function):
    def call(self):
        pid = fork()
        if pid == 0:
            os.closerange(0, 3)
            while True:
                signal.pause()
        children.append(pid)
        return function(self)
    return call
for name in ("take_lock_fd", "take_memory"):
    setattr(segment.Segment, name, forks_first(getattr(segment.Segment, name)))
mine = queueduct.open("q")
held = mine.lease(3) if hasattr(mine, "lease") else mine.subscribe("edge", start="earliest")
print(*children, flush=True)
signal.pause()
"""


@pytest.fixture
def orphans():
    """Children of a process that will be killed: whoever is left at the end is killed as well."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def kill_parent(process, orphans):
    orphans.extend(map(int, process.stdout.readline().split()))
    assert orphans, process.stderr.read()
    process.kill()
    process.wait()


@pytest.mark.parametrize("kind", KINDS)
def test_children_forked_at_any_moment_do_not_keep_their_dead_parent_alive(kind, children, orphans, is_long):
    q = KINDS[kind].create("q", participants=8)
    for seed in range(30 if is_long else 1):
        process = children.start(VICTIM, kind, 40, seed)
        kill_parent(process, orphans)
        until(lambda: q.stats().participants <= 1, "the dead are seen to be dead", PROMPTLY_SECONDS)
        began = time.monotonic()
        taken = KINDS[kind].consumer(q)
        while taken.try_get() is not None:
            pass
        q.put(item(7), timeout=PROMPTLY_SECONDS)
        numbers = []
        while 7 not in numbers:  # what the dead had may come first
            numbers.append(number_of(taken.get(timeout=PROMPTLY_SECONDS)))
        assert time.monotonic() - began < PROMPTLY_SECONDS
        if taken is not q:
            taken.close()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if KINDS[kind].has_leases])
def test_a_killed_parents_lease_is_redelivered_beside_its_children(kind, children, orphans, is_long):
    q = KINDS[kind].create("q")
    for attempt in range(50 if is_long else 3):
        for number in range(3):
            q.put(item(number))
        kill_parent(children.start(HOLDER), orphans)
        assert sorted(number_of(q.get(timeout=PROMPTLY_SECONDS)) for _ in range(3)) == [0, 1, 2], attempt
        assert q.try_get() is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_child_forked_in_an_open_keeps_nothing_of_what_is_held_later(kind, children, orphans):
    q = KINDS[kind].create("q")
    for number in range(3):
        q.put(item(number))
    process = children.start(FORKS_WITHIN_OPEN)
    kill_parent(process, orphans)
    until(lambda: q.stats().participants <= 1, "the dead are seen to be dead", PROMPTLY_SECONDS)
    if KINDS[kind].has_leases:
        assert sorted(number_of(q.get(timeout=PROMPTLY_SECONDS)) for _ in range(3)) == [0, 1, 2]
    else:
        with q.subscribe("edge") as reader:  # not ReaderInUse
            assert [number_of(found) for found in reader.get_many(9)] == [0, 1, 2]


@pytest.mark.parametrize("kind", KINDS)
def test_a_child_forked_beside_a_busy_thread_uses_the_handle_itself(kind, children):
    """The thread opens and closes handles, and uses this one, all the time."""
    q = KINDS[kind].create("q")
    work = """
import os, sys, threading
import queueduct
from tests.support.children import fork
from tests.edges.kinds import KINDS, item
kind = KINDS[sys.argv[1]]
q = queueduct.open("q")
is_over = threading.Event()
def work():
    while not is_over.is_set():
        with queueduct.open("q") as other:
            other.put(item(1))
        taken = kind.consumer(q) if kind.has_leases else q.subscribe(None, start="earliest")
        taken.try_get()
        if taken is not q:
            taken.close()
            q.clear()
thread = threading.Thread(target=work)
thread.start()
for _ in range(15):
    pid = fork()
    if pid == 0:
        q.put(item(2), timeout=30)
        taken = q if kind.has_leases else q.subscribe(None, start="earliest")
        taken.try_get()
        q.close()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
is_over.set()
thread.join()
print("done")
"""
    assert children.run(work, kind) == "done\n"
    until(lambda: q.stats().participants <= 1, "everybody else has left", PROMPTLY_SECONDS)


def test_a_fork_while_a_thread_ends_leaves_the_child_able_to_join(children):
    """A thread's end lets its line go under the mutexes that a fork waits for."""
    out = children.run(
        """
import os, threading
import queueduct
from tests.support.children import fork
q = queueduct.BoundedQueue.create("q", 64, participants=4)
for _ in range(60):
    thread = threading.Thread(target=lambda: (q.put(b"x"), q.get()))
    thread.start()
    pid = fork()
    if pid == 0:
        q.put(b"y", timeout=30)
        q.get(timeout=30)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    thread.join()
print(q.qsize())
"""
    )
    assert out == "0\n"


def test_a_child_forked_beside_an_adoption_does_not_keep_others_from_it(children, orphans, queue_dir):
    """The adopter is killed in the midst of it, while another of its threads forks."""
    Published.create(queue_dir / "q", 64, 8).close()
    process = children.start(
        """
import os, signal, sys, threading, time
import queueduct
from tests.support.children import fork
from queueduct.segments import foreign_segment as adopting
def forks():
    pid = fork()
    if pid == 0:
        while True:
            signal.pause()
    print(pid, flush=True)
def forks_and_dies(*arguments):
    threading.Thread(target=forks, daemon=True).start()
    time.sleep(0.3)  # for the fork, if it can be
    os.kill(os.getpid(), signal.SIGKILL)
adopting.add_own_part = forks_and_dies
queueduct.OverwritingQueue.adopt("q")
"""
    )
    process.wait(60)
    orphans.extend(map(int, process.stdout.readline().split()))
    began = time.monotonic()
    queueduct.OverwritingQueue.adopt("q").close()
    assert time.monotonic() - began < PROMPTLY_SECONDS


def test_every_kind_is_in_the_campaign():
    assert set(KINDS) == set(queueduct.segments.kinds.KINDS)
