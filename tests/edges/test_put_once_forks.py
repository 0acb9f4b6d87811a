"""A signal handler that forks in the middle of put_once: two processes return from it, and the sequence is put once."""

from __future__ import annotations

import os
import signal
import threading

import pytest

import queueduct
from tests.edges.kinds import KINDS, item, number_of
from tests.support.children import fork
from tests.support.deadline import until, until_parked

CALLERS = {kind: made for kind, made in KINDS.items() if made.has_put_once}
FULL_OPTIONS = {"growing": {"max_bytes": 1 << 16}, "events": {"max_bytes": 1 << 14, "chunk_bytes": 4096}}


@pytest.mark.parametrize("kind", CALLERS)
def test_a_child_forked_in_the_middle_of_put_once_is_told_and_its_parent_goes_on(children, kind):
    q = CALLERS[kind].create("q", **FULL_OPTIONS.get(kind, {}))
    reader = CALLERS[kind].consumer(q)
    while q.try_put(item(7)):
        pass
    forked: list[int] = []
    main = threading.main_thread()

    def interrupt(*_: object) -> None:
        forked.append(fork())

    def make_room() -> None:
        until_parked(main)
        os.kill(os.getpid(), signal.SIGALRM)
        until(lambda: forked, "the fork")
        while not is_done.is_set():
            got.extend(take(reader))

    got: list[int] = []
    is_done = threading.Event()
    batch = [item(number) for number in range(1000, 1100)]
    before = signal.signal(signal.SIGALRM, interrupt)
    drainer = threading.Thread(target=make_room)
    drainer.start()
    try:
        put = q.put_once(batch, "feed", 1, timeout=30)
    except queueduct.ProducerInUse:
        if forked == [0]:
            os._exit(0)
        raise
    finally:
        signal.signal(signal.SIGALRM, before)
    if forked == [0]:
        os._exit(1)
    is_done.set()
    drainer.join()
    children.forks.update(forked)
    assert [children.wait(pid) for pid in forked] == [0]
    while left := take(reader):
        got.extend(left)
    assert put == 100
    assert [number for number in got if number >= 1000] == list(range(1000, 1100))
    assert q.put_once(batch, "feed", 1) == 0
    assert q.put_once([item(1)], "feed", 2) == 1
    q.close()


def take(reader) -> list[int]:
    try:
        got = [number_of(each) for each in reader.get_many(1000, timeout=0.05)]
    except queueduct.Empty:
        return []
    if hasattr(reader, "commit"):
        reader.commit()
    return got
