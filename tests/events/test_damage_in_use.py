"""Words of the log that cannot be, found in use: a clean error or the right items, never a crash, never a hang."""

from __future__ import annotations

import contextlib
import threading

import pytest

import queueduct
from queueduct import CorruptSegment, EventQueue
from tests.support.deadline import until
from tests.support.raw import RawEvents
from tests.support.ticks import FORMS, numbers

ALLOWED = (queueduct.QueueductError, queueduct.Empty, queueduct.Full, queueduct.ShutDown, ValueError, OSError)


def use_everything(q, reader, value):
    """Each call works or raises something allowed; who was told of damage."""
    calls = [
        lambda: reader.get(timeout=0.02),
        lambda: reader.get_many(500, timeout=0.02),
        lambda: q.read(q.earliest, q.end)[:0],
        lambda: q.put(value, timeout=0.02),
        lambda: q.put_many([value] * 300, timeout=0.02),
        lambda: q.subscribe(start="earliest").get(timeout=0.02),
        lambda: q.subscribe("durable", start="earliest").get_many(5, timeout=0.02),
        q.readers,
        q.stats,
        lambda: len(q),
        lambda: q.keep_last(3),
        q.clear,
        lambda: q.put_once([value] * 5, "p", 1, timeout=0.02),
        lambda: queueduct.open("q").close(),
        lambda: q.put(value, timeout=0.02),
        reader.try_get,
        reader.close,
        q.shutdown,
        q.close,
    ]
    told = []
    for call in calls:
        try:
            call()
        except ALLOWED as error:
            told.append(error)
    return [error for error in told if isinstance(error, CorruptSegment)]


CONTROL_FAULTS = [
    ("end", [0, 1, 49, 51, 10_000, 2**52 - 1, 2**64 - 1, 2**51]),
    ("start", [51, 10_000, 2**52 - 1, 2**64 - 1]),
    ("head_chunk", [3, 6, 7, 100, 2**32, 2**63, 2**64 - 1]),
    ("chunks_made", [0, 1, 5, 7, 100, 2**32, 2**63, 2**64 - 1]),
    ("used_bytes", [0, 2**32, 2**64 - 1]),
    ("spare_bytes", [1, 2**64 - 1]),
    ("blocks_used", [0, 2**32, 2**64 - 1]),
    ("lock", [1, 2, 7, 0xFFFF, 0x1FFFF, 2**64 - 1, 0xFFFE]),
    ("participants_used", [0, 2**64 - 1]),
    ("synced", [2**64 - 1]),
    ("freed_unsynced", [1, 2**64 - 1]),
    ("boot_id", [0, 7, 2**64 - 1]),
    ("booted_ns", [0, 7, 2**64 - 1]),
    ("uptime_ns", [0, 7, 2**64 - 1]),
    ("confirmed", [2**64 - 1]),
    ("sync_failures", [1, 2**64 - 1]),
    ("cuts", [1, 300, 2**64 - 1]),
    ("lowest_cut", [7, 2**64 - 1]),
]


@pytest.mark.parametrize("form", ["bytes", "records"])
@pytest.mark.parametrize(
    ("word", "value"), [(word, value) for word, values in CONTROL_FAULTS for value in values], ids=str
)
def test_a_word_of_the_control_block_that_cannot_be(form, word, value):
    make, item, _ = FORMS[form]
    q = make(max_bytes=1 << 16)
    reader = q.subscribe("d")
    q.put_many([item(i) for i in range(50)])
    with RawEvents("q") as raw:
        raw.set_control(word, value)
    use_everything(q, reader, item(1))


