"""The published format: its bytes, and a second implementation that exchanges messages with ours."""

from __future__ import annotations

import random
import struct
import threading
from collections import deque

import numpy as np
import pytest

import queueduct
from queueduct import OverwritingQueue
from tests.support.deadline import until_parked
from tests.support.published import STRANGER, Published

RECORD = np.dtype([("id", "<u4"), ("half", "<f8")])


@pytest.fixture
def q(queue_dir):
    with OverwritingQueue.create("q", 5, message_bytes=24) as made:
        yield made


@pytest.fixture
def other(q, queue_dir):
    made = Published(queue_dir / "q")
    yield made
    made.close()


def message(number: int) -> bytes:
    return number.to_bytes(8, "little") * 3


def test_a_new_file_begins_with_the_published_bytes(q, queue_dir):
    data = (queue_dir / "q").read_bytes()
    assert data[:16] == bytes.fromhex("576f726b20697320 05000000 03000000")
    assert not any(data[16 : 32 + 5 * 32])
    assert data[4096:4104] == b"QUEUDUCT", "what is our own begins at the first page after the last message"
    assert not any(data[32 + 5 * 32 : 4096])


def test_an_enqueue_and_a_dequeue_leave_the_published_bytes(q, queue_dir):
    for i in range(7):
        q.put(message(i))
    assert q.get() == message(2)
    data = (queue_dir / "q").read_bytes()
    assert struct.unpack_from("<QII", data, 16) == (0, 3, 4)
    for index, number in enumerate([5, 6, 2, 3, 4]):
        assert data[32 + 32 * index : 64 + 32 * index] == bytes(8) + message(number)


def test_records_and_objects_are_filled_up_with_zeros(queue_dir):
    with OverwritingQueue.create("r", 2, item="<u4") as q:
        assert q.message_bytes == 8
        q.put(0x01020304)
        assert Published(queue_dir / "r").get() == bytes([4, 3, 2, 1, 0, 0, 0, 0])
    with OverwritingQueue.create("o", 2, item=object, message_bytes=64) as q:
        q.put({"id": 7})
        stranger = Published(queue_dir / "o")
        pickled = stranger.get()
        assert pickled.endswith(b"\0")
        stranger.put(pickled)
        assert q.get() == {"id": 7}


def test_what_we_put_the_other_gets(q, other):
    for i in range(8):
        q.put(message(i))
    assert [other.get() for _ in range(5)] == [message(i) for i in range(3, 8)]
    assert other.try_get() is None
    assert q.empty()


def test_what_the_other_puts_we_get(q, other):
    for i in range(8):
        other.put(message(i))
    assert q.full()
    assert q.get_many(9) == [message(i) for i in range(3, 8)]
    assert other.places == (3, 0)


@pytest.mark.parametrize("capacity", [1, 2, 5, 7])
def test_both_agree_with_a_deque_through_any_mixture_of_calls(queue_dir, capacity):
    rng = random.Random(capacity)
    expected: deque[bytes] = deque(maxlen=capacity)
    with OverwritingQueue.create("q", capacity, message_bytes=24) as q:
        stranger = Published(queue_dir / "q")
        for number in range(2000):
            who = rng.choice([q, stranger])
            if rng.random() < 0.55:
                who.put(message(number))
                expected.append(message(number))
            else:
                assert who.try_get() == (expected.popleft() if expected else None)
            assert q.qsize() == stranger.places[1] == len(expected)


def test_messages_go_to_another_process_and_back(queue_dir, children):
    """The other one has struct and mmap, and no queueduct. Each waits for the other's answer, so they take turns."""
    with (
        OverwritingQueue.create("to", 3, message_bytes=24) as to,
        OverwritingQueue.create("from", 3, message_bytes=24) as back,
    ):
        process = children.start(
            """
import sys
from pathlib import Path
from tests.support.published import Published
assert "queueduct" not in sys.modules
to, back = (Published(Path(sys.argv[1]) / name) for name in ("to", "from"))
for _ in range(200):
    back.put(to.get()[::-1])
""",
            queue_dir,
        )
        for i in range(200):
            to.put(message(i))
            assert back.get(timeout=30) == message(i)[::-1]
        assert process.wait(30) == 0


def test_a_strangers_lock_on_the_header_is_waited_for(q, other):
    q.put(message(1))
    other.lock(16)
    with pytest.raises(queueduct.Full):
        q.put(message(2), timeout=0.02)
    with pytest.raises(queueduct.Empty):
        q.get(timeout=0.02)
    assert q.try_put(message(2)) is False
    assert struct.unpack_from("<Q", other.memory, 16)[0] == STRANGER
    other.unlock(16)
    q.put(message(2))
    assert q.get_many(5) == [message(1), message(2)]


