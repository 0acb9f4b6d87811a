"""How the log grows and shrinks: sizes of chunks, when one is freed, and what is used again."""

from __future__ import annotations

import gc
import weakref

import pytest

from queueduct import EventQueue
from tests.support.ticks import drain, fill, numbers


def test_chunks_are_for_n_n_2n_2n_4n_items():
    with EventQueue.create("q", item="<u8", first_items=4) as q:
        q.subscribe("late", start="earliest").close()
        sizes = []
        for i in range(32):
            q.put(i)
            sizes.append(q.stats().chunk_items)
        assert sizes[0] == (4,)
        assert sizes[4] == (4, 4)
        assert sizes[8] == (4, 4, 8)
        assert sizes[16] == (4, 4, 8, 8)
        assert sizes[24] == (4, 4, 8, 8, 16)
        assert sizes[31] == (4, 4, 8, 8, 16)


@pytest.mark.parametrize("first_items", [1, 3, 100])
def test_the_first_size_is_what_was_asked_for(first_items):
    with EventQueue.create("q", item="<u8", first_items=first_items) as q:
        q.put_many(numbers(6 * first_items + 1))
        assert q.stats().chunk_items == tuple(n * first_items for n in (1, 1, 2, 2, 4))


def test_references_and_bytes_grow_the_same_way():
    with EventQueue.create("q", item_bytes=8) as q, EventQueue() as local:
        for queue in (q, local):
            queue.put_many([b"12345678"] * 32)
            assert queue.stats().chunk_items == (4, 4, 8, 8, 16)


def test_the_size_of_the_last_chunk_left_is_found():
    """A reader that keeps up lets chunks be freed as fast as they are made: then they grow no more."""
    with EventQueue.create("q", item="<u8") as q:
        reader = q.subscribe()
        sizes = set()
        for i in range(4000):
            q.put(i)
            assert reader.get() == i
            sizes |= set(q.stats().chunk_items)
            assert len(q.stats().chunk_items) <= 2
        assert sizes == {4}


def test_a_reader_that_lags_by_so_much_makes_chunks_that_suit_it():
    """They double until one or two hold the lag, and then stay."""
    with EventQueue.create("q", item="<u8") as q:
        reader = q.subscribe()
        q.put_many(numbers(300))
        for i in range(20_000):
            q.put(i)
            reader.get()
        found = q.stats().chunk_items
        for i in range(20_000):
            q.put(i)
            reader.get()
        assert set(q.stats().chunk_items) == set(found)
        assert max(found) <= 2048


def test_no_chunk_is_larger_than_an_eighth_of_the_limit_or_than_chunk_bytes():
    with EventQueue.create("q", item="<u8", max_bytes=64 * 1024) as q:
        fill(q)
        assert max(q.stats().chunk_items) * 8 <= 8 * 1024
    with EventQueue.create("r", item="<u8", max_bytes=1 << 20, chunk_bytes=4096) as q:
        fill(q)
        assert max(q.stats().chunk_items) == 512


def test_a_chunk_is_freed_when_all_readers_have_passed_it():
    with EventQueue.create("q", item="<u8") as q:
        fast, slow = q.subscribe(), q.subscribe()
        q.put_many(numbers(32))
        assert len(drain(fast)) == 32
        q.put_many(numbers(32))
        assert q.earliest == 0
        slow.get_many(9)  # the first of the third chunk: two are left behind
        q.put_many(numbers(200))
        assert q.earliest == 8
        drain(slow)
        drain(fast)
        assert slow.try_get() is None
        assert fast.try_get() is None
        q.put_many(numbers(500))
        assert q.earliest >= 64


def test_a_reader_stopped_exactly_at_a_chunks_end_has_not_left_it():
    with EventQueue.create("q", item="<u8") as q:
        reader = q.subscribe()
        q.put_many(numbers(8))
        assert list(reader.get_many(4)) == [0, 1, 2, 3]
        q.put_many(numbers(100))
        assert q.earliest == 0
        assert list(q.read(0, 4)) == [0, 1, 2, 3]
        assert reader.get() == 4  # now it has
        q.put_many(numbers(1000))
        assert q.earliest == 4


