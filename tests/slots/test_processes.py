"""SlotQueue between processes: the dead, the stopped, forks and pickles."""

from __future__ import annotations

import signal

import numpy as np
import pytest

import queueduct
from queueduct import SlotQueue
from tests.support.deadline import until

FRAME = np.dtype(("f4", (8, 8)))


@pytest.fixture
def q():
    with SlotQueue.create("q", 4, slot_bytes=32) as made:
        yield made


def start(children, code):
    """A process that has the queue as `q`, does something, says so, and waits to be killed."""
    before = "import signal\nfrom queueduct import SlotQueue\nq = SlotQueue.open('q')"
    process = children.start(f"{before}\n{code}\nprint('ready')\nsignal.pause()")
    assert process.stdout.readline() == "ready\n"
    return process


def kill(process):
    process.kill()
    process.wait()


def is_stopped(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] == "T"


def check_complete(q):
    """All slots can be lent at once, and are all different."""
    loans = [q.loan(5) for _ in range(q.slots)]
    assert sorted(loan.index for loan in loans) == list(range(q.slots))
    for loan in loans:
        loan.cancel()
    assert q.stats().free == q.slots


def test_a_dead_loaners_slots_come_back(q, children):
    process = start(children, "slots = [q.loan() for _ in range(4)]\nslots[0].view[:] = b'x' * 32")
    assert not q.try_put(b"1")
    kill(process)
    q.put(b"1", timeout=30)
    assert q.get() == b"1"
    check_complete(q)
    assert q.stats().recovered == 4
    assert q.stats().redelivered == 0


def test_a_dead_takers_items_are_delivered_again_and_flagged(q, children):
    q.put_many([b"1", b"2", b"3"])
    process = start(children, "slots = [q.take(), q.take()]")
    kill(process)
    with q.take() as slot:
        third = (slot.copy(), slot.position, slot.is_redelivered)
    again = []
    for _ in range(2):
        with q.take(30) as slot:
            again.append((slot.copy(), slot.position, slot.is_redelivered))
    assert third == (b"3", 2, False)
    assert again == [(b"1", 0, True), (b"2", 1, True)]
    check_complete(q)


def test_an_item_is_delivered_again_as_often_as_its_takers_die(q, children):
    q.put(b"1")
    for turn in range(3):
        process = start(
            children, f"slot = q.take(30)\nassert slot.is_redelivered is {turn > 0}\nassert slot.position == 0"
        )
        kill(process)
    with q.take(30) as slot:
        assert (slot.copy(), slot.is_redelivered) == (b"1", True)
    check_complete(q)


def test_a_dead_evictors_slot_comes_back(q, children):
    q.put_many([b"1", b"2", b"3", b"4"])
    process = start(
        children, "q.put(b'5', overwrite=True)\nslots = [q.take(), q.loan(length=1) if q.try_get() else None]"
    )
    kill(process)
    assert sorted(q.get(timeout=30) for _ in range(3)) == [b"2", b"4", b"5"]
    check_complete(q)


def test_items_of_a_dead_publisher_stay(q, children):
    process = start(children, "q.put_many([b'1', b'2'])")
    kill(process)
    assert q.get_many(9) == [b"1", b"2"]
    check_complete(q)


@pytest.mark.parametrize("what", ["loan", "take"])
def test_a_stopped_process_stops_nobody(q, children, what):
    """It holds one slot; the others go round and round without it."""
    q.put(b"held")
    process = start(children, f"slot = q.{what}()")
    process.send_signal(signal.SIGSTOP)
    until(lambda: is_stopped(process.pid), "the stop")
    held = 1 if what == "take" else 2  # the item of the case is still there
    for i in range(100):
        assert q.put_many([b"%d" % i] * 9, block=False) == 4 - held
        got = q.get_many(9)
        if what == "loan" and i == 0:
            assert got == [b"held"] + [b"0"] * 2
            held = 1
        else:
            assert got == [b"%d" % i] * 3
    assert q.stats().recovered == 0
    process.send_signal(signal.SIGCONT)
    kill(process)
    check_capacity = 4 if what == "loan" else 3
    until(lambda: q.put_many([b"x"] * 9, timeout=1) == check_capacity, "the dead one's slot")


