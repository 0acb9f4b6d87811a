"""Kills of producers and readers of a log at random moments under load.

Writers put; producers put once, and one that was killed is replaced by one that repeats its call. Durable readers note
what they get at its position and commit; their successors go on there. Ephemeral readers begin at the end of the log.
Allowed, and nothing else:
 - every durable reader has seen every position, over all its lives, and what it saw twice was the same twice;
 - all durable readers have seen the same; what an ephemeral one saw is a part of that without a gap;
 - of each writer that is all whose put returned, in its order, and of the call in which it was killed a first part;
 - of each producer that is each item exactly once, in order;
 - no item is torn;
 - no call of a living worker takes longer than LIMIT_SECONDS plus what the machine itself withholds, for a few turns;
 - at the end every line of readers and participants can be taken, and every chunk but the last is free.
"""

from __future__ import annotations

import time
from typing import ClassVar

import numpy as np

from queueduct import EventQueue
from tests.crash.campaign import PARTICIPANTS, Campaign
from tests.crash.workers import WORKER_SHIFT, Log, consume, of_bytes, of_records, produce

READERS = 12
PRODUCER_NUMBERS = 1 << 20  # beyond those of workers: a producer's numbers go on over its lives

LOADS = {
    "small items": of_bytes((8, 24, 40, 80, 200), max_bytes=1 << 16),
    "large items": of_bytes((250_000, 8, 64_000, 900_000), max_bytes=8 << 20, first_items=1),
    "batches of records": of_records(16, 200, max_bytes=1 << 20),
}


class Events(Campaign):
    """Everybody who can be at work on a log."""

    cls: ClassVar = EventQueue
    options: ClassVar = {"readers": READERS}
    putting: ClassVar = {"writer": 2, "producer": 2}
    getting: ClassVar = {"durable": 2, "ephemeral": 2}
    # a full log waits for a killed durable reader's successor to get its own
    turns: ClassVar = {"one": 10, "batch": 10}

    def __init__(self, load, children, folder, seed):
        super().__init__(load, children, folder, seed)
        for seat in range(self.getting["durable"]):
            self.q.subscribe(f"durable {seat}", "earliest").close()

    def log_path(self, worker):
        role, seat = self.roles[worker]
        return self.folder / f"log {role} {seat}" if role in ("producer", "durable") else super().log_path(worker)

    def work(self, worker, role, seat):
        log = Log(self.log_path(worker))
        if role == "writer":
            produce(self.q, self.load, log, worker, self.stop)
        elif role == "producer":
            produce_once(self.q, self.load, log, seat, self.stop)
        elif role == "durable":
            self.read_on(log, self.q.subscribe(f"durable {seat}"))
        else:
            reader = self.q.subscribe()
            log.words[Log.TRYING] = reader.position
            consume(reader, self.load, log, self.stop_getting)

    def read_on(self, log, reader):
        def note(numbers):
            log.note_again(reader.position - len(numbers), numbers)
            reader.commit()

        consume(reader, self.load, log, self.stop_getting, note)

    def judge(self):
        durable = {self.roles[worker][1]: log.numbers() for worker, log in self.logs("durable")}
        whole = durable[0]
        stats = self.q.stats()
        assert len(whole) == stats.end
        assert all((numbers == whole).all() for numbers in durable.values()), "two durable readers saw different logs"
        for _, log in self.logs("ephemeral"):
            seen, first = log.numbers(), log.words[Log.TRYING]
            assert (seen == whole[first : first + len(seen)]).all(), "an ephemeral reader saw another log"
        self.check_what_was_put(whole)
        return f"{len(whole):,} items; {stats.repairs} times a writer died with the lock"

    def check_what_was_put(self, whole):
        known = 0
        for worker, log in self.logs("writer"):
            mine = numbers_of(whole, worker)
            done, trying = log.words[Log.DONE], log.words[Log.TRYING]
            assert done <= len(mine) <= (trying if worker in self.killed else done), "an item is gone, or of nobody"
            known += len(mine)
        for seat, log in {self.roles[worker][1]: log for worker, log in self.logs("producer")}.items():
            mine = numbers_of(whole, PRODUCER_NUMBERS + seat)
            assert log.words[Log.TRYING] == log.words[Log.DONE]
            assert len(mine) == log.words[Log.DONE] * self.load.batch, "an item of a producer is gone, or came twice"
            known += len(mine)
        assert known == len(whole), "an item came of nobody"

    def check_that_all_is_free(self):
        """Every line of readers; and once they are gone, every chunk but the last."""
        durable = self.getting["durable"]
        stats = self.q.stats()
        assert (stats.readers, stats.participants) == (durable, 1)
        assert all(not info.is_attached and info.lag == 0 for info in self.q.readers())
        readers = [self.q.subscribe() for _ in range(READERS - durable)]
        self.check_that_every_line_is_free()
        for reader in readers:
            assert len(reader.get_many(PARTICIPANTS)) == PARTICIPANTS - 1
            reader.close()
        for seat in range(durable):
            self.q.unsubscribe(f"durable {seat}")
        self.q.clear()
        assert len(self.q.stats().chunk_items) <= 1

    def join(self, handle):
        handle.put(b"12345678" if handle.item is bytes else np.zeros(16, "<u8"))


def produce_once(q, load, log, seat, stop):
    """Sequences below DONE are in; that of TRYING may be, and whoever comes after a kill repeats it."""
    while not stop[0] or log.words[Log.TRYING] > log.words[Log.DONE]:
        sequence = log.words[Log.DONE]
        log.words[Log.TRYING] = sequence + 1
        first = (PRODUCER_NUMBERS + seat << WORKER_SHIFT) + sequence * load.batch
        start = time.monotonic_ns()
        q.put_once(load.make([first + i for i in range(load.batch)]), f"producer {seat}", sequence)
        log.note_duration(start)
        log.words[Log.DONE] = sequence + 1


def numbers_of(whole, worker):
    """Which must be 0, 1, 2…: each once, and in order."""
    mine = whole[whole >> WORKER_SHIFT == worker] & ((1 << WORKER_SHIFT) - 1)
    assert (mine == np.arange(len(mine))).all(), f"items of {worker} are missing, doubled or out of order"
    return mine
