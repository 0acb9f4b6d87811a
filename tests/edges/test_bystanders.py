"""A lock word that names a participant who lives and does not have the lock: an error within a moment, never a hang."""

from __future__ import annotations

import struct
import time

import pytest

import queueduct
from queueduct import CorruptSegment, EventQueue, Full, GrowingQueue, OverwritingQueue, QueueductError
from queueduct.segments import segment
from tests.edges.kinds import KINDS, item

AT_THE_LOCK = 1 << 40 | 1  # what a participant's line says from before it takes the lock until it has let go
LIMIT_SECONDS = 5  # far above the 250 ms that are promised: the machine may be busy


def memory_of(name):
    opened = segment.open_segment(name)
    return opened.take_memory(), opened.offsets


def names(memory, at, line):
    """Somebody who is none of us writes there."""
    struct.pack_into("<Q", memory, at, 7 << 17 | line + 1)


def again_and_again(call):
    """Until it raises."""
    end = time.monotonic() + 60
    turn = 0
    while time.monotonic() < end:
        turn += 1
        call(turn)


@pytest.fixture(params=["growing", "events"])
def forged(request):
    """A queue with two participants, and where its lock is."""
    cls, place = {"growing": (GrowingQueue, 512), "events": (EventQueue, 128)}[request.param]
    with cls.create("q") as q, cls.open("q") as other:
        q.put(b"1")
        other.put(b"2")
        memory, offsets = memory_of("q")
        yield q, memory, offsets["control_offset"] + place


@pytest.mark.parametrize("line", [0, 1])
def test_a_put_finds_out_that_the_lock_names_a_bystander(forged, line):
    """Line 0 is the caller's own."""
    q, memory, at = forged
    names(memory, at, line)
    start = time.monotonic()
    with pytest.raises(CorruptSegment, match="recreate the queue"):
        again_and_again(lambda turn: q.put(b"x" * 64, timeout=60))
    assert time.monotonic() - start < LIMIT_SECONDS


@pytest.mark.parametrize("block", [True, False])
@pytest.mark.parametrize("call", ["put_many", "put_once", "get", "lease"])
def test_every_call_that_needs_the_lock_of_upkeep_finds_it_out(call, block):
    with GrowingQueue.create("q") as q, GrowingQueue.open("q") as other:
        q.put(b"1")
        other.put(b"2")
        q.get_many(10)
        memory, offsets = memory_of("q")
        names(memory, offsets["control_offset"] + 512, 1)
        options = {"timeout": 60} if block else {"block": False}
        calls = {
            "put_many": lambda turn: q.put_many([b"x" * 64] * 50, **options),
            "put_once": lambda turn: q.put_once([b"x" * 64] * 50, "p", turn, **options),
            "get": lambda turn: q.get(timeout=60) if block else q.try_get(),
            "lease": lambda turn: q.lease(1, timeout=60),
        }
        start = time.monotonic()
        with pytest.raises(CorruptSegment, match="names a participant that lives"):
            again_and_again(calls[call])
        assert time.monotonic() - start < LIMIT_SECONDS


def test_a_put_that_does_not_wait_is_full_behind_a_stopped_lock_holder():
    """It waits for one that is about to be done, and for no longer than that can take."""
    with GrowingQueue.create("q") as q, GrowingQueue.open("q") as other:
        q.put(b"1")
        other.put(b"2")
        memory, offsets = memory_of("q")
        at = offsets["control_offset"] + 512
        struct.pack_into("<Q", memory, offsets["participants_offset"] + 128, AT_THE_LOCK)
        names(memory, at, 1)
        start = time.monotonic()
        with pytest.raises(Full):
            again_and_again(lambda turn: q.put_nowait(b"x" * 64))
        waited = time.monotonic() - start
        assert 0.2 < waited < LIMIT_SECONDS
        struct.pack_into("<Q", memory, at, 0)  # it goes on, and lets go
        struct.pack_into("<Q", memory, offsets["participants_offset"] + 128, 0)
        for _ in range(1000):
            q.put_nowait(b"x" * 64)


