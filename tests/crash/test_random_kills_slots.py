"""SIGKILL of loaners and takers at random moments under load, and what must hold afterwards.

Producers put with copies; painters fill a loaned slot in two halves and publish it. Consumers get with copies; takers
read a taken slot where it lies, note its number while they have it, and release it then.
Allowed, and nothing else:
 - a number whose put returned was got by somebody, with one exception: a killed consumer takes along what its one
   call under way had already got and not yet noted, so at most one item for each killed consumer;
 - a number whose put did not return, since its producer was killed in it, was got once or not at all;
 - no number came twice, with one exception: a taker that was killed between its note and its release has noted a
   number that another one gets again, flagged, so at most one for each killed taker;
 - no item is torn: a half-painted slot is never published;
 - no call of a living worker takes longer than LIMIT_SECONDS plus what the machine itself withholds, for a few turns;
 - at the end every slot can be lent at once, and every line of the participant table can be taken again.
"""

from __future__ import annotations

import time
from typing import ClassVar

import numpy as np
import pytest

import queueduct
from queueduct import SlotQueue
from tests.crash.campaign import KILLS, LONG_KILLS, Campaign
from tests.crash.workers import WORKER_SHIFT, Log, consume, of_bytes, of_records, produce

PARTICIPANTS = 16

LOADS = {
    "small items": of_bytes((8, 24, 40, 80, 200), capacity=7, slot_bytes=200),
    "large items": of_bytes((250_000, 8, 64_000, 900_000), capacity=5, slot_bytes=900_000),
    "one slot": of_bytes((8, 64), capacity=1, slot_bytes=64),
    "records": of_records(16, 1, capacity=6),
}


class Slots(Campaign):
    """Those who copy and those who do not."""

    putting: ClassVar = {"producer": 2, "painter": 1}
    getting: ClassVar = {"consumer": 1, "taker": 2}
    turns: ClassVar = {"one": 10}  # few slots: whoever has one that is killed must be missed first

    def __init__(self, load, children, folder, seed):
        super().__init__(load, children, folder, seed)
        self.q = SlotQueue.create("q", participants=PARTICIPANTS, **load.create)

    def work(self, worker, role, seat):
        log = Log(self.log_path(worker))
        if role == "producer":
            produce(self.q, self.load, log, worker, self.stop)
        elif role == "painter":
            self.paint(log, worker)
        elif role == "consumer":
            consume(self.q, self.load, log, self.stop_getting)
        else:
            self.take(log)

    def paint(self, log, worker):
        done = 0
        while not self.stop[0]:
            number = worker << WORKER_SHIFT | done
            item = bytes(self.load.make([number])[0])
            log.words[Log.TRYING] = done + 1
            start = time.monotonic_ns()
            slot = self.q.loan() if self.q.item is not bytes else self.q.loan(length=len(item))
            half = len(item) // 2
            slot.view[:half] = item[:half]
            slot.view[half:] = item[half:]
            slot.publish()
            done += 1
            log.note_duration(start)
            log.words[Log.DONE] = done

    def take(self, log):
        start = time.monotonic_ns()
        while True:
            try:
                slot = self.q.take(1)
            except queueduct.Empty:
                if self.stop_getting[0]:
                    return
                continue
            words = slot.view.cast("Q")
            number = words[0]
            if any(words[i] != number for i in (0, len(words) // 2, len(words) - 1)) or len(set(words)) != 1:
                raise AssertionError(f"a torn item of {len(slot)} bytes")
            words.release()
            if not self.stop_getting[0]:
                log.note_duration(start)
            log.note_numbers([number])
            slot.release()
            start = time.monotonic_ns()

    def drained(self):
        """What the dead still owed when everybody else had gone."""
        rest = []
        try:
            while True:
                rest += self.load.get(self.q, 0.5)
        except queueduct.Empty:
            return rest


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", list(LOADS))
def test_nothing_is_lost_torn_or_stuck_by_kills_at_random_moments(children, queue_dir, is_long, name, capsys):
    load = LOADS[name]
    campaign = Slots(load, children, queue_dir, seed=f"{name} {is_long}")
    kills = LONG_KILLS if is_long else KILLS
    scheduler_seconds = campaign.run(kills)

    drained = np.array(campaign.drained(), "<u8")
    killed = {role: sum(campaign.roles[n][0] == role for n in campaign.killed) for role in ("consumer", "taker")}
    getters = [log for role in ("consumer", "taker") for _, log in campaign.logs(role)]
    putters = {**dict(campaign.logs("producer")), **dict(campaign.logs("painter"))}
    came = np.concatenate([drained, *(log.numbers() for log in getters)])
    got = np.unique(came)
    lost = known = 0
    for number, log in putters.items():
        mine = got[got >> WORKER_SHIFT == number] & ((1 << WORKER_SHIFT) - 1)
        done, trying = log.words[Log.DONE], log.words[Log.TRYING]
        assert (mine < (trying if number in campaign.killed else done)).all(), "an item came that nobody put"
        lost += done - int((mine < done).sum())
        known += len(mine)
    stats = campaign.q.stats()
    with capsys.disabled():
        print(
            f"\n  slots, {name}: {kills} kills, {len(got):,} items; {stats.recovered} slots recovered, "
            f"{stats.redelivered} items delivered again, {len(came) - len(got)} noted twice "
            f"by {killed['taker']} killed takers, {lost} gone with {killed['consumer']} killed consumers; "
            f"longest call {campaign.longest_seconds() * 1e3:.0f} ms, "
            f"the machine's own {scheduler_seconds * 1e3:.0f} ms"
        )
    assert known == len(got), "an item came of nobody"
    assert len(came) - len(got) <= killed["taker"], "an item came twice"
    assert lost <= killed["consumer"], "an item whose put returned is gone"
    campaign.check_stalls(scheduler_seconds, is_long)
    check_that_all_is_free(campaign.q)


def check_that_all_is_free(q):
    """Every slot can be lent, once; every line can be taken."""
    loans = [q.loan(5) for _ in range(q.slots)]
    assert sorted(loan.index for loan in loans) == list(range(q.slots))
    for loan in loans:
        loan.cancel()
    assert (q.stats().free, q.qsize(), q.stats().participants) == (q.slots, 0, 1)
    handles = [SlotQueue.open("q") for _ in range(PARTICIPANTS - 1)]
    for handle in handles:
        assert handle.try_get() is None
    assert q.stats().participants == PARTICIPANTS
    for handle in handles:
        handle.close()
