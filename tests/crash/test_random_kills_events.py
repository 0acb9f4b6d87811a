"""SIGKILL of writers and readers of a log at random moments under load, and what must hold afterwards.

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
from collections import Counter
from typing import ClassVar

import numpy as np
import pytest

from queueduct import EventQueue
from tests.crash.campaign import KILLS, LONG_KILLS, Campaign
from tests.crash.workers import WORKER_SHIFT, Log, consume, of_bytes, of_records, produce

READERS, PARTICIPANTS = 12, 16
PRODUCER_NUMBERS = 1 << 20  # beyond those of workers: a producer's numbers go on over its lives

LOADS = {
    "small items": of_bytes((8, 24, 40, 80, 200), max_bytes=1 << 16),
    "large items": of_bytes((250_000, 8, 64_000, 900_000), max_bytes=8 << 20, first_items=1),
    "batches of records": of_records(16, 200, max_bytes=1 << 20),
}


class Events(Campaign):
    """Everybody who can be at work on a log."""

    putting: ClassVar = {"writer": 2, "producer": 2}
    getting: ClassVar = {"durable": 2, "ephemeral": 2}
    turns: ClassVar = {
        "one": 10,
        "batch": 10,
    }  # a full log waits for a killed durable reader's successor to get its own

    def __init__(self, load, children, folder, seed):
        super().__init__(load, children, folder, seed)
        self.q = EventQueue.create("q", readers=READERS, participants=PARTICIPANTS, **load.create)
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


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", list(LOADS))
def test_every_reader_sees_the_same_whole_log_after_kills_at_random_moments(children, queue_dir, is_long, name, capsys):
    campaign = Events(LOADS[name], children, queue_dir, seed=f"{name} {is_long}")
    kills = LONG_KILLS if is_long else KILLS
    scheduler_seconds = campaign.run(kills)

    durable = {campaign.roles[worker][1]: log.numbers() for worker, log in campaign.logs("durable")}
    whole = durable[0]
    stats = campaign.q.stats()
    victims = Counter(campaign.roles[worker][0] for worker in campaign.killed)
    with capsys.disabled():
        print(
            f"\n  {name}: {kills} kills ({', '.join(f'{role} {count}' for role, count in sorted(victims.items()))}), "
            f"{len(whole):,} items; {stats.repairs} times a writer died with the lock; longest call "
            f"{campaign.longest_seconds() * 1e3:.0f} ms, the machine's own {scheduler_seconds * 1e3:.0f} ms"
        )
    assert len(whole) == stats.end
    assert all((numbers == whole).all() for numbers in durable.values()), "two durable readers saw different logs"
    for _, log in campaign.logs("ephemeral"):
        seen, first = log.numbers(), log.words[Log.TRYING]
        assert (seen == whole[first : first + len(seen)]).all(), "an ephemeral reader saw another log"
    check_what_was_put(campaign, whole)
    campaign.check_stalls(scheduler_seconds, is_long)
    check_that_all_is_free(campaign.q, campaign.getting["durable"])


def check_what_was_put(campaign, whole):
    known = 0
    for worker, log in campaign.logs("writer"):
        mine = numbers_of(whole, worker)
        done, trying = log.words[Log.DONE], log.words[Log.TRYING]
        assert done <= len(mine) <= (trying if worker in campaign.killed else done), "an item is gone, or of nobody"
        known += len(mine)
    for seat, log in {campaign.roles[worker][1]: log for worker, log in campaign.logs("producer")}.items():
        mine = numbers_of(whole, PRODUCER_NUMBERS + seat)
        assert log.words[Log.TRYING] == log.words[Log.DONE]
        assert len(mine) == log.words[Log.DONE] * campaign.load.batch, "an item of a producer is gone, or came twice"
        known += len(mine)
    assert known == len(whole), "an item came of nobody"


def numbers_of(whole, worker):
    """Which must be 0, 1, 2…: each once, and in order."""
    mine = whole[whole >> WORKER_SHIFT == worker] & ((1 << WORKER_SHIFT) - 1)
    assert (mine == np.arange(len(mine))).all(), f"items of {worker} are missing, doubled or out of order"
    return mine


def check_that_all_is_free(q, durable):
    stats = q.stats()
    assert (stats.readers, stats.participants) == (durable, 1)
    assert all(not info.is_attached and info.lag == 0 for info in q.readers())
    readers = [q.subscribe() for _ in range(READERS - durable)]
    handles = [EventQueue.open("q") for _ in range(PARTICIPANTS - 1)]
    for handle in handles:
        handle.put(b"12345678" if q.item is bytes else np.zeros(16, "<u8"))
    assert q.stats().participants == PARTICIPANTS
    for handle in handles:
        handle.close()
    for reader in readers:
        assert len(reader.get_many(PARTICIPANTS)) == PARTICIPANTS - 1
        reader.close()
    for seat in range(durable):
        q.unsubscribe(f"durable {seat}")
    q.clear()
    assert len(q.stats().chunk_items) <= 1