def test_a_lock_of_somebody_dead_is_taken_over_by_a_put_that_does_not_wait():
    with GrowingQueue.create("q") as q:
        q.put(b"1")
        memory, offsets = memory_of("q")
        names(memory, offsets["control_offset"] + 512, 9)  # nobody has that line
        start = time.monotonic()
        for _ in range(1000):
            q.put_nowait(b"x" * 64)
        assert time.monotonic() - start < LIMIT_SECONDS


HEADER, WRITER, READER = 1, 2, 3  # roles in a lock word of an overwriting queue
HEADER_LOCK = 16
FIRST_MESSAGE_LOCK = 32


def overwriting_word(memory, offsets, line, role):
    """What participant `line` would write into a lock."""
    tenure = struct.unpack_from("<I", memory, offsets["participants_offset"] + 128 * line + 48)[0]
    return 1 << 63 | (tenure & 0x7FFFFFFF) << 32 | role << 16 | line


@pytest.fixture
def overwriting():
    with OverwritingQueue.create("q", 4, message_bytes=8) as q, OverwritingQueue.open("q") as other:
        q.put(bytes(8))
        other.put(bytes(8))
        q.get_many(2)
        memory, offsets = memory_of("q")
        yield q, memory, offsets


@pytest.mark.parametrize("line", [0, 1])
@pytest.mark.parametrize("call", ["put", "get", "put_nowait", "lease"])
def test_a_header_that_names_a_bystander_is_corrupt(overwriting, call, line):
    q, memory, offsets = overwriting
    q.put(bytes(8))
    struct.pack_into("<Q", memory, HEADER_LOCK, overwriting_word(memory, offsets, line, HEADER))
    calls = {
        "put": lambda: q.put(bytes(8), timeout=60),
        "get": lambda: q.get(timeout=60),
        "put_nowait": lambda: q.put_nowait(bytes(8)),
        "lease": lambda: q.lease(1, timeout=60),
    }
    start = time.monotonic()
    with pytest.raises(CorruptSegment):
        calls[call]()
    assert time.monotonic() - start < LIMIT_SECONDS


@pytest.mark.parametrize("role", [WRITER, READER])
def test_a_message_that_names_a_bystander_is_as_a_dead_ones(overwriting, role):
    """It was written by nobody of us: a message that a writer had is torn, and counted; the queue goes on."""
    q, memory, offsets = overwriting
    for n in range(4):
        q.put(n.to_bytes(8, "little"))
    forged = overwriting_word(memory, offsets, 1, role)
    for index in range(4):
        struct.pack_into("<Q", memory, FIRST_MESSAGE_LOCK + 16 * index, forged)
    start = time.monotonic()
    q.put((4).to_bytes(8, "little"), timeout=60)
    got = [int.from_bytes(q.get(timeout=60), "little") for _ in range(1 if role == WRITER else 4)]
    assert got == ([4] if role == WRITER else [1, 2, 3, 4])
    assert q.try_get() is None
    assert time.monotonic() - start < LIMIT_SECONDS
    q.put(bytes(8), timeout=60)
    assert q.get(timeout=60) == bytes(8)


@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if kind.has_put_once])
@pytest.mark.parametrize("word", ["registrar", "owner"])
def test_a_table_of_producers_that_names_a_bystander_is_an_error_at_once(kind, word):
    """A producer's name may be in use by somebody alive: that is an error already, and nobody waits for it."""
    with KINDS[kind].create("q") as q, queueduct.open("q") as other:
        q.put_once([item(1)], "p", 1)
        other.put(item(2))
        memory, offsets = memory_of("q")
        tenure = struct.unpack_from("<I", memory, offsets["participants_offset"] + 128 + 48)[0]
        at = offsets["producers_offset"] + (128 if word == "owner" else 0)
        struct.pack_into("<Q", memory, at, tenure << 32 | 2)
        start = time.monotonic()
        with pytest.raises(QueueductError):
            q.put_once([item(3)], "p" if word == "owner" else "another", 2)
        assert time.monotonic() - start < LIMIT_SECONDS
        assert q.qsize() if kind != "events" else q.end == 2
