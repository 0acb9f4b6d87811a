"""put_once cut short: by the living who are at it, by signals, forks and kills."""

from __future__ import annotations

import os
import pickle
import random
import signal
import threading
import time

import pytest

from queueduct import BoundedQueue, CorruptSegment, Full, GrowingQueue, ProducerInUse, QueueClosed
from tests.support.children import fork
from tests.support.deadline import until, until_parked
from tests.support.put_once import COUNTED, KINDS, drained, make_slots
from tests.support.raw import RawSegment


@pytest.fixture(params=COUNTED)
def create(request):
    return COUNTED[request.param]


@pytest.fixture
def q(create):
    with create("q", 8) as made:
        yield made


def line_word(raw, word):
    """Where a word of the first producer's line lies."""
    return raw.field("producers_offset") + 128 + 8 * word


# -- who is at it ---------------------------------------------------------------------------------------


def test_a_producer_in_use_by_a_living_thread_is_refused_to_others(q):
    outcome = []
    waiting = threading.Thread(target=lambda: outcome.append(q.put_once([b"x"] * 10, "p", 1)))
    waiting.start()
    until_parked(waiting)
    with type(q).open("q") as other:
        for handle in (q, other):
            with pytest.raises(ProducerInUse, match=r"'p' of 'q' is in use by another thread or process"):
                handle.put_once([b"x"] * 10, "p", 1)
            with pytest.raises(ProducerInUse):
                handle.forget_producer("p")
            assert handle.producers() == [("p", 1, 8, 10)]
    drained(q)
    waiting.join()
    assert outcome == [10]
    assert q.put_once([b"x"] * 10, "p", 1) == 0


def test_a_signal_handler_in_the_middle_of_a_call_is_another_user(q):
    def handler(number, frame):
        with pytest.raises(ProducerInUse):
            q.put_once([b"x"] * 10, "p", 1)
        refused.append(number)
        drained(q)

    refused = []
    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        assert q.put_once([b"x"] * 10, "p", 1) == 10
    finally:
        signal.signal(signal.SIGALRM, before)
    assert refused == [signal.SIGALRM]


def test_an_interrupted_call_leaves_its_producer_to_the_next(q):
    class Interrupted(Exception):
        pass

    def handler(number, frame):
        raise Interrupted

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(Interrupted):
            q.put_once([b"x"] * 10, "p", 1)
    finally:
        signal.signal(signal.SIGALRM, before)
    drained(q)
    assert q.put_once([b"x"] * 10, "p", 1) == 2


def test_a_closed_handle_ends_a_call_that_waits(q):
    outcome = []

    def work():
        try:
            mine.put_once([b"x"] * 10, "p", 1)
        except QueueClosed as error:
            outcome.append(error)

    mine = type(q).open("q")
    waiting = threading.Thread(target=work)
    waiting.start()
    until_parked(waiting)
    mine.close()
    waiting.join()
    assert len(outcome) == 1
    drained(q)
    assert q.put_once([b"x"] * 10, "p", 1) == 2


def test_a_pickled_handle_continues_what_another_began(q, children):
    with pytest.raises(Full):
        q.put_once([b"%d" % i for i in range(10)], "p", 1, block=False)
    found = drained(q)
    code = "import pickle, sys; q = pickle.loads(bytes.fromhex(sys.argv[1])); "
    code += "print(q.put_once([b'%d' % i for i in range(10)], 'p', 1), q.put_once([b'next'], 'p', 2))"
    assert children.run(code, pickle.dumps(q).hex()) == "2 1\n"
    assert found + drained(q) == [b"%d" % i for i in range(10)] + [b"next"]
    assert q.put_once([b"next"], "p", 2) == 0


def test_a_forked_child_uses_producers_by_itself(q, children):
    q.put_once([b"a"], "p", 1)
    assert children.wait(children.fork(lambda: q.put_once([b"b"], "p", 2))) == 0
    assert q.put_once([b"b"], "p", 2) == 0
    assert drained(q) == [b"a", b"b"]


def test_a_child_forked_in_the_middle_of_a_call_has_no_part_in_it(q, children):
    """The handler forks; in the child the call goes on, and must not put its parent's items."""
    pids = []

    def handler(number, frame):
        pid = fork()
        if pid == 0:
            signal.setitimer(signal.ITIMER_REAL, 0)
        pids.append(pid)

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            q.put_once([b"x"] * 10, "p", 1, timeout=1)
            status = 1
        except ProducerInUse:
            status = 0
        except Full:
            status = 2
    finally:
        if pids == [0]:
            os._exit(status)
        signal.signal(signal.SIGALRM, before)
    assert status == 2  # the parent: it waited in vain
    (pid,) = pids
    children.forks.add(pid)
    assert children.wait(pid) == 0
    assert q.producers() == [("p", 1, 8, 10)]
    drained(q)
    assert q.put_once([b"x"] * 10, "p", 1) == 2