@pytest.mark.parametrize("on_full", ["wait", "raise", "drop_slowest"])
@pytest.mark.parametrize("has_reader", [False, True])
@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("chunks_made", 1 << 40),
        ("chunks_made", 2**64 - 1),
        ("head_chunk", 0),
        ("head_chunk", 1 << 40),
        ("used_bytes", 2**64 - 1),
        ("used_bytes", 0),
        ("spare_bytes", 2**64 - 1),
        ("blocks_used", 2**64 - 1),
        ("start", 2**52 - 1),
        ("end", 2**52 - 1),
    ],
)
def test_a_write_into_the_directory_during_a_put_causes_no_endless_loop(on_full, has_reader, word, value):
    """The put that is under way holds the lock: it comes back, and so does everybody else."""
    q = EventQueue.create("q", item="<u8", max_bytes=1 << 20, on_full=on_full)
    reader = q.subscribe("d", start="earliest") if has_reader else None
    batch, ends = numbers(200_000), []

    def put() -> None:
        with contextlib.suppress(*ALLOWED):
            while True:
                q.put_many(batch, timeout=0.05)
                q.keep_last(0)
        ends.append("told")

    writer = threading.Thread(target=put, daemon=True)
    with RawEvents("q") as raw:
        writer.start()
        until(lambda: raw.get_control("chunks_made") > 10 or ends, "the first chunks")
        raw.set_control(word, value)
        q.close()  # the writer is told when its batch is in, or cannot be
        writer.join(10)
        assert not writer.is_alive()
        assert raw.get_control("lock") & 0xFFFF in (0, 0xFFFF)
    assert reader is None or reader.name == "d"


def test_a_log_that_says_it_is_full_and_keeps_nothing_is_corrupt():
    with EventQueue.create("q", item="<u8", max_bytes=4096) as q:
        with RawEvents("q") as raw:
            raw.set_control("used_bytes", 2**63)
        with pytest.raises(CorruptSegment):
            q.put(1, timeout=5)


CHUNK_FAULTS = [
    ("first_position", [1, 5, 49, 51, 2**52, 2**64 - 1]),
    ("end_position", [0, 3, 5, 2**52, 2**64 - 1]),
    ("items", [0, 1, 2**20, 2**52, 2**64 - 1]),
    ("bytes", [0, 1, 4096, 2**31, 2**31 + 8, 2**64 - 1]),
    ("block", [0, 5, 5 | 1 << 32, 2**31 | 1 << 32, 100 << 32, 2**64 - 1]),
]


@pytest.mark.parametrize("form", ["bytes", "records"])
@pytest.mark.parametrize("number", [0, 2, 5])
@pytest.mark.parametrize(
    ("word", "value"), [(word, value) for word, values in CHUNK_FAULTS for value in values], ids=str
)
def test_a_line_of_the_directory_that_cannot_be(form, number, word, value):
    make, item, _ = FORMS[form]
    q = make(max_bytes=1 << 16)
    reader = q.subscribe()
    q.put_many([item(i) for i in range(50)])
    with RawEvents("q") as raw:
        raw.set_word(raw.chunk_offset(number, word), value)
    use_everything(q, reader, item(1))


@pytest.mark.parametrize("word", ["items", "bytes", "block"])
def test_a_damaged_chunk_is_an_error_of_its_readers(word):
    with EventQueue.create("q", item="<u8") as q:
        reader = q.subscribe()
        q.put_many(numbers(50))
        with RawEvents("q") as raw:
            raw.set_word(raw.chunk_offset(2, word), 2**64 - 1)
        assert list(reader.get_many(8)) == list(range(8))
        with pytest.raises(CorruptSegment, match=r"chunks of 'q' contradict each other: end=0x32.*recreate the queue"):
            reader.get()
        with pytest.raises(CorruptSegment):
            reader.get_many(5)
        with pytest.raises(CorruptSegment):
            q.read(0, 50)
        assert list(q.read(0, 8)) == list(range(8))


READER_FAULTS = [
    ("place", [51, 2**52, 2**63, 2**63 | 5, 2**64 - 1]),
    ("kind", [0, 1, 3, 2**32 - 1]),
    ("name_length", [0, 97, 2**32 - 1]),
    ("beyond", [1, 2**52, 2**64 - 1]),
]


@pytest.mark.parametrize("on_full", ["wait", "drop_slowest"])
@pytest.mark.parametrize(
    ("word", "value"), [(word, value) for word, values in READER_FAULTS for value in values], ids=str
)
def test_a_line_of_a_reader_that_cannot_be(word, value, on_full):
    q = EventQueue.create("q", item="<u8", max_bytes=4096, on_full=on_full)
    reader = q.subscribe("d")
    q.put_many(numbers(50))
    with RawEvents("q") as raw:
        raw.set_word(raw.reader_offset(0, word), value)
    use_everything(q, reader, 1)


