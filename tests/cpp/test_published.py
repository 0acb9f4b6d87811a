"""A C program that knows the published format only: what it puts, Python and C++ get, and what its death leaves."""

from __future__ import annotations

import random
import signal
import struct
import subprocess
import threading
from pathlib import Path

import pytest

import queueduct
from queueduct import OverwritingQueue
from tests.cpp.test_kills import Peer
from tests.support.compiled import ROOT, C, compiled, error_of, run
from tests.support.deadline import until_parked
from tests.support.raw import RawOverwriting

SOURCE = ROOT / "tests" / "cpp" / "stranger.c"


@pytest.fixture(scope="session")
def stranger() -> Path:
    return compiled(SOURCE, compiler=C)


def message(number, words=3):
    return number.to_bytes(8, "little") * words


def number_of(data):
    assert data == data[:8] * (len(data) // 8), "torn"
    return int.from_bytes(data[:8], "little")


@pytest.fixture
def q(queue_dir):
    with OverwritingQueue.create("q", 5, message_bytes=24) as made:
        yield made


def test_the_header_has_the_offsets_of_the_layout(stranger, queue_dir):
    run(stranger, "create", queue_dir / "q", 5, 3)
    run(stranger, "put", queue_dir / "q", 7, 6)
    data = (queue_dir / "q").read_bytes()
    with OverwritingQueue.create("ours", 5, message_bytes=24) as ours:
        ours.put_many([message(i) for i in range(7, 13)])
        assert data == (queue_dir / "ours").read_bytes()[: len(data)]


def test_what_c_puts_python_gets_and_the_other_way_round(stranger, q, queue_dir):
    run(stranger, "put", queue_dir / "q", 0, 8)
    assert run(stranger, "peek", queue_dir / "q") == "7\n5\n"
    assert [number_of(data) for data in q.get_many(9)] == [3, 4, 5, 6, 7]
    q.put_many([message(i) for i in range(3)])
    assert run(stranger, "get", queue_dir / "q", 3, 1000) == "0\n1\n2\n"
    assert error_of(stranger, "get", queue_dir / "q", 1, 20) == "get: Connection timed out"


def test_a_queue_that_c_made_is_adopted_and_cpp_joins_it(stranger, peer, queue_dir):
    path = queue_dir / "q"
    run(stranger, "create", path, 4, 3)
    run(stranger, "put", path, 5, 1)
    assert error_of(stranger, "create", path, 4, 3) == "create: File exists"
    assert "must be adopted in Python first" in error_of(peer, "put_bytes", "q", "x" * 24)
    with OverwritingQueue.adopt("q") as q:
        run(peer, "put_bytes", "q", "x" * 24)
        run(stranger, "put", path, 6, 1)
        assert [data[:1] for data in q.get_many(9)] == [b"\5", b"x", b"\6"]


def test_a_sleeping_reader_is_woken_by_a_c_program(stranger, q, queue_dir):
    got = []
    getter = threading.Thread(target=lambda: got.append(q.get(timeout=30)))
    getter.start()
    until_parked(getter)
    with RawOverwriting("q") as raw:
        before = struct.unpack_from("<I", raw.memory, raw.field("control_offset"))[0]
        run(stranger, "put", queue_dir / "q", 4, 1)
        getter.join(30)
        after = struct.unpack_from("<I", raw.memory, raw.field("control_offset"))[0]
    assert got == [message(4)]
    assert (after >> 1) - (before >> 1) >= 1, (
        "its event was raised: without that the reader comes after its longest sleep"
    )


def what_is_there(q):
    """Up to 16 messages; none if the oldest is still being copied by a stranger that does not run."""
    try:
        return q.get_many(16, timeout=0.01)
    except queueduct.Empty:
        return []


def test_strangers_and_participants_at_the_same_time_tear_nothing(stranger, peer, queue_dir):
    with OverwritingQueue.create("q", 16, message_bytes=24) as q:
        puts = [
            subprocess.Popen([stranger, "put", queue_dir / "q", str(first), "20000"]) for first in (1, 10**6, 2 * 10**6)
        ]
        found = []
        while any(process.poll() is None for process in puts) or not q.empty():
            found += map(number_of, what_is_there(q))
            q.put(message(3 * 10**6 + len(found)))
            found += map(number_of, what_is_there(q))
        assert [process.wait() for process in puts] == [0, 0, 0]
    assert len(set(found)) == len(found), "none twice"
    for first in (1, 10**6, 2 * 10**6):
        own = [number for number in found if first <= number < first + 20000]
        assert own == sorted(own)


def test_the_death_of_a_stranger_with_the_headers_lock_is_ended_by_a_person(stranger, peer, q, queue_dir):
    with subprocess.Popen([stranger, "hold", queue_dir / "q"], stdout=subprocess.PIPE, text=True) as dead:
        assert dead.stdout.readline() == "held\n"
        dead.kill()
    with pytest.raises(queueduct.Full):
        q.put(message(1), timeout=0.05)
    assert struct.unpack_from("<Q", (queue_dir / "q").read_bytes(), 16) == (dead.pid,), "a person sees who has it"
    assert run(stranger, "release", queue_dir / "q", dead.pid) == "0\n"
    q.put(message(1))
    assert q.get() == message(1)


def test_a_message_that_a_dead_stranger_left_half_written_becomes_zeros(stranger, q, queue_dir):
    q.put(message(1))
    with subprocess.Popen([stranger, "tear", queue_dir / "q"], stdout=subprocess.PIPE, text=True) as dead:
        assert dead.stdout.readline() == "torn\n"
        dead.kill()
    q.put(message(3))
    assert q.get() == message(1), "the others go on until they come to it"
    assert q.try_get() is None
    assert run(stranger, "release", queue_dir / "q", dead.pid) == "1\n"
    assert q.get_many(9) == [message(0), message(3)]


def test_after_kills_at_random_moments_every_message_is_whole_or_zeros(stranger, queue_dir, is_long):
    rng = random.Random(5)
    words, after = 1 << 14, -1
    with OverwritingQueue.create("q", 3, message_bytes=8 * words) as q:
        for kill in range(200 if is_long else 20):
            dead = Peer(stranger, "put_acknowledged", queue_dir / "q", kill * 10**6 + 1)
            for _ in range(rng.randrange(1, 4)):
                dead.read_some()
            dead.process.send_signal(signal.SIGKILL)
            dead.process.wait(30)
            run(stranger, "release", queue_dir / "q", dead.process.pid)
            found = [number_of(data) for data in q.get_many(3)]
            assert found
            for number in filter(None, found):
                assert number > after, "in order, and none twice"
                after = number
            dead.process.stdout.close()
            assert q.empty()


def test_a_participant_that_died_is_waited_for_by_a_stranger_until_queueduct_recovers(stranger, peer, q, queue_dir):
    """kill -9 of a C++ participant harms a stranger no longer than until somebody of queueduct comes by."""
    with RawOverwriting("q") as raw:
        ours = 1 << 63 | 1 << 32 | 1 << 16 | 3  # role: the header; line 3, which no process holds
        raw.set_word(16, ours)
        assert error_of(stranger, "get", queue_dir / "q", 1, 20) == "get: Connection timed out"
        assert raw.word(16) == ours
        run(peer, "put_bytes", "q", "x" * 24)
        assert raw.word(16) == 0
    run(stranger, "put", queue_dir / "q", 1, 1)
    assert q.get_many(9) == [b"x" * 24, message(1)]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"QUEUDUCT" + bytes(500),
        bytes.fromhex("576f726b20697320 00000000 03000000") + bytes(500),
        bytes.fromhex("576f726b20697320 05000000 00000000") + bytes(500),
        bytes.fromhex("576f726b20697320 ffffffff ffffffff") + bytes(500),
        bytes.fromhex("576f726b20697320 05000000 03000000") + bytes(175),
    ],
)
def test_what_is_no_queue_is_refused(stranger, queue_dir, data):
    (queue_dir / "q").write_bytes(data)
    assert error_of(stranger, "peek", queue_dir / "q") == "open: Protocol error"
    assert (queue_dir / "q").read_bytes() == data


def test_a_header_that_makes_no_sense_is_told_and_left(stranger, q, queue_dir):
    with RawOverwriting("q") as raw:
        for state in (5, 6 << 32):
            raw.set_word(24, state)
            assert error_of(stranger, "put", queue_dir / "q", 1, 1) == "put: Protocol error"
            assert raw.word(16) == 0
