"""Words of an overwriting segment that cannot be, found in use, and locks that a dead participant left behind."""

from __future__ import annotations

import struct
import time

import pytest

import queueduct
from queueduct import CorruptSegment, OverwritingQueue
from tests.support.raw import LINE_BYTES, RawOverwriting

OURS = 1 << 63
HEADER, WRITER, READER = (role << 16 for role in (1, 2, 3))
LIMIT_SECONDS = 5  # far more than a look at a dead owner takes; waiting for one would take for ever


@pytest.fixture
def path(queue_dir):
    with OverwritingQueue.create("q", 5, message_bytes=24) as q:
        for i in range(3):
            q.put(bytes([i]) * 24)
    return queue_dir / "q"


def test_an_own_part_at_the_begin_of_a_file_is_refused(path):
    data = path.read_bytes()
    path.write_bytes(data[4096:])
    for use in (queueduct.open, OverwritingQueue.open):
        with pytest.raises(CorruptSegment, match="magic must be b'Work is ' for a queue of kind 'overwriting'"):
            use("q")
    assert path.read_bytes() == data[4096:]


@pytest.mark.parametrize("places", [(5, 1), (0, 6), (0xFFFFFFFF, 0xFFFFFFFF)])
def test_places_that_cannot_be_are_reported(path, places):
    with OverwritingQueue.open("q") as q, RawOverwriting("q") as raw:
        struct.pack_into("<II", raw.memory, 24, *places)
        for call in (lambda: q.put(bytes(24)), q.get, lambda: q.get_many(4), lambda: q.put_many([bytes(24)])):
            with pytest.raises(CorruptSegment, match=rf"START_IDX={places[0]}, QUEUE_LEN={places[1]}"):
                call()


@pytest.mark.parametrize("line", [3, 255, 16_383])
@pytest.mark.parametrize("tenure", [0, 1, 7])
def test_a_dead_owners_header_is_taken_over(path, line, tenure):
    with OverwritingQueue.open("q") as q, RawOverwriting("q") as raw:
        q.put(bytes(24))
        raw.set_word(16, OURS | tenure << 32 | HEADER | line)
        start = time.monotonic()
        q.put(b"x" * 24)
        assert time.monotonic() - start < LIMIT_SECONDS
        assert raw.word(16) == 0
        assert q.get_many(9)[-1] == b"x" * 24


def test_what_a_dead_writer_left_is_skipped_and_counted(path):
    with OverwritingQueue.open("q") as q, RawOverwriting("q") as raw:
        raw.set_word(32, OURS | 5 << 32 | WRITER | 9)
        raw.set_word(32 + 2 * 32, OURS | 5 << 32 | WRITER | 9)
        assert q.get_many(9) == [b"\1" * 24]
        assert q.try_get() is None
        assert (q.stats().torn, q.stats().gets, q.stats().puts) == (2, 1, 3)
        assert raw.word(32) == raw.word(32 + 2 * 32) == 0


def test_where_a_dead_reader_was_anybody_can_write(path):
    with OverwritingQueue.open("q") as q, RawOverwriting("q") as raw:
        for index in (3, 4):
            raw.set_word(32 + index * 32, OURS | 5 << 32 | READER | 9)
        assert [q.try_put(bytes(24), overwrite=False) for _ in range(3)] == [True, True, False]
        assert [raw.word(32 + index * 32) for index in range(5)] == [0] * 5


def test_a_line_with_another_tenure_is_not_the_owner(path):
    """The lock names a line that somebody holds now: its last owner is dead all the same."""
    with OverwritingQueue.open("q") as q, RawOverwriting("q") as raw:
        q.put(bytes(24))
        tenure = raw.word(raw.line_offset(0) + 48) & 0xFFFFFFFF
        raw.set_word(16, OURS | (tenure + 1) << 32 | HEADER)
        q.put(bytes(24))
        raw.set_word(16, OURS | tenure << 32 | HEADER)  # this one is we, and we do not have it
        with pytest.raises(CorruptSegment, match="HEADER_LOCK=0x8"):
            q.put(bytes(24))


def test_a_change_that_a_dead_process_had_committed_is_made(path):
    """All of it, as the journal says; and one that was not committed, never."""
    with OverwritingQueue.open("q") as q, RawOverwriting("q") as raw:
        q.qsize()
        journal = raw.field("control_offset") + 4 * LINE_BYTES
        dead = OURS | 5 << 32 | WRITER | 9
        put = {8: 3 << 32 | 1, 16: 3, 24: dead, 32: 0, 40: 0, 48: 4, 56: 1, 64: 0, 72: 0}
        for is_committed in (False, True):
            for at, value in put.items():
                raw.set_word(journal + at, value)
            raw.set_word(journal, is_committed)
            if not is_committed:
                assert q.get() == bytes(24)
                assert q.stats().puts == 3
        assert q.get_many(9) == [bytes([1]) * 24, bytes([2]) * 24]
        assert raw.word(journal) == 0
        assert (q.stats().puts, q.stats().torn, q.stats().gets, q.stats().size) == (4, 1, 3, 0)


@pytest.mark.parametrize(("at", "value"), [(8, 6 << 32), (8, 5), (16, 5), (16, 1 << 63), (32, 262), (32, 1 << 63)])
def test_a_journal_that_cannot_be_is_reported(path, at, value):
    with OverwritingQueue.open("q") as q, RawOverwriting("q") as raw:
        journal = raw.field("control_offset") + 4 * LINE_BYTES
        raw.set_word(journal + at, value)
        raw.set_word(journal, 1)
        with pytest.raises(CorruptSegment, match="the header or the journal of 'q' makes no sense"):
            q.put(bytes(24))
        assert raw.word(16) == 0, "the header is free again"
