"""Full and TooManyReaders name the readers that are in the way, and following what they say helps."""

from __future__ import annotations

import asyncio

import pytest

from queueduct import EventQueue, Full, TooManyReaders
from tests.support.ticks import numbers


def fill(q) -> None:
    while q.try_put(0):
        pass


FULL_CALLS = {
    "put": lambda q: q.put(1, timeout=0.01),
    "put_nowait": lambda q: q.put_nowait(1),
    "put_many": lambda q: q.put_many(numbers(5), timeout=0.01),
    "put_once": lambda q: q.put_once(numbers(5), "p", 1, timeout=0.01),
    "aput": lambda q: asyncio.run(q.aput(1, timeout=0.01)),
}


@pytest.mark.parametrize("call", FULL_CALLS)
@pytest.mark.parametrize("on_full", ["wait", "raise"])
def test_full_names_the_readers_that_hold_back(call, on_full):
    with EventQueue.create("q", item="<u8", max_bytes=4096, on_full=on_full) as q:
        q.subscribe("gone", start="earliest").close()
        live = q.subscribe(start="earliest")
        fast = q.subscribe("fast", start="earliest")
        fill(q)
        fast.get_many(300)
        fast.commit()
        with pytest.raises(Full) as full:
            FULL_CALLS[call](q)
        end = q.end
        assert str(full.value).startswith(
            f"the queue 'q' is full: {q.stats().used_bytes} of max_bytes=4096 are in use; readers, "
        )
        assert f"the slowest first: 'gone' at position 0, {end} behind, held by no process; " in str(full.value)
        assert f"an ephemeral reader at position 0, {end} behind, attached; 'fast' at position 300, " in str(full.value)
        live.close()
        q.unsubscribe("gone")
        fast.get_many(10_000)
        fast.commit()
        assert q.put_many(numbers(5), timeout=1) == 5


def test_full_names_a_few_and_counts_the_rest():
    with EventQueue.create("q", item="<u8", max_bytes=4096) as q:
        for number in range(7):
            q.subscribe(f"reader {number}", start="earliest").close()
        fill(q)
        with pytest.raises(Full, match=r"'reader 3' at position 0, .*; and 3 more; let them"):
            q.put_nowait(1)


def test_too_many_readers_names_them():
    with EventQueue.create("q", item="<u8", readers=2) as q:
        q.put_many(numbers(10))
        q.subscribe("old", start="earliest").close()
        live = q.subscribe()
        with pytest.raises(TooManyReaders) as full:
            q.subscribe()
        slowest = "'old' at position 0, 10 behind, held by no process; an ephemeral reader at position 10, 0 behind"
        assert slowest in str(full.value)
        q.unsubscribe("old")
        q.subscribe().close()
        live.close()


@pytest.mark.parametrize("is_attached", [False, True])
def test_too_many_readers_names_those_too_that_were_dropped(is_attached):
    """They hold back no memory any more, but have their lines: unsubscribe() gives them back."""
    with EventQueue.create("q", item="<u8", readers=2, max_bytes=4096, on_full="drop_slowest") as q:
        held = [q.subscribe(name, start="earliest") for name in ("one", "two")]
        for reader in held:
            if not is_attached:
                reader.close()
        for number in range(2000):
            q.put(number)
        assert [reader.is_dropped for reader in q.readers()] == [True, True]
        state = "attached" if is_attached else "held by no process"
        with pytest.raises(
            TooManyReaders, match=f"'one' at position 0, 2000 behind, {state}, dropped; 'two' at "
        ) as full:
            q.subscribe()
        assert "unsubscribe()" in str(full.value)
        held[0].close()
        q.unsubscribe("one")
        q.subscribe().close()
