"""Files that are not what they should be, and locks that somebody left behind."""

from __future__ import annotations

import os
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


def refused(path, message):
    """By everybody who could open it, and the file is left as it was."""
    before = path.read_bytes()
    for use in (queueduct.open, OverwritingQueue.open):
        with pytest.raises(CorruptSegment, match=message):
            use("q")
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("offset", "data", "message"),
    [
        (0, b"Work as ", "magic must be"),
        (8, struct.pack("<I", 0), "capacity must be between 1 and"),
        (8, struct.pack("<I", 4), "QUEUE_MAX_LEN and MSG_SIZE must agree with capacity=5"),
        (8, struct.pack("<I", 0xFFFFFFFF), "magic must be b'QUEUDUCT'"),
        (12, struct.pack("<I", 0), "message_bytes must be between 8 and"),
        (12, struct.pack("<I", 2), "QUEUE_MAX_LEN and MSG_SIZE must agree with .* slot_bytes=24"),
        (4096, b"QUEUSTUC", "magic must be b'QUEUDUCT': magic=b'QUEUSTUC' at offset 4096"),
        (4096 + 8, struct.pack("<I", 99), "layout_version must be"),
        (4096 + 12, struct.pack("<I", 99), "byte_order must be"),
        (4096 + 16, struct.pack("<I", 7), "kind must be one of"),
        (4096 + 24, struct.pack("<Q", 1 << 40), "total_bytes must be"),
        (4096 + 32, struct.pack("<Q", 6), "QUEUE_MAX_LEN and MSG_SIZE must agree with capacity=6"),
        (4096 + 40, struct.pack("<Q", 20), "message_bytes must be a multiple of 8"),
        (4096 + 48, struct.pack("<I", 0), "participants must be between"),
        (4096 + 48, struct.pack("<I", 200), "total_bytes must be"),
        (4096 + 64, struct.pack("<Q", 0), "control_offset must be 8192"),
        (4096 + 96, struct.pack("<Q", 40), "payload_offset must be 32"),
        (4096 + 160, struct.pack("<I", 1), "producers must be between 0 and 0"),
        (4096 + 148, struct.pack("<I", 1), "checksum must be"),
        (4096 + 200, b"x", "reserved must be zero"),
    ],
)
def test_a_field_that_cannot_be_is_refused_by_its_name(path, offset, data, message):
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)
    refused(path, message)


@pytest.mark.parametrize("kind", [1, 5])
def test_another_kind_behind_the_messages_is_refused(path, kind):
    with RawOverwriting("q") as raw:
        raw.set_field("kind", kind)
        raw.sign()
    refused(path, " must be ")


def test_an_own_part_at_the_begin_of_a_file_is_refused(path):
    data = path.read_bytes()
    path.write_bytes(data[4096:])
    refused(path, "magic must be b'Work is ' for a queue of kind 'overwriting'")


@pytest.mark.parametrize("length", [0, 8, 31, 191, 4095, 4096, 4200, 8192, 12288])
def test_a_file_that_is_too_short_is_refused(path, length):
    os.truncate(path, length)
    refused(path, "magic must be|is too short|capacity must be|item_text is not|item_text must be|the file has")


def test_a_file_that_is_too_long_is_refused(path):
    os.truncate(path, path.stat().st_size + 4096)
    refused(path, "the file has")


def test_a_file_that_is_truncated_while_it_is_used_is_an_error_and_no_crash(path):
    with OverwritingQueue.open("q") as q:
        q.put(bytes(24))
        os.truncate(path, 0)
        for call in (lambda: q.put(bytes(24)), q.get_nowait, lambda: q.put_many([bytes(24)]), lambda: q.get_many(2)):
            with pytest.raises(CorruptSegment, match="truncated"):
                call()


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