def test_a_strangers_lock_on_a_message_is_waited_for(q, other):
    for i in range(5):
        q.put(message(i))
    other.lock(other.message_at(0))
    assert q.try_get() is None, "somebody is at work on the oldest"
    with pytest.raises(queueduct.Full):
        q.put(message(5), timeout=0.02)
    done = threading.Thread(target=q.put, args=(message(5),))
    done.start()
    until_parked(done)
    other.unlock(other.message_at(0))
    done.join(30)
    assert q.get_many(5) == [message(i) for i in range(1, 6)]


def test_what_the_other_puts_wakes_nobody_but_is_found_soon(q, other):
    got = []
    getter = threading.Thread(target=lambda: got.append(q.get(timeout=30)))
    getter.start()
    until_parked(getter)
    other.put(message(4))
    getter.join(30)
    assert got == [message(4)]


@pytest.mark.parametrize(("max_len", "msg_size"), [(1, 1), (5, 3), (1000, 7), (127, 3)])
def test_a_file_that_another_program_made_is_adopted(queue_dir, max_len, msg_size):
    stranger = Published.create(queue_dir / "q", max_len, msg_size)
    data = [bytes([i]) * 8 * msg_size for i in range(3)]
    stranger.put(data[0])
    before = (queue_dir / "q").read_bytes()
    for use in (queueduct.open, OverwritingQueue.open):
        with pytest.raises(queueduct.CorruptSegment, match=r"after the last message; .* must be adopted first"):
            use("q")
    assert queueduct.queues() == []
    assert (queue_dir / "q").read_bytes() == before
    with OverwritingQueue.adopt("q") as q:
        assert (queue_dir / "q").read_bytes()[: len(before)] == before
        assert (q.capacity, q.message_bytes, q.qsize()) == (max_len, 8 * msg_size, 1)
        assert q.get() == data[0]
        q.put(data[1])
        assert stranger.get() == data[1]
        stranger.put(data[2])
        with OverwritingQueue.adopt("q") as again, queueduct.open("q") as third:
            assert third.capacity == max_len
            assert again.get() == data[2]
    assert [info[:2] for info in queueduct.queues()] == [("q", "overwriting")]


def test_an_adoption_that_was_killed_on_the_way_is_repeated(queue_dir):
    Published.create(queue_dir / "q", 5, 3).put(message(1))
    OverwritingQueue.adopt("q").close()
    with open(queue_dir / "q", "r+b") as file:
        file.seek(4096)
        file.write(bytes(8))  # all but the last store
    with pytest.raises(queueduct.CorruptSegment, match="must be adopted first"):
        OverwritingQueue.open("q")
    with OverwritingQueue.adopt("q", item=np.dtype("<u8, <u8, <u4")) as q:
        assert q.get().tolist() == (1, 1, 1)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "magic must be"),
        (b"QUEUDUCT" + bytes(500), "magic must be"),
        (bytes.fromhex("576f726b20697320"), "capacity must be between 1 and"),
        (bytes.fromhex("576f726b20697320 00000000 03000000") + bytes(500), "capacity must be between 1 and"),
        (bytes.fromhex("576f726b20697320 05000000 00000000") + bytes(500), "message_bytes must be between 8 and"),
        (bytes.fromhex("576f726b20697320 ffffffff ffffffff") + bytes(500), "must be at most"),
        (bytes.fromhex("576f726b20697320 05000000 03000000") + bytes(175), "and its messages end at 192"),
        (bytes.fromhex("576f726b20697320 05000000 03000000") + bytes(5000), "and its messages end at 192"),
    ],
)
def test_what_is_no_queue_is_not_adopted_and_left_as_it_was(queue_dir, data, message):
    path = queue_dir / "q"
    path.write_bytes(data)
    path.chmod(0o600)
    with pytest.raises(queueduct.CorruptSegment, match=message):
        OverwritingQueue.adopt("q")
    with pytest.raises(queueduct.CorruptSegment):
        queueduct.open("q")
    assert path.read_bytes() == data
    assert queueduct.queues() == []


def test_an_adoption_as_what_it_cannot_be_is_refused(queue_dir):
    Published.create(queue_dir / "q", 5, 3)
    before = (queue_dir / "q").read_bytes()
    for how, message in (
        ({"participants": 0}, "participants must be between"),
        ({"item": "<f8"}, "must be the dtype's 8 in whole words: slot_bytes=24"),
    ):
        with pytest.raises(ValueError, match=message):
            OverwritingQueue.adopt("q", **how)
    with pytest.raises(queueduct.QueueNotFound):
        OverwritingQueue.adopt("another")
    assert (queue_dir / "q").read_bytes() == before