def test_a_childs_exception_leaves_the_producer_to_its_parent(q, children):
    class Left(Exception):
        pass

    pids = []

    def handler(number, frame):
        pids.append(fork())
        if pids == [0]:
            raise Left

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            waited_in_vain = False
            q.put_once([b"x"] * 10, "p", 1, timeout=1)
        except Left:
            with pytest.raises(ProducerInUse):
                q.put_once([b"x"] * 10, "p", 1)
            os._exit(0)
        except Full:
            waited_in_vain = True
    finally:
        if pids == [0]:
            os._exit(1)
        signal.signal(signal.SIGALRM, before)
    assert waited_in_vain
    children.forks.add(pids[0])
    assert children.wait(pids[0]) == 0


# -- kills ----------------------------------------------------------------------------------------------


def test_a_producer_killed_while_it_waits_is_succeeded(q, children):
    items = [b"%d" % i for i in range(20)]
    pid = children.fork(lambda: q.put_once(items, "p", 1))
    until(lambda: q.producers() == [("p", 1, 8, 20)])
    with pytest.raises(ProducerInUse):
        q.put_once(items, "p", 1)
    children.kill(pid)
    found = drained(q)
    with pytest.raises(Full):
        q.put_once(items, "p", 1, block=False)
    found += drained(q)
    assert q.put_once(items, "p", 1) == 4
    assert found + drained(q) == items


# All are full most of the time, and the growing one in its last sub-queue.
SMALL = {
    "bounded": lambda item: BoundedQueue.create("q", 64, item=item, participants=8),
    "growing": lambda item: GrowingQueue.create("q", item=item, first_bytes=512, steps=3, participants=8),
    "slots": lambda item: make_slots("q", 64, item=item, participants=8),
}


@pytest.mark.parametrize(
    ("queue", "kind"),
    [
        *[(queue, kind) for queue in ("bounded", "slots") for kind in KINDS],
        ("growing", "long bytes"),
        *[pytest.param("growing", kind, marks=pytest.mark.long) for kind in KINDS if kind != "long bytes"],
    ],
)
def test_kills_at_random_moments_neither_lose_nor_repeat_anything(queue, kind, children, is_long):
    """A producer is killed and started again from its first sequence, until it comes to its end."""
    item, make = KINDS[kind]
    rng = random.Random(kind)
    kills = 600 if is_long else 40
    q = SMALL[queue](item)

    def batch(sequence):
        return [make(1000 * sequence + i) for i in range(sequence * 7919 % 60)]

    def produce(last):
        first = next((info.sequence for info in q.producers()), 0)
        for sequence in range(max(0, first - 1), last):  # the one before must be let be
            q.put_once(batch(sequence), "p", sequence)
        os._exit(0)

    found = []
    for _ in range(kills):
        pid = children.fork(lambda: produce(2**62))
        end = time.monotonic() + rng.random() * 0.03
        while time.monotonic() < end:
            if (one := q.try_get(StopIteration)) is not StopIteration:
                found.append(one)
        children.kill(pid)
    last = max((info.sequence for info in q.producers()), default=0) + 50
    expected = [each for sequence in range(last) for each in batch(sequence)]
    pid = children.fork(lambda: produce(last))
    while len(found) < len(expected):
        found.append(q.get(timeout=30))
    assert children.wait(pid) == 0
    assert drained(q) == []
    assert found == expected


def claimed_and_dead(q, raw, position, slots, total):
    """As a producer leaves its line that was killed in the middle of a claim."""
    q.put_once([b"x"] * total, "p", 1)
    raw.set_word(line_word(raw, 0), 1 << 32 | 8)  # an owner long gone
    raw.set_word(line_word(raw, 1), 1 << 63 | 2 << 61 | total << 30)
    raw.set_word(line_word(raw, 4), position)
    raw.set_word(line_word(raw, 5), slots << 32 | slots)
    raw.set_word(line_word(raw, 6), slots << 42 | position)


@pytest.mark.parametrize("create", ["bounded"], indirect=True)
def test_the_words_of_a_producers_line_mean_what_the_layout_documents(q):
    with RawSegment("q") as raw:
        claimed_and_dead(q, raw, 0, 3, 4)  # 3 of its first claim's slots are in, so one is missing
        drained(q)
        assert q.put_once([b"x"] * 4, "p", 1) == 1
        raw.set_word(line_word(raw, 0), 0)
        assert raw.word(line_word(raw, 1)) == 1 << 63 | 4 << 30 | 4
        assert raw.word(line_word(raw, 2)) == 1
        assert raw.memory[line_word(raw, 8) : line_word(raw, 16)] == b"p".ljust(64, b"\0")


@pytest.mark.parametrize("create", ["bounded"], indirect=True)
@pytest.mark.parametrize(("position", "slots"), [(5, 2), (2**62, 1), (0, 9), (0, 0), (3, 2**31), (2**64 - 1, 2)])
def test_a_line_that_contradicts_the_queue_is_a_clean_error(q, position, slots):
    with RawSegment("q") as raw:
        claimed_and_dead(q, raw, position, min(slots, 2**21), 4)
        raw.set_word(line_word(raw, 5), slots << 32 | slots)
        with pytest.raises(CorruptSegment, match="the producer 'p' contradicts"):
            q.put_once([b"x"] * 4, "p", 1)
        q.forget_producer("p")
        drained(q)
        assert q.put_once([b"x"] * 4, "p", 1) == 4
