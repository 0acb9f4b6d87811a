"""What is held goes with its queue when both are garbage of one cycle: the collector ends them in any order."""

from __future__ import annotations

import gc

import pytest

from queueduct import EventQueue, SlotQueue
from tests.support.kinds import CLASSES

MESSAGE = b"x" * 64


def in_a_cycle(*things):
    """Garbage that only the collector finds."""
    cycle = list(things)
    cycle.append(cycle)


@pytest.mark.parametrize("is_closed", [False, True])
@pytest.mark.parametrize("kind", ["bounded", "growing", "overwriting", "slots"])
def test_a_lease_that_is_collected_with_its_queue_is_given_back(kind, is_closed):
    options = {"message_bytes": 64} if kind == "overwriting" else {}
    with CLASSES[kind].create("q", **options) as other:
        other.put(MESSAGE)
        for _ in range(20):
            q = CLASSES[kind].open("q")
            lease = q.lease(1)
            if is_closed:
                q.close()
            in_a_cycle(q, lease)
            del q, lease
            gc.collect()
        with other.lease(1, timeout=10) as lease:
            assert bytes(lease.items[0]) == MESSAGE


def test_slots_and_readers_that_are_collected_with_their_queue_are_given_back():
    with SlotQueue.create("s") as slots, EventQueue.create("e") as events:
        slots.put(MESSAGE)
        events.subscribe("reader", start="earliest").close()
        for _ in range(20):
            s, e = SlotQueue.open("s"), EventQueue.open("e")
            in_a_cycle(s, s.take(), s.loan())
            in_a_cycle(e, e.subscribe("reader"))
            del s, e
            gc.collect()
        assert slots.get(timeout=10) == MESSAGE
        events.subscribe("reader").close()