def test_a_durable_readers_chunk_is_freed_by_its_commit_and_not_before():
    with EventQueue.create("q", item="<u8") as q:
        reader = q.subscribe("d")
        q.put_many(numbers(32))
        drain(reader)
        q.put_many(numbers(100))
        assert q.earliest == 0
        reader.commit(16)
        q.put_many(numbers(300))
        assert q.earliest == 16
        reader.commit()
        q.put_many(numbers(1000))
        assert q.earliest == 24


def test_an_ephemeral_reader_that_closes_frees_what_it_held():
    with EventQueue.create("q", item="<u8") as q:
        slow, fast = q.subscribe(), q.subscribe()
        q.put_many(numbers(32))
        drain(fast)
        assert fast.try_get() is None
        slow.close()
        assert q.earliest == 24  # but for the open chunk
        assert q.stats().readers == 1


def test_an_ephemeral_reader_that_is_forgotten_frees_what_it_held():
    with EventQueue.create("q", item="<u8") as q:
        slow, fast = q.subscribe(), q.subscribe()
        q.put_many(numbers(32))
        drain(fast)
        assert fast.try_get() is None
        gone = weakref.ref(slow)
        del slow
        gc.collect()
        assert gone() is None
        assert q.stats().readers == 1
        assert q.earliest == 24


@pytest.mark.parametrize("item", ["<u8", bytes])
def test_a_thousand_rounds_of_fill_and_drain_keep_memory_constant(item):
    with EventQueue.create("q", item=item, max_bytes=1 << 16) as q:
        reader = q.subscribe()
        batch = numbers(2000) if item == "<u8" else [b"x" * (i % 60) for i in range(600)]
        resident = []
        for _ in range(1000):
            assert q.put_many(batch) == len(batch)
            assert len(drain(reader)) == len(batch)
            resident.append(q.stats().resident_bytes)
        settled = resident[20:]
        assert max(settled) - min(settled) <= 1 << 16
        assert max(settled[-100:]) <= max(settled[:100])
        assert max(settled) <= resident[0] + (1 << 16)


def test_a_thousand_rounds_within_a_process_keep_memory_constant():
    with EventQueue(max_bytes=1 << 16) as q:
        reader = q.subscribe()
        resident = []
        for _ in range(1000):
            q.put_many(range(2000))
            assert drain(reader) == list(range(2000))
            resident.append(q.stats().resident_bytes)
        assert max(resident[-100:]) <= max(resident[20:120])
        assert max(resident) <= 3 << 16


def test_a_steady_flow_keeps_memory_constant():
    with EventQueue.create("q", item="<u8", max_bytes=1 << 20) as q:
        reader = q.subscribe()
        resident = set()
        for i in range(300):
            q.put_many(numbers(500, i))
            assert len(reader.get_many(500)) == 500
            if i >= 50:
                resident.add(q.stats().resident_bytes)
        assert max(resident) - min(resident) <= 64 * 1024


def test_a_burst_gives_its_memory_back():
    with EventQueue.create("q", item="<u8", max_bytes=32 << 20) as q:
        reader = q.subscribe()
        calm = q.stats().resident_bytes
        q.put_many(numbers(2_000_000))
        assert q.stats().resident_bytes > calm + 16_000_000
        drain(reader)
        assert reader.try_get() is None
        q.put_many(numbers(200_000))
        drain(reader)
        assert reader.try_get() is None
        q.put_many(numbers(200_000))
        assert q.stats().resident_bytes < calm + 16_000_000


def test_a_freed_chunk_is_used_again():
    """The same blocks, round after round: the file does not grow beyond what two rounds need."""
    with EventQueue.create("q", item="<u8", max_bytes=1 << 20, chunk_bytes=4096) as q:
        reader = q.subscribe()
        for i in range(2000):
            q.put_many(numbers(512, i))
            assert len(reader.get_many(512)) == 512
        tables = q.stats().resident_bytes - q.stats().used_bytes
        assert q.stats().used_bytes <= 4 * 4096
        assert tables < 300_000