@pytest.mark.parametrize("value", [0, 1, 7, 2**16, 2**31, 2**32 - 1])
@pytest.mark.parametrize("at", [0, 1, 3])
def test_an_index_of_items_that_cannot_be(at, value):
    """The i-th word of a chunk of bytes says where the i-th item ends."""
    with EventQueue.create("q") as q:
        reader = q.subscribe()
        q.put_many([b"item %d" % i for i in range(4)])
        with RawEvents("q") as raw:
            start = raw.field("arena_offset") + 4 * at
            raw.memory[start : start + 4] = value.to_bytes(4, "little")
        try:
            for each in reader.get_many(4):
                assert len(each) < 300
        except CorruptSegment:
            pass
        use_everything(q, reader, b"x")


@pytest.mark.parametrize("value", [1, 2**31, 2**31 | 1, 2**32 - 1, 2**30])
def test_block_words_that_cannot_be(value):
    q = EventQueue.create("q", item="<u8", max_bytes=1 << 16)
    reader = q.subscribe()
    q.put_many(numbers(50))
    with RawEvents("q") as raw:
        at = raw.field("blocks_offset")
        for i in range(12):
            raw.memory[at + 4 * i : at + 4 * i + 4] = value.to_bytes(4, "little")
    use_everything(q, reader, 1)


@pytest.mark.parametrize("value", [1, 3, 2**31, 2**62, 2**63, 2**64 - 1])
@pytest.mark.parametrize("word", range(0, 128, 8))
def test_a_line_of_a_producer_that_cannot_be(word, value):
    q = EventQueue.create("q", item="<u8", max_bytes=1 << 16)
    reader = q.subscribe()
    q.put_once(numbers(3), "p", 0)
    with RawEvents("q") as raw:
        raw.set_word(raw.field("producers_offset") + word, value)
        raw.set_word(raw.field("producers_offset") + 128 + word, value)
    for call in (q.producers, lambda: q.forget_producer("p")):
        with contextlib.suppress(queueduct.QueueductError, ValueError):
            call()
    use_everything(q, reader, 1)


def test_a_log_that_is_all_ones_or_zeros_behind_its_header_is_no_crash():
    for byte in (b"\xff", b"\0"):
        q = EventQueue.create("q", max_bytes=1 << 16)
        reader = q.subscribe()
        q.put_many([b"item"] * 50)
        with RawEvents("q") as raw:
            start, end = raw.field("control_offset"), raw.field("arena_offset")
            raw.memory[start:end] = byte * (end - start)
        use_everything(q, reader, b"x")
        queueduct.unlink("q")


def test_a_lock_that_names_a_live_participant_outside_it_is_corrupt():
    make, item, _ = FORMS["bytes"]
    with make() as first, EventQueue.open("q") as second:
        first.put(item(1))
        second.put(item(2))
        with RawEvents("q") as raw:
            raw.set_control("lock", 1)  # the line of the first
        for call in (lambda: second.put(item(3)), second.readers, second.subscribe, first.clear):
            with pytest.raises(CorruptSegment):
                call()


EPOCH_CALLS = {
    "valid_until": "q.valid_until(0)",
    "read": "q.read(0, 1, epoch=0)",
    "subscribe": "q.subscribe(start=1, epoch=0)",
    "durable": "q.subscribe('d').get()",
    "commit": "q.subscribe('other').commit(0, epoch=0)",
}


@pytest.mark.parametrize("call", EPOCH_CALLS)
@pytest.mark.parametrize("cuts", [2**31, 2**63, 2**64 - 2, 2**64 - 1])
def test_a_number_of_cuts_that_cannot_be_keeps_nobody_in_an_endless_loop(children, cuts, call):
    """In a process of its own: the loop would hold the lock, and the GIL."""
    q = EventQueue.create("q", item="<u8")
    q.subscribe("d", start="earliest").close()
    q.put_many(numbers(50))
    with RawEvents("q") as raw:
        raw.set_control("cuts", cuts)
    code = f"""
import signal, queueduct
signal.alarm(30)
q = queueduct.open("q")
try:
    {EPOCH_CALLS[call]}
except queueduct.QueueductError:
    pass
q.put(1, timeout=5)
"""
    assert children.run(code) == ""
    assert q.end == 51