def test_a_closed_handles_open_slots_come_back_when_they_are_dropped(q):
    other = SlotQueue.open("q")
    q.put(b"1")
    loaned, taken = other.loan(), other.take()
    other.close()
    assert q.stats().loaned == q.stats().leased == 1
    del loaned, taken, other
    assert q.get(timeout=30) == b"1"
    check_complete(q)


def test_a_forked_child_does_not_touch_its_parents_slots(q, children):
    q.put(b"1")
    taken, loaned = q.take(), q.loan()

    def work():
        for use in (taken.release, taken.give_back, loaned.publish, loaned.cancel):
            with pytest.raises(ValueError, match="belongs to the process that we were forked from"):
                use()
        q.put(b"child")
        with q.take() as slot:
            assert slot.copy() == b"child"

    assert children.wait(children.fork(work)) == 0
    assert (q.stats().leased, q.stats().loaned) == (1, 1)
    assert taken.copy() == b"1"
    taken.release()
    loaned.cancel()
    check_complete(q)


def test_frames_go_from_process_to_process_whole(children):
    """2 processes that put 300 frames each, 1 that takes them here: each once, whole, each putter's in order."""
    with SlotQueue.create("q", 3, item=FRAME) as q:
        code = (
            "import sys, numpy as np\nfrom queueduct import SlotQueue\nq = SlotQueue.open('q')\n"
            "for i in range(300):\n    with q.loan() as slot:\n        slot.array[...] = int(sys.argv[1]) * 1000 + i\n"
        )
        processes = [children.start(code, number) for number in range(2)]
        seen: list[list[int]] = [[], []]
        for position in range(600):
            with q.take(60) as slot:
                assert slot.position == position
                value = int(slot.array[0, 0])
                assert (np.asarray(slot.array) == value).all()
            seen[value // 1000].append(value % 1000)
        assert seen == [list(range(300))] * 2
        assert [process.wait(60) for process in processes] == [0, 0]
        check_complete(q)


def test_a_crash_inside_set_capacity_blocks_nobody(q, children):
    """Killed in on_evict: the capacity is set, and what is too much drains away."""
    q.put_many([b"1", b"2", b"3", b"4"])
    process = start(
        children,
        "def stop(item):\n    print('ready', flush=True)\n    signal.pause()\nq.set_capacity(1, on_evict=stop)",
    )
    kill(process)
    assert q.capacity == 1
    assert not q.try_put(b"5")
    assert q.get_many(9) == [b"2", b"3", b"4"]
    q.put(b"5", timeout=30)
    assert not q.try_put(b"6")
    q.set_capacity(4)
    assert q.put_many([b"6"] * 9, block=False) == 3


def test_after_the_last_participants_death_a_new_one_finds_everything(children, q):
    q.put(b"1")
    q.close()
    process = start(children, "taken, loaned = q.take(), q.loan()\nq.put(b'2')")
    kill(process)
    with SlotQueue.open("q") as again:
        assert sorted(again.get(timeout=30) for _ in range(2)) == [b"1", b"2"]
        check_complete(again)


def test_a_full_table_of_participants_is_told():
    with SlotQueue.create("q", 4, participants=1) as q:
        q.put(b"1")
        with SlotQueue.open("q") as other, pytest.raises(queueduct.TooManyParticipants):
            other.get()
        assert q.get() == b"1"


@pytest.mark.parametrize(
    "hold", ["slot = q.loan()", "slot = q.take()", "array = q.take().array", "view = q.loan().view"]
)
def test_an_interpreter_that_ends_with_a_slot_gives_it_back(q, children, hold):
    q.put(b"1")
    children.run(f"from queueduct import SlotQueue\nq = SlotQueue.open('q')\n{hold}")
    assert q.get(timeout=30) == b"1"
    check_complete(q)
