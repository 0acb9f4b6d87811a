"""kill -9 of C++ producers and consumers at random moments: the others go on, and what was acknowledged is there."""

from __future__ import annotations

import contextlib
import os
import random
import select
import signal
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import queueduct
from tests.cpp.test_puts import KINDS, Log
from tests.spark.rows import TICK, check_none_twice_and_losses_counted, numbered

KILLS = 25
LONG_KILLS = 500
RANGE = 10**9  # the numbers of one producer
STALL_LIMIT_SECONDS = 5.0  # the promise is 0.25 s on a machine that has a processor for it


class Peer:
    """A C++ process without an end, and what it has acknowledged, as 64-bit numbers."""

    def __init__(self, program: Path, *arguments: object) -> None:
        self.process = subprocess.Popen([program, *map(str, arguments)], stdout=subprocess.PIPE, bufsize=0)
        self.acknowledged = bytearray()

    def read_some(self, seconds: float = 30) -> None:
        """Waits for its next acknowledgement."""
        assert select.select([self.process.stdout], [], [], seconds)[0], "it is stuck"
        part = os.read(self.process.stdout.fileno(), 1 << 16)
        assert part, "it has ended by itself"
        self.acknowledged += part

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        while part := os.read(self.process.stdout.fileno(), 1 << 16):
            self.acknowledged += part
        assert self.process.wait(30) == -signal.SIGKILL

    @property
    def numbers(self) -> np.ndarray:
        """Writes to a pipe are whole: a kill comes before or after one."""
        return np.frombuffer(bytes(self.acknowledged), "i8")


class Getter(threading.Thread):
    """Gets until it is told to stop and nothing is left, and notes how long it was without an item."""

    def __init__(self, q) -> None:
        super().__init__()
        self.q, self.found, self.is_stopping, self.longest = q, [np.zeros(0, "i8")], False, 0.0

    def run(self) -> None:
        last = time.monotonic()
        while True:
            try:
                part = self.q.get_many(256, timeout=0.05)
            except queueduct.Empty:
                if self.is_stopping:
                    return
                continue
            now = time.monotonic()
            self.longest, last = max(self.longest, now - last), now
            self.found.append(part["number"])
            if isinstance(self.q, Log):
                self.q.reader.commit()

    def all(self) -> np.ndarray:
        self.is_stopping = True
        self.join(60)
        assert not self.is_alive()
        return np.concatenate(self.found)


class Putter(threading.Thread):
    """Puts ticks 0, 1, 2, ... until it is told to stop."""

    def __init__(self, q) -> None:
        super().__init__()
        self.q, self.put, self.is_stopping = q, 0, False

    def run(self) -> None:
        while not self.is_stopping:
            with contextlib.suppress(queueduct.Full):
                self.put += self.q.put_many(numbered(self.put, self.put + 64), timeout=0.05)

    def stop(self) -> int:
        """How many it has put."""
        self.is_stopping = True
        self.join(60)
        assert not self.is_alive()
        return self.put


@pytest.fixture
def start(peer):
    """Starts a C++ process; whatever still runs at the end of the test is killed."""
    started: list[Peer] = []

    def start_one(*arguments: object) -> Peer:
        started.append(Peer(peer, *arguments))
        return started[-1]

    yield start_one
    for each in started:
        if each.process.poll() is None:
            each.kill()
        each.process.stdout.close()


@pytest.fixture
def kills(is_long):
    return LONG_KILLS if is_long else KILLS


SIZES = {"bounded": {"capacity": 512}, "overwriting": {"capacity": 512}, "events": {"max_bytes": 1 << 20}}


@pytest.mark.parametrize("batch", [1, 48])
@pytest.mark.parametrize("kind", KINDS)
def test_killed_cpp_producers_harm_nobody_and_what_they_acknowledged_is_there(start, kills, kind, batch, capsys):
    rng = random.Random(f"{kind} {batch}")
    q = KINDS[kind](**SIZES[kind])
    getter = Getter(q)
    getter.start()
    steady = start("put_acknowledged", "q", 0, 16)
    victims = []
    for number in range(1, kills + 1):
        victims.append(start("put_acknowledged", "q", number * RANGE, batch))
        for _ in range(rng.randrange(1, 6)):
            victims[-1].read_some()
            steady.read_some()
        victims[-1].kill()
        steady.read_some()
    steady.kill()
    found = getter.all()
    assert getter.longest < STALL_LIMIT_SECONDS
    if kind == "overwriting":
        check_none_twice_and_losses_counted(found, q.stats(), q.stats().puts)
    for number, process in enumerate([steady, *victims]):
        own = found[(found >= number * RANGE) & (found < (number + 1) * RANGE)]
        assert np.all(np.diff(own) > 0), "in the order of its puts, and none twice"
        if kind == "overwriting":
            continue
        least = int(process.numbers[-1]) - number * RANGE
        size = 16 if process is steady else batch
        assert np.array_equal(own[:least], np.arange(least) + number * RANGE), "all that were acknowledged"
        assert len(own) - least <= size, "and at most the batch that was under way"
    stats = q.stats()
    assert stats.participants <= 1, "only our own: the dead have no line"
    with capsys.disabled():
        told = getattr(stats, {"bounded": "tombstones", "overwriting": "torn", "events": "repairs"}[kind])
        print(
            f"\n  {kind}, {batch}: {kills} kills, {len(found)} items, {told} recovered, longest {getter.longest:.3f} s"
        )


@pytest.mark.parametrize("batch", [1, 48])
def test_an_item_that_a_killed_cpp_consumer_had_not_got_goes_to_another(start, kills, batch, capsys):
    rng = random.Random(batch)
    q = KINDS["bounded"](capacity=512)
    source = Putter(q)
    source.start()
    other = start("get_acknowledged", "q", 16)
    dead = []
    for _ in range(kills):
        dead.append(start("get_acknowledged", "q", batch))
        for _ in range(rng.randrange(1, 6)):
            dead[-1].read_some()
            other.read_some()
        dead[-1].kill()
        other.read_some()
    put = source.stop()
    left = Getter(q)
    left.start()
    other.kill()
    found = np.concatenate([left.all(), *(process.numbers for process in [other, *dead])])
    values, counts = np.unique(found, return_counts=True)
    assert counts.max() == 1, "none twice"
    missing = np.setdiff1d(np.arange(put), values)
    assert len(missing) <= kills * batch + 16, "only what a consumer had got, and had not told when it was killed"
    stats = q.stats()
    assert (stats.size, len(np.setdiff1d(values, np.arange(put)))) == (0, 0)
    with capsys.disabled():
        print(f"\n  batch {batch}: {kills} kills, {put} items, {len(missing)} told nobody, {stats.redelivered} again")


def test_a_log_on_a_disk_that_a_killed_cpp_producer_left_is_whole(start, disk):
    """A kill is no crash of the machine: nothing is cut, whatever was synced."""
    log = queueduct.EventQueue.create("q", item=TICK, sync="never")
    for first in range(0, 10 * RANGE, RANGE):
        victim = start("put_acknowledged", "q", first, 7)
        victim.read_some()
        victim.kill()
        least = int(victim.numbers[-1]) - first
        log.close()
        log = queueduct.EventQueue.open("q")
        found = log.read(0, log.end)["number"]
        own = found[(found >= first) & (found < first + RANGE)]
        assert np.array_equal(own[:least], np.arange(least) + first)
    assert log.stats().epoch == 0
