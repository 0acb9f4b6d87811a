"""Kills of loaners and takers at random moments under load.

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

import queueduct
from queueduct import SlotQueue
from tests.crash.campaign import Campaign
from tests.crash.workers import WORKER_SHIFT, Log, of_bytes, of_records

LOADS = {
    "small items": of_bytes((8, 24, 40, 80, 200), capacity=7, slot_bytes=200),
    "large items": of_bytes((250_000, 8, 64_000, 900_000), capacity=5, slot_bytes=900_000),
    "one slot": of_bytes((8, 64), capacity=1, slot_bytes=64),
    "records": of_records(16, 1, capacity=6),
}


class Slots(Campaign):
    """Those who copy and those who do not."""

    cls: ClassVar = SlotQueue
    putting: ClassVar = {"producer": 2, "painter": 1}
    getting: ClassVar = {"consumer": 1, "taker": 2}
    turns: ClassVar = {"one": 10}  # few slots: whoever has one that is killed must be missed first

    def work(self, worker, role, seat):
        if role == "painter":
            self.paint(Log(self.log_path(worker)), worker)
        elif role == "taker":
            self.take(Log(self.log_path(worker)))
        else:
            super().work(worker, role, seat)

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

    def judge(self):
        came = self.got()
        got = np.unique(came)
        lost = self.count_lost(got)
        consumers, takers = self.killed_of("consumer"), self.killed_of("taker")
        assert len(came) - len(got) <= takers, "an item came twice"
        assert lost <= consumers, "an item whose put returned is gone"
        stats = self.q.stats()
        return (
            f"{len(got):,} items; {stats.recovered} slots recovered, {stats.redelivered} items delivered again, "
            f"{len(came) - len(got)} noted twice by {takers} killed takers, {lost} gone with {consumers} consumers"
        )

    def check_that_all_is_free(self):
        """Every slot can be lent, once."""
        q = self.q
        loans = [q.loan(5) for _ in range(q.slots)]
        assert sorted(loan.index for loan in loans) == list(range(q.slots))
        for loan in loans:
            loan.cancel()
        assert (q.stats().free, q.qsize(), q.stats().participants) == (q.slots, 0, 1)
