"""Names, handles and looks of an event queue: open by kind, pickle by name, close, unlink, stats."""

from __future__ import annotations

import numpy as np

import queueduct
from queueduct import EventQueue, EventStats
from tests.support.ticks import numbers


def test_stats_say_what_there_is():
    with EventQueue.create("q", item="<u8", max_bytes=1 << 16, participants=9) as q:
        reader = q.subscribe()
        q.put_many(numbers(10))
        found = q.stats()
        assert isinstance(found, EventStats)
        assert found._replace(resident_bytes=0, repairs=0) == EventStats(
            size=10,
            resident_bytes=0,
            max_bytes=1 << 16,
            is_shut_down=False,
            participants=1,
            participants_limit=9,
            end=10,
            earliest=0,
            chunk_items=(4, 4, 8),
            used_bytes=16 * 8,
            readers=1,
            readers_dropped=0,
            repairs=0,
            synced=0,
            epoch=0,
            items_put=10,
            bytes_put=80,
            items_got=0,
            bytes_got=0,
            waits_for_room=0,
            waits_for_items=0,
            waited_seconds=0.0,
        )
        assert reader.lag == len(q) == q.qsize() == 10
        assert not q.empty()
        assert not q.full()
        assert repr(q) == "<queueduct.EventQueue 'q' capacity=65536, size=10>"


def test_looks_need_no_numpy_item():
    """An opener learns the item type from the header."""
    dtype = np.dtype([("sym", "S8"), ("px", "<f8", (2,))])
    EventQueue.create("q", item=dtype).close()
    assert queueduct.open("q").item == dtype
    assert EventQueue().item is object
    assert EventQueue().name is None
